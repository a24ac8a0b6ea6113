package ledger_test

import (
	"context"
	"fmt"
	"slices"

	"countersign/ledger"
)

// reads compares what a seat shows (panel, claims, what is to be delivered, inbox, one obligation whole) with the model.
func (w *world) reads() {
	id := int64(w.upTo(len(w.m.obligations), "shown")) + 1
	agent := choose(w, "agent", mAgents)
	got, want := w.shown(id, agent), w.m.shown(id, agent)
	if !slices.Equal(got, want) {
		w.t.Fatalf("the ledger shows\n%q\nwant\n%q", got, want)
	}
}

func (w *world) shown(id int64, agent string) []string {
	ctx, l := context.Background(), w.seat().Ledger
	var panel, claims, ready, inbox, whole []string
	waiting, err := l.Waiting(ctx, ledger.ListFilter{})
	w.must(err)
	for _, o := range waiting {
		panel = append(panel, fmt.Sprintf("waiting %d at %d by %s", o.ObligationID, o.Epoch, o.Agent))
	}
	held, err := l.Claims(ctx)
	w.must(err)
	for _, c := range held {
		if c.State == ledger.ClaimClaimed {
			c.Key = "" // the model learns it at the begin
		}
		claims = append(claims, fmt.Sprintf("claim %d %s %s by %s, settled %t, key %s", c.DecisionID, c.State, c.Outcome, c.Worker, c.Settled, c.Key))
	}
	destinations, err := l.Destinations(ctx, ledger.DeliverFilter{})
	w.must(err)
	for _, d := range destinations {
		ready = append(ready, w.queue(d)...)
	}
	slices.Sort(ready)
	unread, err := l.Inbox(ctx, agent)
	w.must(err)
	for _, f := range unread {
		inbox = append(inbox, fmt.Sprintf("told %d %d %s", f.ID, f.ObligationID, f.Kind))
	}
	o, err := l.Show(ctx, id)
	w.must(err)
	whole = append(whole, fmt.Sprintf("%s at %d: %d filings, %d decisions", o.Status, o.Epoch, len(o.Filings), len(o.Decisions)))
	if o.Claim != nil {
		whole = append(whole, fmt.Sprintf("claim %d %s", o.Claim.DecisionID, o.Claim.State))
	}
	if o.Delivery != nil {
		whole = append(whole, o.Delivery.Kind)
	}
	return slices.Concat(panel, claims, ready, inbox, whole)
}

// queue is what a pass would work on at a destination, in its order.
func (w *world) queue(d ledger.Destination) (out []string) {
	for after := int64(0); ; {
		r, err := w.seat().Next(context.Background(), d, ledger.DeliverFilter{}, after)
		w.must(err)
		if r == nil {
			return out
		}
		if r.DecisionID <= after {
			w.t.Fatalf("decision %d comes after %d", r.DecisionID, after)
		}
		after = r.DecisionID
		out = append(out, fmt.Sprintf("ready in %s %s: %d of %d, held by %q: %s", d.Platform, d.Channel, r.DecisionID, r.ObligationID, r.Holder, r.Text))
	}
}

func (m *model) shown(id int64, agent string) []string {
	var panel, claims, ready, inbox, whole []string
	for _, o := range m.obligations {
		if o.status == ledger.StatusDrafted {
			panel = append(panel, fmt.Sprintf("waiting %d at %d by %s", o.id, o.epoch, o.newest().Agent))
		}
	}
	for _, d := range m.decisions {
		c, o := d.claimOrNone(), m.of(d)
		if d.claim.active() {
			claims = append(claims, fmt.Sprintf("claim %d %s %s by %s, settled %t, key %s", d.id, c.state, c.outcome, c.worker, c.settledBy != "", c.key))
		}
		if m.standing(o) == d && o.status == ledger.StatusApproved && (c.state == "" || c.state == ledger.ClaimClaimed) {
			ready = append(ready, fmt.Sprintf("ready in %s %s: %d of %d, held by %q: %s", o.platform, o.channel, d.id, o.id, c.worker, d.filing.Text))
		}
	}
	slices.Sort(ready)
	for i, f := range m.told {
		if f.agent == agent && !f.acked {
			inbox = append(inbox, fmt.Sprintf("told %d %d %s", i+1, f.obligation, f.kind))
		}
	}
	o, decided, claim, receipt := m.obligation(id), 0, "", ""
	for _, d := range m.decisions {
		if d.obligation != id {
			continue
		}
		decided++
		if d.claim != nil {
			claim = fmt.Sprintf("claim %d %s", d.id, d.claim.state)
		}
	}
	whole = append(whole, fmt.Sprintf("%s at %d: %d filings, %d decisions", o.status, o.epoch, len(o.filings), decided))
	if o.status == ledger.StatusSent {
		receipt = "draft_sent"
	} else if o.byHand != nil {
		receipt = "manual_notice"
	}
	for _, line := range []string{claim, receipt} {
		if line != "" {
			whole = append(whole, line)
		}
	}
	return slices.Concat(panel, claims, ready, inbox, whole)
}
