package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/operator"
	"countersign/sweep"
)

func (a *app) recoverCommand() *cli.Command {
	return &cli.Command{
		Name:     "recover",
		Usage:    "make one pass over what dead workers left behind; deliver does it too",
		Category: categoryDelivery,
		Description: manual{
			text: `Receipts that the ledger could not take are recorded. A dispatch that a dead worker began
becomes unknown; what it had only claimed goes to the next deliver pass. A worker lives as
long as its process: no clock takes anything away from it.

A process that was stopped and won't go on can be taken over by an operator. When it wakes up,
its every step is refused. What it had begun to dispatch becomes unknown all the same.`,
			examples: []string{
				"countersign recover",
				"countersign recover --json",
				"countersign recover --take-over w-1f2e3d4c5b6a --token-file ~/operator-a.token",
			},
			exits: []exitNote{
				{exitUsage, "there is no such worker"},
				{exitUnauthorised, "--take-over needs an operator's token"},
				{exitUnknown, "something became unknown, or a spooled receipt can't be believed"},
			},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "take-over", Usage: "declare the stopped worker `NAME` dead first; claims names it", Action: notEmpty("take-over")},
			tokenFlag(),
		},
		Action: a.recoverAction,
	}
}

func (a *app) recoverAction(c *cli.Context) error {
	worker := c.String("take-over")
	if worker == "" {
		return a.pass(c, func(d *desk.Desk) error { return a.recoverPass(c, d) }, func() error {
			return a.tellRecovered(c, sweep.StoppedRecovery())
		})
	}
	return a.asOperator(c, func(d *desk.Desk, who operator.Operator) error {
		if err := d.TakeOver(c.Context, who, worker); err != nil {
			return err
		}
		return a.recoverPass(c, d)
	})
}

func (a *app) recoverPass(c *cli.Context, d *desk.Desk) error {
	found, err := d.Recover(c.Context)
	if held := len(found.Unknown) + len(found.Bad); held > 0 {
		err = errors.Join(leftUnknown(held), err)
	}
	return errors.Join(a.tellRecovered(c, found), err)
}

// tellRecovered, like tellDelivered, says nothing where nothing was found, unless somebody watches.
func (a *app) tellRecovered(c *cli.Context, found sweep.Recovered) error {
	return a.out.show(found, func(p *page) {
		showItems(p, "confirmed from the spool", found.Confirmed)
		showItems(p, "unknown", found.Unknown)
		showItems(p, "to be adopted", found.Adoptable)
		showItems(p, "not believed", found.Bad)
		if c.Bool("verbose") || a.env.Width > 0 {
			line := fmt.Sprintf("confirmed %d, unknown %d, to be adopted %d, not believed %d",
				len(found.Confirmed), len(found.Unknown), len(found.Adoptable), len(found.Bad))
			if found.Interrupted {
				line += "; ended early, what is left waits for the next pass"
			}
			p.line("%s", line)
		}
	})
}
