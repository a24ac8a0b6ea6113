package desk

import (
	"context"

	"countersign/command"
	"countersign/hook"
)

// Hooked tells whether agents are told of their follow-ups without asking.
func (d *Desk) Hooked() bool { return d.config.Followups.Configured() }

// TellAgents makes one pass over the follow-ups that the agents' command or webhook has not taken yet. Without either it does nothing:
// every follow-up is in its agent's inbox all the same.
func (d *Desk) TellAgents(ctx context.Context) (hook.Report, error) {
	if !d.Hooked() {
		return hook.Report{Taken: []hook.FollowUp{}, Failed: []hook.FollowUp{}, Behind: []hook.FollowUp{}}, nil
	}
	receiver, err := d.receiver()
	if err != nil {
		return hook.Report{}, &ConfigError{Section: "followups", Err: err}
	}
	return hook.New(d.Ledger, receiver).Pass(ctx)
}

func (d *Desk) receiver() (hook.Receiver, error) {
	c := d.config.Followups
	if c.URL != "" {
		return hook.NewWebhook(hook.WebhookConfig{URL: c.URL, Secret: c.Secret.Resolve, Timeout: c.Timeout, Now: d.now})
	}
	return hook.Program{Command: command.Command{Path: c.Command[0], Args: c.Command[1:], Env: c.Env, Timeout: c.Timeout}}, nil
}
