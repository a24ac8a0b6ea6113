package main

import (
	"fmt"
	"strings"
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
	var details []field
	open := false
	for _, h := range held {
		id := fmt.Sprint(h.ObligationID)
		rows = append(rows, []string{id, string(h.State), orNone(string(h.Outcome)), yesNo(h.Settled), age(now, h.UpdatedTS), h.Worker, h.Key})
		if h.Detail != "" {
			details = append(details, field{id, strings.TrimPrefix(h.Stage+": "+h.Detail, ": ")})
		}
		open = open || h.State == ledger.ClaimUnknown && !h.Settled
	}
	p.table([]column{{title: "ID"}, {title: "STATE"}, {title: "OUTCOME"}, {title: "SETTLED"}, {title: "AGE"}, {title: "WORKER"}, {title: "KEY"}}, rows)
	if len(details) > 0 {
		p.blank()
		p.line("Details:")
		p.fields(details...)
	}
	if open {
		p.blank()
		p.line("Find out whether what is unknown arrived, then")
		p.fields(
			field{"it did:", programName + " reconcile ID --coordinate WHERE --evidence TEXT"},
			field{"it did not:", programName + " settle ID --evidence TEXT"},
		)
	}
}
