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
			text: `A message stays in the inbox until it is acknowledged; doing so twice changes nothing. With --ack
and IDs these are acknowledged first, and what is left is shown. With --ack alone, or --ack all,
what is shown is acknowledged once it was written: a reader that dies before has it again.

With --wait it answers as soon as there is a message; when the time is over, that there is none.

Kinds: approved, sent, executed, rejected, steered, held, revoked, superseded, expired.`,
			examples: []string{
				"countersign inbox --agent billing",
				"countersign inbox --agent billing --ack 17,18 --json",
				"countersign inbox --agent billing --wait 60s --ack --json",
			},
			exits: []exitNote{{exitUsage, "an acknowledged message isn't in the agent's inbox; none was acknowledged"}},
		}.String(),
		Flags: []cli.Flag{
			agentFlag(),
			bareFlag{&cli.StringSliceFlag{Name: "ack", Usage: "acknowledge these messages (`ID,...`); alone, or all: those shown"}, ackAll},
			&cli.DurationFlag{Name: "wait", Usage: "wait up to `TIME` for a message"},
		},
		Action: a.inbox,
	}
}

func (a *app) inbox(c *cli.Context) error {
	ids, all, err := ackIDs(c.StringSlice("ack"))
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
		if err := a.out.show(notNil(messages), func(p *page) { showInbox(p, agent, messages, all) }); err != nil || !all {
			return err
		}
		return acknowledge(c, d.Ledger, agent, idsOf(messages))
	})
}

func idsOf(messages []ledger.FollowUp) []int64 {
	var ids []int64
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// ackAll stands for the messages shown. A bare --ack means it.
const ackAll = "all"

// ackIDs reads lists of numbers, separated by commas, or the word for all that is shown.
func ackIDs(lists []string) (ids []int64, all bool, err error) {
	for _, list := range lists {
		if list == ackAll {
			all = true
			continue
		}
		for word := range strings.SplitSeq(list, ",") {
			id, err := strconv.ParseUint(strings.TrimSpace(word), 10, 63)
			if err != nil || id == 0 {
				return nil, false, usagef("--ack needs the IDs of messages, such as 17,18, or %s, not %q", ackAll, list)
			}
			ids = append(ids, int64(id))
		}
	}
	if all && len(ids) > 0 {
		return nil, false, usagef("--ack names messages, or %s, not both", ackAll)
	}
	return ids, all, nil
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

func showInbox(p *page, agent string, messages []ledger.FollowUp, acknowledging bool) {
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
	if acknowledging {
		return
	}
	p.blank()
	p.line("read: %s inbox --agent %s --ack %s", programName, agent, strings.Trim(strings.ReplaceAll(fmt.Sprint(idsOf(messages)), " ", ","), "[]"))
}
