package main

import (
	"context"
	"errors"
	"io"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
)

func (a *app) triageCommand() *cli.Command {
	return &cli.Command{
		Name:     "triage",
		Usage:    "decide at the terminal: each waiting draft in full, one key each",
		Category: categoryOperators,
		Description: manual{
			text: `Shows what waits, the most urgent and then the oldest first: where it goes, what the system has to
say of it, the whole text with hidden characters as marks, what changed since an operator saw it
last, and what the agent says. Then one key:

  a  approve exactly this text     r  reject, with a reason     s  steer: a note to the agent
  n  go on, and leave it as it is  q  quit                      ?  help

space shows more of what is longer than the screen; a text can be approved once it was on the
screen to its end. P0 and marked drafts are asked for once more. Whoever decides elsewhere
meanwhile, or files the draft anew, comes first: you are shown what is there now.

It needs a terminal, and nothing but the ledger: it works while Slack is down.`,
			examples: []string{
				"countersign triage",
				"countersign triage --priority P0 --older-than 1h",
				"countersign triage --platform smtp --counterparty acme --token-file ~/operator-a.token",
			},
			exits: []exitNote{
				{exitUsage, "standard input or output is no terminal"},
				{exitUnauthorised, "no operator's token"},
			},
		}.String(),
		Flags:  append(waitingFlags(), tokenFlag()),
		Action: a.triage,
	}
}

// waitingFlags narrow what waits; listFilter reads them.
func waitingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "priority", Usage: "only those of priority `P`", Action: notEmpty("priority")},
		platformFlag("only those for `PLATFORM`"),
		&cli.StringFlag{Name: "agent", Usage: "only those that the agent `NAME` filed", Action: notEmpty("agent")},
		&cli.StringFlag{Name: "counterparty", Usage: "only those for the counterparty `NAME`", Action: notEmpty("counterparty")},
		&cli.DurationFlag{Name: "older-than", Usage: "only those filed longer than `TIME` ago"},
	}
}

func (a *app) triage(c *cli.Context) error {
	filter, err := a.listFilter(c)
	if err != nil {
		return err
	}
	if a.out.json {
		return usagef("triage is for people").hinted("%s list --json shows what waits, approve and reject decide", programName)
	}
	if !a.env.StdinTTY || a.env.Width <= 0 {
		return usagef("triage needs a terminal on standard input and output").
			hinted("%s list shows what waits, approve and reject decide on one epoch", programName)
	}
	return a.asOperator(c, func(d *desk.Desk, who operator.Operator) error {
		p := &panel{ledger: d.Ledger, who: who, paint: a.out.paint, now: a.env.Now}
		err := a.onScreen(c.Context, p, filter)
		waiting, counting := d.Ledger.Waiting(context.WithoutCancel(c.Context), filter)
		if counting != nil {
			return errors.Join(err, counting)
		}
		return errors.Join(err, a.out.show(nil, func(g *page) {
			for _, line := range p.done {
				g.line("%s", line)
			}
			g.line("%s", p.summary(len(waiting)))
		}))
	})
}

// onScreen runs the panel on the terminal's second screen. However it ends, the terminal is given back as it was.
func (a *app) onScreen(ctx context.Context, p *panel, filter ledger.ListFilter) (err error) {
	s, err := a.env.OpenTerminal()
	if err != nil {
		return err
	}
	defer func() {
		_, left := io.WriteString(s.Out, firstScreen)
		err = errors.Join(err, left, s.Close())
	}()
	if _, err := io.WriteString(s.Out, otherScreen); err != nil {
		return err
	}
	p.out, p.size, p.keys = s.Out, s.Size, newKeyboard(s.In, s.Discard)
	return p.run(ctx, filter)
}
