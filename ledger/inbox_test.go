package ledger_test

import (
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

// The agent learns of everything that became of its draft.
func TestTheAgentHearsWhatBecameOfItsDraft(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	for name, test := range map[string]struct {
		reach func(d *desk)
		kinds string
		says  string // in the last one
	}{
		"approved":   {func(d *desk) { d.approved("one") }, "approved", "anna"},
		"rejected":   {func(d *desk) { d.decide(d.file(d.filing("one")), ledger.Reject) }, "rejected", "because"},
		"sent":       {func(d *desk) { d.sent("one", 0) }, "approved sent", "x"},
		"unknown":    {func(d *desk) { d.unknown("one") }, "approved held", "final-dot"},
		"settled":    {func(d *desk) { d.settled("one") }, "approved held held", "no trace"},
		"revoked":    {func(d *desk) { d.revoked("one") }, "approved revoked", "anna: no"},
		"cancelled":  {func(d *desk) { must(d.t, d.Cancel(d.t.Context(), d.claim(d.approved("one")), "the host goes down")) }, "approved revoked", "the host goes down"},
		"superseded": {func(d *desk) { d.file(d.filing("one")); f := d.filing("two"); f.Agent = "rival"; d.file(f) }, "superseded", "rival"},
		"its own":    {func(d *desk) { d.file(d.filing("one")); d.file(d.filing("two")) }, "", ""},
		"closed": {func(d *desk) {
			must(d.t, second(d.CloseByHand(d.t.Context(), d.anna, d.file(d.filing("one")).ObligationID, "by telephone")))
		}, "superseded", "by telephone"},
		"expired": {func(d *desk) {
			v := d.approved("one")
			d.tick(3 * time.Hour)
			want[*ledger.ExpiredError](d.t, second(d.Claim(d.t.Context(), v.DecisionID, "w1")))
		}, "approved expired", "2h0m0s"},
	} {
		d.agent, d.party = "filer of "+name, name
		test.reach(d)
		var kinds []string
		inbox := mustList(d.Inbox(t.Context(), d.agent))(t)
		for _, f := range inbox {
			kinds = append(kinds, f.Kind)
		}
		if got := strings.Join(kinds, " "); got != test.kinds {
			t.Fatalf("%s: it hears %q, want %q", name, got, test.kinds)
		}
		if len(inbox) > 0 && !strings.Contains(inbox[len(inbox)-1].Body, test.says) {
			t.Errorf("%s: %q does not say %q", name, inbox[len(inbox)-1].Body, test.says)
		}
	}
}

func TestAnAcknowledgementTakesOutWhatIsTheAgents(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.sent("one", 0)
	inbox := mustList(d.Inbox(t.Context(), "quoter"))(t)
	err := d.Acknowledge(t.Context(), "thief", []int64{inbox[0].ID})
	want[*ledger.InputError](t, err)
	want[*ledger.InputError](t, d.Acknowledge(t.Context(), "quoter", []int64{inbox[0].ID, 99})) // all or none
	if left := mustList(d.Inbox(t.Context(), "quoter"))(t); len(left) != 2 {
		t.Errorf("%d left", len(left))
	}
	for range 2 {
		must(t, d.Acknowledge(t.Context(), "quoter", []int64{inbox[0].ID}))
	}
	if left := mustList(d.Inbox(t.Context(), "quoter"))(t); len(left) != 1 || left[0].ID != inbox[1].ID {
		t.Errorf("%+v", left)
	}
}
