package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/ledger"
)

// Which claims keep their pair from being filed for, and what lifts that.

func TestAnActiveClaimBlocksFilingOnItsPair(t *testing.T) {
	t.Parallel()
	for state, reach := range map[ledger.ClaimState]func(d *desk, v ledger.Decided){
		ledger.ClaimClaimed:     func(d *desk, v ledger.Decided) { d.claim(v) },
		ledger.ClaimDispatching: func(d *desk, v ledger.Decided) { d.begin(d.claim(v)) },
		ledger.ClaimUnknown: func(d *desk, v ledger.Decided) {
			c := d.claim(v)
			d.begin(c)
			must(d.t, d.MarkUnknown(d.t.Context(), c, ledger.Failure{Outcome: ledger.Refused, Stage: "rcpt"}))
		},
	} {
		t.Run(string(state), func(t *testing.T) {
			d := newDesk(t)
			v := d.approved("one")
			reach(d, v)
			_, err := d.File(t.Context(), d.clean(filing("two")), ledger.Gates{})
			held := want[*ledger.HeldError](t, err)
			if held.ObligationID != v.ObligationID || held.State != state {
				t.Errorf("%+v", held)
			}
			if n := d.count(`SELECT count(*) FROM filings`); n != 1 {
				t.Errorf("%d filings", n)
			}
			if n := d.count(`SELECT count(*) FROM audit_log WHERE event = 'refused' AND actor = 'quoter'`); n != 1 {
				t.Errorf("%d refusals were recorded", n)
			}
			other := filing("two")
			other.Channel = "another@acme.example"
			d.file(other) // another pair is free
			other = filing("two")
			other.Counterparty = "another"
			d.file(other)
		})
	}
}

// The platform is no part of the pair.
func TestAnActiveClaimBlocksItsPairOnEveryPlatform(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.claim(d.approved("one"))
	elsewhere := filing("two")
	elsewhere.Platform = "local"
	_, err := d.File(t.Context(), d.clean(elsewhere), ledger.Gates{})
	want[*ledger.HeldError](t, err)
}

