package desk_test

import (
	"strings"
	"testing"

	"countersign/desk"
	"countersign/ledger"
	"countersign/notify"
	"countersign/sweep"
	"countersign/tests/fakeslack"
)

var deliverOnce = sweep.Options{NoBackoff: true}

// An approval by one click binds the view that was on the card.
func TestAClickApproves(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{})
	s.click(s.card(filed.ObligationID, notify.ActionApprove), notify.ActionApprove, anna)
	s.status(filed.ObligationID, ledger.StatusApproved)
	shown := s.show(filed.ObligationID)
	if len(shown.Decisions) != 1 || shown.Decisions[0].Operator != "anna" || shown.Snapshot == nil {
		t.Errorf("%+v", shown)
	}
	if n := s.count(`SELECT count(*) FROM decision_views WHERE decision_id = $1`, shown.Decisions[0].DecisionID); n != 1 {
		t.Errorf("%d views are bound to the decision", n)
	}
	s.card(filed.ObligationID, notify.ActionUndo)
}

// FAULTS 19: the button on the screen of somebody who didn't look is of another epoch.
func TestAClickOnAnOldCardIsSuperseded(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"changed": "121 pumps.", "identical": "120 pumps."} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.usual()
			first := s.file(filing("120 pumps."))
			s.serve(desk.ServeOptions{})
			old := s.card(first.ObligationID, notify.ActionApprove)
			again := s.file(filing(text))
			if again.ObligationID != first.ObligationID || again.Epoch == first.Epoch {
				t.Fatalf("%+v, %+v", first, again)
			}
			s.click(old, notify.ActionApprove, anna)
			contains(t, s.said(anna, 1), "superseded", "Nothing was decided")
			s.untouched(again)
			if n := s.count(`SELECT count(*) FROM obligation_approval_snapshots WHERE obligation_id = $1`, first.ObligationID); n != 0 {
				t.Errorf("%d snapshots", n)
			}
			now := s.card(again.ObligationID, notify.ActionApprove)
			if now.TS != old.TS || hasButton(now, notify.ActionApprove, first.Epoch) || len(s.slack.Ephemerals(bert.ID)) != 0 {
				t.Errorf("the old buttons stand, or somebody else was told: %v", fakeslack.Buttons(now))
			}
			s.click(now, notify.ActionApprove, anna)
			s.status(again.ObligationID, ledger.StatusApproved)
		})
	}
}

// FAULTS 20: of a double click the second finds a decision.
func TestADoubleClickDecidesOnce(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	first := s.click(m, notify.ActionApprove, anna)
	s.status(filed.ObligationID, ledger.StatusApproved)
	s.click(m, notify.ActionApprove, anna)
	contains(t, s.said(anna, 1), "Already decided by anna at 20", "(approved)")
	if _, err := s.slack.Redeliver(s.ctx(), first); err != nil {
		t.Fatal(err)
	}
	s.must(s.stop())
	s.decidedOnce(filed.ObligationID)
	if n := len(s.slack.Ephemerals(anna.ID)); n != 1 {
		t.Errorf("the redelivered click was answered with %d more sentences", n-1)
	}
}

func (s *stage) decidedOnce(id int64) {
	s.t.Helper()
	decisions := s.count(`SELECT count(*) FROM obligation_decisions WHERE obligation_id = $1`, id)
	snapshots := s.count(`SELECT count(*) FROM obligation_approval_snapshots WHERE obligation_id = $1`, id)
	if decisions != 1 || snapshots > 1 {
		s.t.Errorf("%d decisions, %d snapshots", decisions, snapshots)
	}
}

// FAULTS 20: approve against reject at once.
func TestOfApproveAndRejectOneWins(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	s.click(m, notify.ActionReject, bert)
	reject := s.slack.Submit(s.modal(1), map[string]string{"words": "too dear"}, bert)
	approve := s.slack.Click(m, notify.ActionApprove, anna)
	sent := make(chan error, 2)
	for _, in := range []fakeslack.Interaction{reject, approve} {
		go func() { _, err := s.slack.Send(s.ctx(), in); sent <- err }()
	}
	s.must(<-sent)
	s.must(<-sent)
	s.until("the loser is told", func() bool { return len(s.slack.Ephemerals(anna.ID))+len(s.slack.Ephemerals(bert.ID)) == 1 })
	s.decidedOnce(filed.ObligationID)
	winner, loser := "anna", bert
	if s.show(filed.ObligationID).Status == ledger.StatusRejected {
		winner, loser = "bert", anna
	}
	contains(t, s.said(loser, 1), "Already decided by "+winner+" at 20")
}

