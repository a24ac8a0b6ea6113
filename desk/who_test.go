package desk_test

import (
	"strings"
	"testing"

	"countersign/desk"
	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// FAULTS 21: who is no operator changes nothing, and is told so alone.
func TestOnlyOperatorsDecide(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	for _, c := range []struct {
		name string
		user fakeslack.User
	}{
		{"an operator's display name with another id", carol},
		{"an operator's id in another team", fakeslack.User{ID: anna.ID, TeamID: "T0ELSEWHERE", Name: "anna"}},
	} {
		before := len(s.slack.Ephemerals(c.user.ID))
		s.click(m, notify.ActionApprove, c.user)
		if said := s.said(c.user, before+1); !strings.Contains(said, "You are not an operator here") {
			t.Errorf("%s: %q", c.name, said)
		}
	}
	s.click(m, notify.ActionApprove, fakeslack.User{ID: "U0NOBODY", TeamID: fakeslack.TeamID}) // Slack shows nothing to whom it doesn't know
	s.until("the refusals are on record", func() bool { return s.refusals() == 3 })
	s.untouched(filed)
}

// refusals counts those of people who are no operators.
func (s *stage) refusals() int {
	s.t.Helper()
	return s.count(`SELECT count(*) FROM audit_log WHERE event = 'refused' AND actor LIKE 'slack:%'`)
}

// FAULTS 21: an operator's account that is no full, living person's any more.
func TestBotsGuestsAndClosedAccountsAreNobody(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeslack.User){
		"a bot":            func(u *fakeslack.User) { u.IsBot = true },
		"a closed account": func(u *fakeslack.User) { u.Deleted = true },
		"a guest":          func(u *fakeslack.User) { u.IsRestricted = true },
		"another team's":   func(u *fakeslack.User) { u.TeamID = "T0ELSEWHERE" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, filed, m := waiting(t)
			changed := anna
			change(&changed)
			s.slack.AddUser(changed)
			s.click(m, notify.ActionApprove, anna)
			s.until("the refusal is on record", func() bool { return s.refusals() == 1 })
			s.untouched(filed)
		})
	}
}

// FAULTS 21: a look-up that fails denies.
func TestWhomSlackDoesNotKnowIsDenied(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	outcomes := []fakeslack.Outcome{fakeslack.Fail("user_not_found"), fakeslack.Status(500, "no"), fakeslack.Reset(), fakeslack.CutJSON(), fakeslack.RateLimited(1)}
	s.slack.Script("users.info", outcomes...)
	for i := range outcomes {
		s.click(m, notify.ActionApprove, anna)
		contains(t, s.said(anna, i+1), "Try again", "nothing was decided")
	}
	s.untouched(filed)
	s.click(m, notify.ActionApprove, anna)
	s.status(filed.ObligationID, ledger.StatusApproved)
}

// The filer is not an operator of its own draft.
func TestTheFilerDoesNotApproveItsOwnDraft(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	f := filing("120 pumps.")
	f.Agent = "bert"
	filed := s.file(f)
	s.serve(desk.ServeOptions{})
	s.click(s.card(filed.ObligationID, notify.ActionApprove), notify.ActionApprove, bert)
	contains(t, s.said(bert, 1), "not an operator of this draft, since you filed it")
	s.untouched(filed)
}

// FAULTS 21: a configuration without operators admits nobody; one whose operators can't be read neither.
func TestRemovedOperatorsAreNobodyAtOnce(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	s.click(m, notify.ActionChanges, anna) // Slack's word on anna is remembered from here on
	s.modal(1)
	s.write("")
	s.click(m, notify.ActionApprove, anna)
	contains(t, s.said(anna, 1), "You are not an operator here")
	s.submit(s.modal(1), map[string]string{"words": "shorter"}, anna)
	contains(t, s.said(anna, 2), "You are not an operator here")
	s.put(s.config, "this is no configuration")
	s.click(m, notify.ActionApprove, anna)
	contains(t, s.said(anna, 3), "Try again")
	s.untouched(filed)
	s.write(operators)
	s.click(m, notify.ActionApprove, anna)
	s.status(filed.ObligationID, ledger.StatusApproved)
}
