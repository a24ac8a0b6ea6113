package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
)

func (a *app) showCommand() *cli.Command {
	return &cli.Command{
		Name:      "show",
		Usage:     "show one obligation whole: text, filings, decisions, delivery, audit",
		ArgsUsage: "ID",
		Category:  categoryOperators,
		Description: manual{
			text: `The text stands behind a bar, whole. Control and hidden characters are shown as marks such
as ⟦ESC⟧ or ⟦U+200B⟧; a line that was broken to fit goes on behind a broken bar.`,
			examples: []string{"countersign show 431", "countersign show 431 --json"},
		}.String(),
		Action: a.show,
	}
}

func (a *app) show(c *cli.Context) error {
	id, err := oneID(c)
	if err != nil {
		return err
	}
	return a.withDesk(c, func(d *desk.Desk) error {
		o, err := d.Ledger.Show(c.Context, id)
		if err != nil {
			return err
		}
		return a.out.show(o, func(p *page) { showObligation(p, o, a.env.Now()) })
	})
}

func showObligation(p *page, o ledger.Shown, now time.Time) {
	showDraft(p, o.Listed)
	p.blank()
	p.line("Text (%d characters):", len([]rune(o.DraftText)))
	p.quote(o.DraftText)
	showFilings(p, o.Filings)
	showDecisions(p, o.Decisions)
	showSnapshot(p, o)
	showClaim(p, o.Claim, now)
	showRest(p, o.Resting)
	showDelivery(p, o.Delivery)
	showAudit(p, o.Audit)
	if o.Status == ledger.StatusDrafted {
		p.blank()
		p.line("to decide: %s approve %d --epoch %d", programName, o.ObligationID, o.Epoch)
		p.line("           %s reject %d --epoch %d --reason '…'", programName, o.ObligationID, o.Epoch)
	}
}

func showDraft(p *page, o ledger.Listed) {
	list := []field{
		{"obligation", fmt.Sprint(o.ObligationID)},
		{"status", string(o.Status)},
		{"epoch", fmt.Sprint(o.Epoch)},
		{"counterparty", o.Counterparty},
		{"platform", o.Platform},
		{"channel", o.Channel},
		{"thread", optional(o.Thread)},
		{"subject", optional(o.Subject)},
		{"priority", string(o.Priority)},
		{"agent", orNone(o.Agent)},
		{"filed", p.time(o.FiledTS)},
		{"summary", orNone(o.Summary)},
		{"text sha256", orNone(o.DraftSHA256)},
		{"envelope", orNone(o.EnvelopeSHA256)},
		{"marks", orNone(strings.Join(o.Markers, " "))},
		{"votes", fmt.Sprintf("%d of %d", o.Votes, o.Needed)},
	}
	if o.AutoSendAfter != nil {
		list = append(list, field{"sends itself", p.time(*o.AutoSendAfter)})
	}
	p.fields(list...)
	if o.Context != "" {
		p.blank()
		p.line("Context:")
		p.quote(o.Context)
	}
}

func optional(s *string) string {
	if s == nil {
		return "-"
	}
	return orNone(*s)
}

func showFilings(p *page, filings []ledger.FilingShown) {
	var rows [][]string
	for _, f := range filings {
		rows = append(rows, []string{fmt.Sprint(f.Epoch), p.time(f.FiledTS), f.TextSHA256[:min(16, len(f.TextSHA256))],
			f.Agent, destination(f.Platform, f.Channel)})
	}
	p.section("Filings:", []column{{title: "EPOCH"}, {title: "FILED"}, {title: "TEXT SHA256"}, {title: "AGENT", cut: true},
		{title: "DESTINATION", cut: true}}, rows)
}

// section is a heading and a table, or nothing where there are no rows.
func (p *page) section(heading string, columns []column, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.blank()
	p.line("%s", heading)
	p.table(columns, rows)
}

func showDecisions(p *page, decisions []ledger.DecisionShown) {
	for _, d := range decisions {
		p.blank()
		p.line("Decision %d:", d.DecisionID)
		list := []field{
			{"decision", string(d.Decision)},
			{"operator", d.Operator},
			{"epoch", fmt.Sprint(d.Epoch)},
			{"decided", p.time(d.DecidedTS)},
		}
		if d.Reason != "" {
			list = append(list, field{"reason", d.Reason})
		}
		if d.Voided != "" {
			list = append(list, field{"void", fmt.Sprintf("%s by %s: %s", d.Voided, d.VoidedBy, d.VoidedReason)})
		}
		p.fields(list...)
	}
}

func showSnapshot(p *page, o ledger.Shown) {
	s := o.Snapshot
	if s == nil {
		return
	}
	p.blank()
	p.line("Approved by decision %d:", s.DecisionID)
	p.fields(
		field{"epoch", fmt.Sprint(s.Epoch)},
		field{"platform", s.Platform},
		field{"channel", s.Channel},
		field{"thread", optional(s.Thread)},
		field{"subject", optional(s.Subject)},
		field{"text sha256", s.TextSHA256},
		field{"envelope", orNone(s.EnvelopeSHA256)},
	)
	if s.Text == o.DraftText {
		p.line("The approved text is the one above.")
		return
	}
	p.line("The approved text is another than the one above:")
	p.quote(s.Text)
}

func showClaim(p *page, h *ledger.HeldClaim, now time.Time) {
	if h == nil {
		return
	}
	p.blank()
	p.line("Claim on decision %d:", h.DecisionID)
	p.fields(
		field{"state", string(h.State)},
		field{"outcome", orNone(string(h.Outcome))},
		field{"stage", orNone(h.Stage)},
		field{"detail", orNone(h.Detail)},
		field{"settled", yesNo(h.Settled)},
		field{"worker", h.Worker},
		field{"key", h.Key},
		field{"claimed", p.time(h.CreatedTS)},
		field{"changed", fmt.Sprintf("%s (%s ago)", p.time(h.UpdatedTS), age(now, h.UpdatedTS))},
	)
}

// showRest tells why an approved message is not on its way.
func showRest(p *page, r *ledger.RestShown) {
	if r == nil {
		return
	}
	p.blank()
	p.line("Its destination could not be prepared, and is left alone until %s; %s deliver --now doesn't wait:", p.time(r.UntilTS), programName)
	p.quote(r.Cause)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func showDelivery(p *page, d *ledger.DeliveryShown) {
	if d == nil {
		return
	}
	p.blank()
	p.line("Receipt:")
	p.fields(
		field{"kind", d.Kind},
		field{"coordinate", orNone(d.Coordinate)},
		field{"delivered", p.time(d.DeliveredTS)},
		field{"altered", yesNo(d.Altered)},
	)
}
