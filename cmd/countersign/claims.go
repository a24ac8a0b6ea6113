package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
)

func (a *app) claimsCommand() *cli.Command {
	return &cli.Command{
		Name:     "claims",
		Usage:    "list the deliveries that are in flight or held, oldest first",
		Category: categoryDelivery,
		Description: manual{
			text: `claimed      reserved by a worker; its dispatch hasn't begun
dispatching  its one dispatch has begun
unknown      its dispatch ended without a yes; it is never tried again, an operator has to
             reconcile or settle it

KEY is part of what was sent where the transport can carry it: search the receiver's side for it.`,
			examples: []string{"countersign claims", "countersign claims --json"},
		}.String(),
		Action: a.claims,
	}
}

func (a *app) claims(c *cli.Context) error {
	return a.withDesk(c, func(d *desk.Desk) error {
		held, err := d.Ledger.Claims(c.Context)
		if err != nil {
			return err
		}
		return a.out.show(notNil(held), func(p *page) { showClaims(p, held, a.env.Now()) })
	})
}

func showClaims(p *page, held []ledger.HeldClaim, now time.Time) {
	if len(held) == 0 {
		p.line("nothing is in flight or held")
		return
	}
	var rows [][]string
	open := false
	for _, h := range held {
		rows = append(rows, []string{fmt.Sprint(h.ObligationID), string(h.State), orNone(string(h.Outcome)), yesNo(h.Settled),
			age(now, h.UpdatedTS), h.Key, h.Worker, orNone(h.Detail)})
		open = open || h.State == ledger.ClaimUnknown && !h.Settled
	}
	p.table([]column{{title: "ID"}, {title: "STATE"}, {title: "OUTCOME"}, {title: "SETTLED"}, {title: "AGE"}, {title: "KEY"},
		{title: "WORKER", cut: true}, {title: "DETAIL", cut: true}}, rows)
	if open {
		p.blank()
		p.line("Find out whether what is unknown arrived (%s show ID has all details), then", programName)
		p.line("  %s reconcile ID --coordinate WHERE --evidence TEXT   it did", programName)
		p.line("  %s settle ID --evidence TEXT                         it did not, or won't be pursued", programName)
	}
}
