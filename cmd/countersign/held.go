package main

import (
	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
)

func (a *app) cancelCommand() *cli.Command {
	return &cli.Command{
		Name:      "cancel",
		Usage:     "take an approval from a worker that has claimed it, before its dispatch",
		ArgsUsage: "ID",
		Category:  categoryDelivery,
		Description: manual{
			text:     "The draft waits for a new decision. A worker that still holds the claim can do nothing with it.",
			examples: []string{"countersign cancel 431 --reason 'its worker is stuck'"},
			exits:    []exitNote{{exitConflict, "too late: the dispatch has begun; or nobody has claimed it"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "reason", Usage: "`TEXT` that the agent and the audit log get", Value: "no reason given", Action: notEmpty("reason")},
			tokenFlag(),
		},
		Action: func(c *cli.Context) error {
			return a.stepByOperator(c, func(d *desk.Desk, who operator.Operator, id int64) (ledger.Decided, error) {
				return d.Ledger.CancelByOperator(c.Context, who, id, c.String("reason"))
			})
		},
	}
}

func (a *app) reconcileCommand() *cli.Command {
	return &cli.Command{
		Name:      "reconcile",
		Usage:     "record that a message whose delivery is unknown did arrive",
		ArgsUsage: "ID",
		Category:  categoryDelivery,
		Description: manual{
			text: `The coordinate is where the message can be found: its Message-ID, or what the provider calls
it. The obligation is then sent. claims tells the key to search for.`,
			examples: []string{"countersign reconcile 431 --coordinate 4b1c@example.com --evidence 'in the mail log'"},
			exits:    []exitNote{{exitConflict, "no delivery of it is unknown"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "coordinate", Usage: "`WHERE` the message can be found", Required: true, Action: notEmpty("coordinate")},
			evidenceFlag("`TEXT` on how you know that it arrived"),
			tokenFlag(),
		},
		Action: func(c *cli.Context) error {
			return a.stepByOperator(c, func(d *desk.Desk, who operator.Operator, id int64) (ledger.Decided, error) {
				return d.Ledger.Reconcile(c.Context, who, id, c.String("coordinate"), c.String("evidence"))
			})
		},
	}
}

func (a *app) settleCommand() *cli.Command {
	return &cli.Command{
		Name:      "settle",
		Usage:     "record that an unknown delivery did not arrive, or won't be pursued",
		ArgsUsage: "ID",
		Category:  categoryDelivery,
		Description: manual{
			text: `The delivery stays unknown and is never tried again. Its counterparty and channel may be filed
for again; the new draft carries a mark that names this obligation.`,
			examples: []string{"countersign settle 431 --evidence 'the recipient has no such mail'"},
			exits:    []exitNote{{exitConflict, "no delivery of it is unknown, or it is settled already"}},
		}.String(),
		Flags: []cli.Flag{evidenceFlag("`TEXT` on how you know, or why it won't be pursued"), tokenFlag()},
		Action: func(c *cli.Context) error {
			return a.stepByOperator(c, func(d *desk.Desk, who operator.Operator, id int64) (ledger.Decided, error) {
				return d.Ledger.Settle(c.Context, who, id, c.String("evidence"))
			})
		},
	}
}

func evidenceFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "evidence", Usage: usage, Required: true, Action: notEmpty("evidence")}
}

func (a *app) closeCommand() *cli.Command {
	return &cli.Command{
		Name:      "close",
		Usage:     "record that an obligation was handled by hand",
		ArgsUsage: "ID",
		Category:  categoryDelivery,
		Description: manual{
			text:     "It leaves a receipt of the kind manual_notice. An approval that nobody has claimed is void with it.",
			examples: []string{"countersign close 431 --reason 'settled by telephone'"},
			exits: []exitNote{
				{exitConflict, "it is sent or closed already"},
				{exitHeld, "its delivery is in flight or unknown"},
			},
		}.String(),
		Flags: []cli.Flag{reasonFlag("`TEXT` that the agent and the audit log get"), tokenFlag()},
		Action: func(c *cli.Context) error {
			return a.stepByOperator(c, func(d *desk.Desk, who operator.Operator, id int64) (ledger.Decided, error) {
				return d.Ledger.CloseByHand(c.Context, who, id, c.String("reason"))
			})
		},
	}
}