func TestCancellingBeforeDispatchFreesThePairAndVoidsTheToken(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(d *desk, c ledger.Claim) error{
		"by its holder": func(d *desk, c ledger.Claim) error { return d.Cancel(d.t.Context(), c, "shutting down") },
		"by an operator": func(d *desk, c ledger.Claim) error {
			_, err := d.CancelByOperator(d.t.Context(), d.ben, c.ObligationID, "stuck")
			return err
		},
		"by a revocation": func(d *desk, c ledger.Claim) error {
			_, err := d.Revoke(d.t.Context(), ledger.Revocation{ObligationID: c.ObligationID, Operator: d.ben, Reason: "wrong price"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			v := d.approved("one")
			c := d.claim(v)
			must(t, cancel(d, c))
			for name, step := range map[string]error{
				"begin":    second(d.BeginDispatch(t.Context(), c)),
				"complete": d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}),
				"unknown":  d.MarkUnknown(t.Context(), c, ledger.Failure{Outcome: ledger.Ambiguous}),
				"cancel":   d.Cancel(t.Context(), c, "again"),
				"adopt":    second(d.Adopt(t.Context(), c.DecisionID, c.Worker, "w2")),
				"dead":     d.MarkDead(t.Context(), c.DecisionID, c.Worker, "w2"),
			} {
				if lost := want[*ledger.LostClaimError](t, step); lost.State != ledger.ClaimCancelled {
					t.Errorf("%s: %+v", name, lost)
				}
			}
			_, err := d.Claim(t.Context(), v.DecisionID, "w2")
			want[*ledger.VoidedError](t, err)
			s := d.show(v.ObligationID)
			if s.Status != ledger.StatusDrafted || s.Epoch <= v.Epoch {
				t.Errorf("it is %s at epoch %d, was approved at %d", s.Status, s.Epoch, v.Epoch)
			}
			if filed := d.file(filing("two")); !filed.Refiled || filed.ObligationID != v.ObligationID {
				t.Errorf("%+v", filed)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestOnceDispatchingNobodyCancels(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	d.begin(c)
	for range 2 { // while dispatching, and while unknown
		_, err := d.CancelByOperator(t.Context(), d.anna, v.ObligationID, "please")
		want[*ledger.TooLateError](t, err)
		_, err = d.Revoke(t.Context(), ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "please"})
		want[*ledger.TooLateError](t, err)
		_, err = d.CloseByHand(t.Context(), d.anna, v.ObligationID, "please")
		want[*ledger.HeldError](t, err)
		want[*ledger.LostClaimError](t, d.Cancel(t.Context(), c, "please"))
		must(t, d.MarkUnknown(t.Context(), c, ledger.Failure{Outcome: ledger.Ambiguous, Stage: "final-dot"}))
	}
	if s := d.show(v.ObligationID); s.Claim.State != ledger.ClaimUnknown || s.Status != ledger.StatusApproved {
		t.Errorf("%s, %s", s.Claim.State, s.Status)
	}
}

func TestASettlementFreesThePairAndMarksWhatFollows(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.unknown("one")
	settled, err := d.Settle(t.Context(), d.anna, v.ObligationID, "their server has no such message")
	must(t, err)
	if settled.Status != ledger.StatusApproved || settled.DecisionID != v.DecisionID {
		t.Errorf("%+v", settled)
	}
	claims, err := d.Claims(t.Context())
	must(t, err)
	if len(claims) != 1 || claims[0].State != ledger.ClaimUnknown || !claims[0].Settled {
		t.Errorf("the claim stays unknown: %+v", claims)
	}
	mark := fmt.Sprintf("[UNRESOLVED_DELIVERY #%d]", v.ObligationID)
	for i, text := range []string{"two", "three"} { // the mark stays when it is filed again
		filed := d.file(filing(text))
		if filed.Refiled != (i > 0) || filed.ObligationID == v.ObligationID || !slices.Contains(filed.Markers, mark) {
			t.Errorf("%+v lacks %s", filed, mark)
		}
		if context := d.show(filed.ObligationID).Context; !strings.Contains(context, mark) {
			t.Errorf("the context %q lacks %s", context, mark)
		}
	}
	_, err = d.Claim(t.Context(), v.DecisionID, "w2") // the settled one is never sent again
	want[*ledger.HeldError](t, err)
	_, err = d.Settle(t.Context(), d.anna, v.ObligationID, "again")
	want[*ledger.StatusError](t, err)
}

func TestASettledDeliveryCanStillBeReconciled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.unknown("one")
	_, err := d.Settle(t.Context(), d.anna, v.ObligationID, "no trace of it")
	must(t, err)
	filed := d.file(filing("two"))
	out, err := d.Reconcile(t.Context(), d.ben, v.ObligationID, "<1@example>", "it turned up in the spam folder")
	must(t, err)
	if out.Status != ledger.StatusSent {
		t.Errorf("%+v", out)
	}
	if s := d.show(filed.ObligationID); s.Status != ledger.StatusDrafted {
		t.Errorf("the new draft is %s", s.Status)
	}
}

func TestOnlyAnUnknownDeliveryIsSettledOrReconciled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	try := func() {
		t.Helper()
		_, err := d.Settle(t.Context(), d.anna, v.ObligationID, "e")
		want[*ledger.StatusError](t, err)
		_, err = d.Reconcile(t.Context(), d.anna, v.ObligationID, "c", "e")
		want[*ledger.StatusError](t, err)
	}
	try()
	c := d.claim(v)
	try()
	d.begin(c)
	try()
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	try()
	unknown := d.unknown("two")
	for _, evidence := range []string{"", " \t\n", strings.Repeat("e", 4001), "\xff"} {
		_, err := d.Settle(t.Context(), d.anna, unknown.ObligationID, evidence)
		want[*ledger.InputError](t, err)
		_, err = d.Reconcile(t.Context(), d.anna, unknown.ObligationID, "c", evidence)
		want[*ledger.InputError](t, err)
	}
	_, err := d.Reconcile(t.Context(), d.anna, unknown.ObligationID, " ", "e")
	want[*ledger.InputError](t, err)
}

func TestAnApprovalThatNobodyClaimedIsLeftAloneWithAWarning(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	filed := d.file(filing("two"))
	if filed.Refiled || filed.ObligationID == v.ObligationID || len(filed.Warnings) != 1 || !strings.Contains(filed.Warnings[0], fmt.Sprintf("obligation %d ", v.ObligationID)) {
		t.Errorf("%+v", filed)
	}
	d.begin(d.claim(v))
	_, err := d.File(t.Context(), d.clean(filing("three")), ledger.Gates{}) // the new draft waits, but its pair is held now
	want[*ledger.HeldError](t, err)
}
