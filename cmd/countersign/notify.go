package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/hook"
	"countersign/notify"
)

func (a *app) notifyCommand() *cli.Command {
	return &cli.Command{
		Name:     "notify",
		Usage:    "make one pass: tell the internal channel and the agents what happened",
		Category: categoryDelivery,
		Description: manual{
			text: `For cron, where serve does not run. The internal channel is verified first: right workspace, right
channel, read by nobody from outside. Otherwise nothing is told, and the notices stay where they
are; there is no other place for them. Then each card is posted or edited, each verdict and receipt
told in its thread, and what waits too long named in one reminder.

Follow-ups go to the agents' command or webhook, where one is configured. A pass that told
everything says nothing.`,
			examples: []string{
				"countersign notify",
				"countersign notify --verbose",
				"countersign notify --json",
			},
			exits: []exitNote{
				{exitUsage, "no internal destination and no hook is configured"},
				{exitTryLater, "the channel is not verified, or something could not be told yet"},
			},
		}.String(),
		Action: a.notify,
	}
}

// told is what one pass told whom.
type told struct {
	Internal notify.Report `json:"internal"`
	Agents   hook.Report   `json:"agents"`
}

func (a *app) notify(c *cli.Context) error {
	return a.withDesk(c, func(d *desk.Desk) error {
		var out told
		internal, err := d.Notify(c.Context)
		agents, hookErr := d.TellAgents(c.Context)
		if d.Hooked() && errors.As(err, new(*desk.NoSurfaceError)) {
			err = nil // there is a hook, and that is all there is to tell
		}
		out.Internal, out.Agents = internal, agents
		return errors.Join(a.out.show(out, func(p *page) { a.showTold(c.Bool("verbose"), p, out) }), err, hookErr)
	})
}

// showTold, like tellDelivered, says nothing of a pass that told everything, unless somebody watches.
func (a *app) showTold(verbose bool, p *page, out told) {
	for _, f := range out.Internal.Failed {
		p.line("not told: obligation %d: %s", f.ObligationID, f.Error)
	}
	for _, f := range out.Agents.Failed {
		p.line("agent %s did not take follow-up %d of obligation %d: %s", f.Agent, f.ID, f.ObligationID, f.Error)
	}
	if !verbose && a.env.Width == 0 {
		return
	}
	if out.Internal.Busy {
		p.line("another pass tells the operators")
		return
	}
	p.line("cards posted %d, edited %d, notices told %d, not told %d; agents took %d, did not take %d",
		len(out.Internal.Posted), len(out.Internal.Edited), out.Internal.Told, len(out.Internal.Failed), len(out.Agents.Taken), len(out.Agents.Failed))
}