// FAULTS 20 and 23: a late word rewrites nothing, and is told the truth.
func TestALateRejectRewritesNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{})
	m := s.card(filed.ObligationID, notify.ActionReject)
	approved := s.approve(filed)
	s.begin(approved)
	s.click(m, notify.ActionReject, bert)
	s.submit(s.modal(1), map[string]string{"words": "no"}, bert)
	contains(t, s.said(bert, 1), "Already decided by anna at 20", "(approved)")
	s.decidedOnce(filed.ObligationID)
	if shown := s.show(filed.ObligationID); shown.Status != ledger.StatusApproved || shown.Claim.State != ledger.ClaimDispatching {
		t.Errorf("%+v", shown)
	}
}

// begin claims an approval and begins its dispatch, as a worker does.
func (s *stage) begin(d ledger.Decided) ledger.Claim {
	s.t.Helper()
	claim, err := s.term.Ledger.Claim(s.t.Context(), d.DecisionID, "worker-1")
	s.must(err)
	_, err = s.term.Ledger.BeginDispatch(s.t.Context(), claim)
	s.must(err)
	return claim
}

// FAULTS 22: an approval can be undone until its dispatch begins.
func TestUndoUntilDispatchBegins(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.approve(filed)
	s.serve(desk.ServeOptions{})
	m := s.card(filed.ObligationID, notify.ActionUndo)
	undo := s.click(m, notify.ActionUndo, bert)
	s.status(filed.ObligationID, ledger.StatusDrafted)
	if _, err := s.slack.Redeliver(s.ctx(), undo); err != nil {
		t.Fatal(err)
	}
	now := s.show(filed.ObligationID)
	if now.Epoch == filed.Epoch || now.Decisions[0].Voided != "revoked" || now.Decisions[0].VoidedBy != "bert" {
		t.Errorf("%+v", now)
	}
	again := s.approve(ledger.Filed{ObligationID: filed.ObligationID, Epoch: now.Epoch})
	// An old card's Undo used to take back the approval of a later epoch, which its operator had not seen.
	s.click(m, notify.ActionUndo, anna)
	contains(t, s.said(anna, 1), "superseded")
	fresh := s.card(filed.ObligationID, notify.ActionUndo)
	s.begin(again)
	s.click(fresh, notify.ActionUndo, bert)
	contains(t, s.said(bert, 1), "Already decided by anna at 20", "its delivery is dispatching")
	if shown := s.show(filed.ObligationID); shown.Status != ledger.StatusApproved || shown.Claim.State != ledger.ClaimDispatching {
		t.Errorf("%+v", shown)
	}
}

// FAULTS 22: what is revoked between claim and begin is not sent.
func TestUndoBetweenClaimAndBegin(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	approved := s.approve(filed)
	claim, err := s.term.Ledger.Claim(t.Context(), approved.DecisionID, "worker-1")
	s.must(err)
	s.serve(desk.ServeOptions{})
	s.click(s.card(filed.ObligationID, notify.ActionUndo), notify.ActionUndo, bert)
	s.status(filed.ObligationID, ledger.StatusDrafted)
	if payload, err := s.term.Ledger.BeginDispatch(t.Context(), claim); err == nil {
		t.Errorf("dispatch began: %+v", payload)
	}
}

// FAULTS 24: the reasons reach the agent.
func TestReasonsReachTheAgent(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{})
	m := s.card(filed.ObligationID, notify.ActionChanges)
	s.click(m, notify.ActionChanges, anna)
	steer := s.submit(s.modal(1), map[string]string{"words": " say 430 EUR & no more "}, anna)
	s.until("the agent is told", func() bool { return len(s.inbox("steered")) == 1 })
	if _, err := s.slack.Redeliver(s.ctx(), steer); err != nil {
		t.Fatal(err)
	}
	s.click(m, notify.ActionReject, anna)
	s.submit(s.modal(2), map[string]string{"words": "we don't sell pumps"}, anna)
	s.status(filed.ObligationID, ledger.StatusRejected)
	contains(t, strings.Join(s.inbox("rejected"), "\n"), "Rejected by anna: we don't sell pumps")
	s.must(s.stop())
	if steered := s.inbox("steered"); len(steered) != 1 || steered[0] != "anna asks for changes: say 430 EUR & no more" {
		t.Errorf("%q", steered)
	}
}

// inbox is what the agent was told of a kind.
func (s *stage) inbox(kind string) (bodies []string) {
	s.t.Helper()
	all, err := s.term.Ledger.Inbox(s.t.Context(), "quoter")
	s.must(err)
	for _, f := range all {
		if f.Kind == kind {
			bodies = append(bodies, f.Body)
		}
	}
	return bodies
}
