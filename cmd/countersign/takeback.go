package main

import (
	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
)

func (a *app) revokeCommand() *cli.Command {
	return &cli.Command{
		Name:      "revoke",
		Usage:     "take an approval back, as long as its delivery hasn't begun",
		ArgsUsage: "ID",
		Category:  categoryOperators,
		Description: manual{
			text: `The draft waits again, with a new epoch. With --reject it is rejected in the same step. Where
a newer draft for the same counterparty and channel waits, the older one is closed.`,
			examples: []string{
				"countersign revoke 431 --reason 'wrong attachment'",
				"countersign revoke 431 --reason 'not to be sent at all' --reject",
			},
			exits: []exitNote{{exitConflict, "too late: the delivery has begun; or nothing is approved"}},
		}.String(),
		Flags: []cli.Flag{
			reasonFlag("`TEXT` that the agent and the audit log get"),
			&cli.BoolFlag{Name: "reject", Usage: "reject the draft, instead of letting it wait again"},
			tokenFlag(),
		},
		Action: func(c *cli.Context) error {
			return a.stepByOperator(c, func(d *desk.Desk, who operator.Operator, id int64) (ledger.Decided, error) {
				return d.Ledger.Revoke(c.Context, ledger.Revocation{
					ObligationID: id, Operator: who, Reason: c.String("reason"), Reject: c.Bool("reject"),
				})
			})
		},
	}
}

func (a *app) steerCommand() *cli.Command {
	return &cli.Command{
		Name:      "steer",
		Usage:     "tell the agent what to change; the draft goes on waiting",
		ArgsUsage: "ID",
		Category:  categoryOperators,
		Description: manual{
			text: `It is no decision: the draft stays as it is until the agent files another. A deadline after
which it would have been approved by itself is taken off.`,
			examples: []string{"countersign steer 431 --note 'name the due date'"},
			exits:    []exitNote{{exitConflict, "the obligation waits for no decision"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "note", Usage: "`TEXT` that the agent gets", Required: true, Action: notEmpty("note")},
			tokenFlag(),
		},
		Action: func(c *cli.Context) error {
			return a.stepByOperator(c, func(d *desk.Desk, who operator.Operator, id int64) (ledger.Decided, error) {
				return d.Ledger.Steer(c.Context, who, id, c.String("note"))
			})
		},
	}
}

func (a *app) withdrawCommand() *cli.Command {
	return &cli.Command{
		Name:      "withdraw",
		Usage:     "take back a draft that is not decided yet",
		ArgsUsage: "ID",
		Category:  categoryAgents,
		Description: manual{
			text:     "Only the agent that filed the draft takes it back. The obligation is closed.",
			examples: []string{"countersign withdraw 431 --epoch 1796072400 --agent billing"},
			exits: []exitNote{
				{exitConflict, "another epoch is current, or it is decided already; nothing was changed"},
				{exitUnauthorised, "another agent filed it"},
			},
		}.String(),
		Flags: []cli.Flag{epochFlag("withdraw epoch `E`"), agentFlag()},
		Action: func(c *cli.Context) error {
			id, err := oneID(c)
			if err != nil {
				return err
			}
			return a.withDesk(c, func(d *desk.Desk) error {
				done, err := d.Ledger.Withdraw(c.Context, a.agent(c), id, c.Int64("epoch"))
				if err != nil {
					return err
				}
				return a.tellDecided(done)
			})
		},
	}
}
