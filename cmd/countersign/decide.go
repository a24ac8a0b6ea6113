package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
)

func (a *app) approveCommand() *cli.Command {
	return &cli.Command{
		Name:      "approve",
		Usage:     "approve the exact text and destination that an epoch names",
		ArgsUsage: "ID",
		Category:  categoryOperators,
		Description: manual{
			text: `The epoch is the one that show and list tell. If the draft was filed anew since you read it,
nothing happens. A delivery pass sends what is approved, once.`,
			examples: []string{
				"countersign approve 431 --epoch 1796072400",
				"countersign approve 431 --epoch 1796072400 --token-file ~/operator-a.token --json",
			},
			exits: decisionExits(),
		}.String(),
		Flags: []cli.Flag{
			epochFlag("approve epoch `E`"),
			&cli.StringFlag{Name: "reason", Usage: "`TEXT` to keep with the decision", Action: notEmpty("reason")},
			tokenFlag(),
		},
		Action: func(c *cli.Context) error { return a.decide(c, ledger.Approve) },
	}
}

func (a *app) rejectCommand() *cli.Command {
	return &cli.Command{
		Name:      "reject",
		Usage:     "reject the draft that an epoch names; its agent is told why",
		ArgsUsage: "ID",
		Category:  categoryOperators,
		Description: manual{
			text:     "The obligation is finished; the agent may file another draft.",
			examples: []string{"countersign reject 431 --epoch 1796072400 --reason 'the amount is wrong'"},
			exits:    decisionExits(),
		}.String(),
		Flags: []cli.Flag{
			epochFlag("reject epoch `E`"),
			reasonFlag("`TEXT` that the agent and the audit log get"),
			tokenFlag(),
		},
		Action: func(c *cli.Context) error { return a.decide(c, ledger.Reject) },
	}
}

func epochFlag(usage string) cli.Flag {
	return &cli.Int64Flag{Name: "epoch", Usage: usage, Required: true}
}

func reasonFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "reason", Usage: usage, Required: true, Action: notEmpty("reason")}
}

func decisionExits() []exitNote {
	return []exitNote{
		{exitConflict, "another epoch is current, or somebody has decided already; nothing was changed"},
		{exitUnauthorised, "no operator's token, or the operator filed the draft"},
	}
}

func (a *app) decide(c *cli.Context, verdict ledger.Verdict) error {
	return a.stepByOperator(c, func(d *desk.Desk, who operator.Operator, id int64) (ledger.Decided, error) {
		return d.Ledger.Decide(c.Context, ledger.Decision{
			ObligationID: id, Epoch: c.Int64("epoch"), Verdict: verdict, Operator: who, Reason: c.String("reason"),
		})
	})
}

// stepByOperator runs what an operator does to the obligation whose ID is the argument, and tells what it led to.
func (a *app) stepByOperator(c *cli.Context, step func(*desk.Desk, operator.Operator, int64) (ledger.Decided, error)) error {
	id, err := oneID(c)
	if err != nil {
		return err
	}
	return a.asOperator(c, func(d *desk.Desk, who operator.Operator) error {
		done, err := step(d, who, id)
		if err != nil {
			return err
		}
		return a.tellDecided(done)
	})
}

func (a *app) tellDecided(done ledger.Decided) error {
	return a.out.show(done, func(p *page) {
		list := []field{
			{"obligation", fmt.Sprint(done.ObligationID)},
			{"status", string(done.Status)},
			{"epoch", fmt.Sprint(done.Epoch)},
		}
		if done.DecisionID != 0 {
			list = append(list, field{"decision", fmt.Sprint(done.DecisionID)})
		}
		p.fields(append(list, field{"by", done.Operator})...)
	})
}
