package schema_test

import (
	"fmt"
	"slices"
	"testing"

	"countersign/ledger"
	"countersign/operator"
)

// adopted is a foreign ledger after its upgrade, with an operator.
type adopted struct {
	*ledger.Ledger
	t  *testing.T
	op operator.Operator
}

func adopt(t *testing.T, l life) adopted {
	t.Helper()
	opened, _ := upgraded(t, l)
	op, err := knownOperator()
	if err != nil {
		t.Fatal(err)
	}
	return adopted{opened, t, op}
}

func (a adopted) epoch(id int64) int64 {
	a.t.Helper()
	shown, err := a.Show(a.t.Context(), id)
	if err != nil {
		a.t.Fatal(err)
	}
	return shown.Epoch
}

func (a adopted) approve(id int64) (ledger.Decided, error) {
	a.t.Helper()
	return a.Decide(a.t.Context(), ledger.Decision{ObligationID: id, Epoch: a.epoch(id), Verdict: ledger.Approve, Operator: a.op})
}

// sends takes the obligation, which waits, all the way to sent.
func (a adopted) sends(id int64) {
	a.t.Helper()
	v, err := a.approve(id)
	if err != nil {
		a.t.Fatalf("approve %d: %v", id, err)
	}
	c, err := a.Claim(a.t.Context(), v.DecisionID, "w1")
	if err != nil {
		a.t.Fatalf("claim %d: %v", id, err)
	}
	payload, err := a.BeginDispatch(a.t.Context(), c)
	if err != nil || payload.Text == "" {
		a.t.Fatalf("begin %d: %+v, %v", id, payload, err)
	}
	if err := a.Complete(a.t.Context(), c, ledger.Receipt{Coordinate: "250 ok"}); err != nil {
		a.t.Fatalf("complete %d: %v", id, err)
	}
}

func (a adopted) refile(id int64) ledger.Filed {
	a.t.Helper()
	draft, err := ledger.Clean(ledger.Filing{Counterparty: fmt.Sprintf("c%d", id), Platform: "smtp", Channel: fmt.Sprintf("%d@example.com", id),
		Text: "filed anew", Agent: "quoter"}, ledger.DefaultLimits())
	if err != nil {
		a.t.Fatal(err)
	}
	filed, err := a.File(a.t.Context(), draft, ledger.Gates{})
	if err != nil {
		a.t.Fatal(err)
	}
	return filed
}

func TestWhatWaitedCanBeApprovedAfterTheUpgrade(t *testing.T) {
	a := adopt(t, foreign(t))
	a.sends(fDrafted)
	a.sends(fCancelled) // its earlier decision has a cancelled claim
}

func TestImportedDraftsGetTheirMarks(t *testing.T) {
	a := adopt(t, foreign(t, `UPDATE obligation_drafts SET draft_text = 'pay 9'||char(8203)||'0' WHERE obligation_id = 2`))
	shown, err := a.Show(t.Context(), fDrafted)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(shown.Markers, "[NEW DESTINATION]") || len(shown.Markers) != 2 {
		t.Errorf("markers %q, want a hidden text and a new destination: without a mark a machine could approve it", shown.Markers)
	}
}

func TestADraftWithAWrongHashIsNotApprovedUntilItIsFiledAnew(t *testing.T) {
	a := adopt(t, foreign(t))
	_, err := a.approve(fWrongHash)
	want[*ledger.MismatchError](t, err)
	if filed := a.refile(fWrongHash); !filed.Refiled || filed.ObligationID != fWrongHash {
		t.Errorf("filed %+v", filed)
	}
	a.sends(fWrongHash)
}

// A foreign draft never went through Clean: line breaks in an address used to be approvable.
func TestADraftThatWasNeverCleanedIsNotApproved(t *testing.T) {
	a := adopt(t, foreign(t))
	_, err := a.approve(fUncleaned)
	want[*ledger.MismatchError](t, err)
	if _, err := a.Decide(t.Context(), ledger.Decision{ObligationID: fUncleaned, Epoch: a.epoch(fUncleaned), Verdict: ledger.Reject, Operator: a.op, Reason: "an address with a line break"}); err != nil {
		t.Errorf("it can't be rejected either: %v", err)
	}
}

func TestApprovalsWithoutOurEnvelopeAreListedAndNeverClaimed(t *testing.T) {
	l := foreign(t)
	out, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out.Manual, []int64{fApproved, fClaimed, fDispatching, fUnknown}) || !slices.Equal(out.Held, []int64{fClaimed, fDispatching, fUnknown}) {
		t.Errorf("manual %v, held %v", out.Manual, out.Held)
	}
	a := adopt(t, l)
	if offered, err := a.Destinations(t.Context(), ledger.DeliverFilter{}); err != nil || len(offered) != 0 {
		t.Errorf("offered for delivery: %v, %v", offered, err)
	}
	_, err = a.Claim(t.Context(), fApproved+100, "w1")
	want[*ledger.MismatchError](t, err)
	for _, id := range []int64{fClaimed, fDispatching, fUnknown} {
		_, err = a.Claim(t.Context(), id+100, "w1")
		want[*ledger.HeldError](t, err)
	}
}

func TestNoImportedApprovalIsADeadEnd(t *testing.T) {
	a := adopt(t, foreign(t))
	if _, err := a.Revoke(t.Context(), ledger.Revocation{ObligationID: fApproved, Operator: a.op, Reason: "approved elsewhere"}); err != nil {
		t.Fatalf("revoke: %v", err)
	}
	a.sends(fApproved)
	if _, err := a.CancelByOperator(t.Context(), a.op, fClaimed, "claimed elsewhere"); err != nil {
		t.Fatalf("cancel: %v", err)
	}
	a.sends(fClaimed)
	if err := a.MarkDead(t.Context(), fDispatching+100, "unknown", "w1"); err != nil {
		t.Fatalf("mark dead: %v", err)
	}
	if _, err := a.Reconcile(t.Context(), a.op, fDispatching, "<x@y>", "seen in the mailbox"); err != nil {
		t.Fatalf("reconcile: %v", err)
	}
	if _, err := a.Settle(t.Context(), a.op, fUnknown, "they never got it"); err != nil {
		t.Fatalf("settle: %v", err)
	}
	filed := a.refile(fUnknown)
	if filed.Refiled || !slices.Contains(filed.Markers, fmt.Sprintf("[UNRESOLVED_DELIVERY #%d]", fUnknown)) {
		t.Errorf("filed beside a settled delivery: %+v", filed)
	}
	a.sends(filed.ObligationID)
	if checked, err := a.Check(t.Context()); err != nil || len(checked.Problems) != 1 { // the wrong hash stays as it came
		t.Errorf("%q, %v", checked.Problems, err)
	}
}

func TestAForeignClaimWithoutAHolderIsAdoptedByNobody(t *testing.T) {
	a := adopt(t, foreign(t))
	_, err := a.Adopt(t.Context(), fClaimed+100, "unknown", "w1")
	want[*ledger.StatusError](t, err)
	if _, err := a.BeginDispatch(t.Context(), ledger.Claim{ObligationID: fClaimed, DecisionID: fClaimed + 100, Token: fmt.Sprintf("t%d", fClaimed), Worker: "unknown"}); err == nil {
		t.Error("begun without our envelope")
	}
}
