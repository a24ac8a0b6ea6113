package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
)

func (a *app) inboxCommand() *cli.Command {
	return &cli.Command{
		Name:     "inbox",
		Usage:    "tell an agent what became of its drafts",
		Category: categoryAgents,
		Description: manual{
			text: `A message stays in the inbox until it is acknowledged; doing so twice changes nothing. With
--ack the messages named are acknowledged first, and what is left is shown.

Kinds: approved, sent, executed, rejected, steered, held, revoked, superseded, expired.`,
			examples: []string{
				"countersign inbox --agent billing",
				"countersign inbox --agent billing --ack 17,18 --json",
				"countersign inbox --agent billing --wait 60s",
			},
			exits: []exitNote{{exitUsage, "an acknowledged message isn't in the agent's inbox; none was acknowledged"}},
		}.String(),
		Flags: []cli.Flag{
			agentFlag(),
			&cli.StringSliceFlag{Name: "ack", Usage: "acknowledge the messages `ID,...`; may be repeated"},
			&cli.DurationFlag{Name: "wait", Usage: "wait up to `TIME` for a message"},
		},
		Action: a.inbox,
	}
}

func (a *app) inbox(c *cli.Context) error {
	ids, err := ackIDs(c.StringSlice("ack"))
	if err != nil {
		return err
	}
	wait, err := notNegative(c, "wait")
	if err != nil {
		return err
	}
	agent := a.agent(c)
	return a.withDesk(c, func(d *desk.Desk) error {
		if err := acknowledge(c, d.Ledger, agent, ids); err != nil {
			return err
		}
		var messages []ledger.FollowUp
		if _, err := a.poll(c.Context, wait, func() (done bool, err error) {
			messages, err = d.Ledger.Inbox(c.Context, agent)
			return len(messages) > 0, err
		}); err != nil {
			return err
		}
		return a.out.show(notNil(messages), func(p *page) { showInbox(p, agent, messages) })
	})
}

// ackIDs reads lists of numbers, separated by commas.
func ackIDs(lists []string) ([]int64, error) {
	var ids []int64
	for _, list := range lists {
		for word := range strings.SplitSeq(list, ",") {
			id, err := strconv.ParseUint(strings.TrimSpace(word), 10, 63)
			if err != nil || id == 0 {
				return nil, usagef("--ack needs the IDs of messages, such as 17,18, not %q", list)
			}
			ids = append(ids, int64(id))
		}
	}
	return ids, nil
}

func notNegative(c *cli.Context, name string) (time.Duration, error) {
	d := c.Duration(name)
	if d < 0 {
		return 0, usagef("--%s can't be negative", name)
	}
	return d, nil
}

// acknowledge takes a message that isn't there for what it is: a wrong ID, not a refused text.
func acknowledge(c *cli.Context, l *ledger.Ledger, agent string, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	err := l.Acknowledge(c.Context, agent, ids)
	if _, ok := errors.AsType[*ledger.InputError](err); ok {
		return &exitError{code: exitUsage, kind: "not_found", hint: programName + " inbox shows the agent's messages; none was acknowledged", err: err}
	}
	return err
}

func showInbox(p *page, agent string, messages []ledger.FollowUp) {
	if len(messages) == 0 {
		p.line("nothing new for agent %s", agent)
		return
	}
	for i, m := range messages {
		if i > 0 {
			p.blank()
		}
		p.line("message %d: obligation %d, %s, %s", m.ID, m.ObligationID, m.Kind, p.time(m.CreatedTS))
		p.quote(m.Body)
	}
	var ids []string
	for _, m := range messages {
		ids = append(ids, fmt.Sprint(m.ID))
	}
	p.blank()
	p.line("read: %s inbox --agent %s --ack %s", programName, agent, strings.Join(ids, ","))
}
