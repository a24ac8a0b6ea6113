package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/ledger"
)

// What another program may write with the guards on, and what the ledger does then.

// rawSQL runs statements that the guards let pass.
func (d *desk) rawSQL(format string, args ...any) {
	d.t.Helper()
	must(d.t, second(d.plain().Exec(fmt.Sprintf(format, args...))))
}

// receipt writes a receipt by hand.
func (d *desk) receipt(c ledger.Claim, coordinate string) {
	d.t.Helper()
	d.rawSQL(`INSERT INTO obligation_deliveries VALUES (NULL, %d, %d, 'draft_sent', '%s', 1)`, c.ObligationID, c.DecisionID, coordinate)
}

// A receipt that raw SQL had written used to make Complete and Reconcile fail for ever.
func TestAReceiptByHandThatSaysTheSameIsTaken(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ends := map[string]func(c ledger.Claim) error{
		"complete": func(c ledger.Claim) error { return d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x1"}) },
		"confirm": func(c ledger.Claim) error {
			return d.ConfirmSpooled(t.Context(), c.DecisionID, "w2", ledger.Receipt{Coordinate: "x1"}, func(string) bool { return true })
		},
		"reconcile": func(c ledger.Claim) error {
			must(t, d.MarkDead(t.Context(), c.DecisionID, "w1", "w2"))
			return second(d.Reconcile(t.Context(), d.anna, c.ObligationID, "x1", "seen there"))
		},
	}
	for name, end := range ends {
		d.party = name
		c := d.claim(d.approved("one"))
		d.begin(c)
		d.receipt(c, "x1")
		must(t, end(c))
		if s := d.show(c.ObligationID); s.Status != ledger.StatusSent || s.Claim.State != ledger.ClaimDelivered || s.Delivery.Coordinate != "x1" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if checked, err := d.Check(t.Context()); err != nil || !checked.OK {
		t.Errorf("%q, %v", checked.Problems, err)
	}
}

func TestAReceiptByHandThatSaysAnotherThingIsTheOperators(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.claim(d.approved("one"))
	d.begin(c)
	d.receipt(c, "elsewhere")
	err := want[*ledger.ContradictionError](t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x1"}))
	for _, word := range []string{`"elsewhere"`, `"x1"`, fmt.Sprintf(`countersign reconcile %d --coordinate "elsewhere"`, c.ObligationID)} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v doesn't say %s", err, word)
		}
	}
	if s := d.show(c.ObligationID); s.Status != ledger.StatusApproved || s.Claim.State != ledger.ClaimDispatching {
		t.Errorf("a contradiction changed the claim: %+v", s.Claim)
	}
	must(t, d.MarkDead(t.Context(), c.DecisionID, "w1", "w2")) // as recovery does when the worker has ended
	must(t, second(d.Reconcile(t.Context(), d.anna, c.ObligationID, "elsewhere", "the provider's log says so")))
	if s := d.show(c.ObligationID); s.Status != ledger.StatusSent {
		t.Errorf("it is %s", s.Status)
	}
}

// A repetition that knew that the text was altered used to be a no-op, and nobody heard of it.
func TestAnAlterationFoundLaterIsRecordedOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.claim(d.approved("one"))
	d.begin(c)
	found := func() []int {
		return []int{d.count(`SELECT count(*) FROM notices WHERE kind = 'altered'`), d.count(`SELECT count(*) FROM audit_log WHERE event = 'altered'`),
			d.count(`SELECT count(*) FROM delivery_attempts WHERE altered = 1`), d.count(`SELECT count(*) FROM obligation_deliveries`)}
	}
	for i, step := range []struct {
		altered bool
		want    []int
	}{{false, []int{0, 0, 0, 1}}, {false, []int{0, 0, 0, 1}}, {true, []int{1, 1, 1, 1}}, {true, []int{1, 1, 1, 1}}, {false, []int{1, 1, 1, 1}}} {
		must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x1", Altered: step.altered}))
		if got := found(); !slices.Equal(got, step.want) {
			t.Errorf("after %d: %v, want %v", i, got, step.want)
		}
	}
	if s := d.show(c.ObligationID); !s.Delivery.Altered || s.Delivery.Coordinate != "x1" {
		t.Errorf("%+v", s.Delivery)
	}
}

// An approval whose only ground raw SQL had taken away used to pass `db check`, though nothing can ever deliver it.
func TestCheckFindsAnApprovalThatGrantsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.party = "voided"
	voided := d.approved("one")
	d.party = "used"
	used := d.approved("one")
	d.party = "sound"
	d.unknown("one")
	d.party = "waiting"
	d.approved("one")
	d.rawSQL(`INSERT INTO voided_approvals VALUES (%d, %d, 'revoked', 'eve', 'raw', NULL, 1)`, voided.DecisionID, voided.ObligationID)
	d.rawSQL(`INSERT INTO obligation_delivery_claims VALUES (%d, %d, 'raw', 'claimed', 1, 1, NULL)`, used.ObligationID, used.DecisionID)
	d.rawSQL(`UPDATE obligation_delivery_claims SET state = 'cancelled' WHERE token = 'raw'`)
	checked, err := d.Check(t.Context())
	must(t, err)
	var expected []string
	for _, v := range []ledger.Decided{voided, used} {
		expected = append(expected, fmt.Sprintf("obligation %d is approved, but its approval was taken out of circulation or used up", v.ObligationID))
	}
	slices.Sort(checked.Problems)
	if !slices.Equal(checked.Problems, expected) {
		t.Errorf("%q, want %q", checked.Problems, expected)
	}
}

// A filing of a later epoch than its obligation's is none that an operator was shown.
func TestAFilingFromTheFutureIsNotApproved(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filed := d.file(d.filing("one"))
	d.tamper(`UPDATE filings SET epoch = epoch + 1`)
	_, err := d.Decide(t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Approve, Operator: d.anna})
	want[*ledger.MismatchError](t, err)
}
