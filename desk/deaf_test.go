package desk_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/desk"
	"countersign/interact"
	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// FAULTS 29: while Slack is deaf nothing becomes approved, the terminal still decides, and the surface is there again by itself. Each
// connection has a URL of its own: the fake refuses one that was used.
func TestSlackGoesDeaf(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*fakeslack.Server) error{
		"cut in mid-frame":  (*fakeslack.Server).CutFrame,
		"refresh requested": func(f *fakeslack.Server) error { return f.Disconnect(fakeslack.RefreshRequested) },
		"warning":           func(f *fakeslack.Server) error { return f.Disconnect(fakeslack.Warning) },
		"nonsense":          func(f *fakeslack.Server) error { return f.SendFrame("{") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.usual()
			filed := s.file(filing("120 pumps."))
			s.serve(desk.ServeOptions{Health: "127.0.0.1:0"})
			address := <-s.addr
			m := s.card(filed.ObligationID, notify.ActionApprove)
			s.slack.RefuseOpens(1, "internal_error")
			s.must(fail(s.slack))
			s.untouched(filed)
			s.must(s.slack.ConnectedAgain(s.ctx(), 2))
			s.click(m, notify.ActionApprove, anna)
			s.status(filed.ObligationID, ledger.StatusApproved)
			if status, r := s.ready(address); status != 200 || !r.Ready || r.LastHeard == nil {
				t.Errorf("%d %+v", status, r)
			}
			if n := len(s.slack.Requests("apps.connections.open")); n != 3 {
				t.Errorf("%d URLs were asked for, not 3", n)
			}
		})
	}
}

// FAULTS 29: a refusal that lasts is told by /readyz, with when Slack was last heard; the terminal works.
func TestTheTerminalWorksWhileSlackIsDeaf(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed, other := s.file(filing("120 pumps.")), filing("Another text.")
	other.Channel = "service"
	waiting := s.file(other)
	s.serve(desk.ServeOptions{Health: "127.0.0.1:0"})
	address := <-s.addr
	s.card(filed.ObligationID, notify.ActionApprove)
	s.slack.RefuseOpens(1000, "internal_error")
	s.must(s.slack.CutFrame())
	s.until("it is not ready", func() bool { status, _ := s.ready(address); return status == 503 })
	status, r := s.ready(address)
	if status != 503 || r.Ready || r.LastHeard == nil {
		t.Errorf("%d %+v", status, r)
	}
	if status, _ := s.get(address, "/healthz"); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	s.approve(filed)
	s.card(filed.ObligationID, notify.ActionUndo)
	s.untouched(waiting)
	s.must(s.stop())
}

// FAULTS 29: what only a person can mend ends serving, with words.
func TestFatalReasonsStopWithWords(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*stage){
		"link_disabled": func(s *stage) { s.must(s.slack.Disconnect(fakeslack.LinkDisabled)) },
		"invalid_auth":  func(s *stage) { s.slack.RefuseOpens(1, "invalid_auth"); s.must(s.slack.CutFrame()) },
		"missing_scope": func(s *stage) { s.slack.RefuseOpens(1, "missing_scope"); s.must(s.slack.CutFrame()) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.serve(desk.ServeOptions{})
			fail(s)
			err := <-s.done
			s.done <- err
			wantAs[*interact.FatalError](t, err)
			contains(t, err.Error(), name)
		})
	}
}

// FAULTS 28: with everything logged, and every question cut off, no secret is anywhere.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.slack.Script("auth.test", fakeslack.Reset(), fakeslack.Status(500, fakeslack.BotToken))
	s.slack.Script("apps.connections.open", fakeslack.Reset(), fakeslack.Fail("internal_error"), fakeslack.CutJSON())
	s.slack.Script("chat.postMessage", fakeslack.Reset(), fakeslack.Fail(fakeslack.BotToken))
	s.slack.Script("users.info", fakeslack.Reset(), fakeslack.Status(502, fakeslack.BotToken), fakeslack.Fail("fatal_error"))
	s.slack.Script("views.open", fakeslack.Reset(), fakeslack.CutJSON())
	s.serve(desk.ServeOptions{Health: "127.0.0.1:0", Deliver: time.Hour, Sweep: time.Hour})
	address := <-s.addr
	m := s.card(filed.ObligationID, notify.ActionApprove)
	for i := range 3 {
		s.click(m, notify.ActionReject, anna)
		s.said(anna, i+1)
	}
	s.click(m, notify.ActionReject, anna)
	s.said(anna, 4)
	s.click(m, notify.ActionReject, carol)
	s.said(carol, 1)
	s.slack.RefuseOpens(1, "internal_error")
	s.must(s.slack.CutFrame())
	_, health := s.get(address, "/readyz")
	s.must(s.slack.ConnectedAgain(s.ctx(), 2))
	stopped := s.stop()
	s.clean("the health page", health)
	s.clean("the log", s.logs.String())
	s.clean("the error", errors.Join(stopped, errors.New("")).Error())
	for _, m := range append(s.slack.Messages(internalChannel), s.slack.Ephemerals(anna.ID)...) {
		s.clean("a message", m.Text+string(m.RawBlocks))
	}
	files, err := filepath.Glob(s.ledgerPath() + "*")
	s.must(err)
	for _, path := range files {
		if raw, err := os.ReadFile(path); err == nil { // a directory isn't read
			s.clean(path, string(raw))
		}
	}
	if len(files) == 0 || !strings.Contains(s.logs.String(), "level=") {
		t.Error("nothing was looked at")
	}
}

// clean asserts that there is no secret, raw or percent-encoded, and no URL of a socket, which is one too.
func (s *stage) clean(what, text string) {
	s.t.Helper()
	for _, secret := range []string{fakeslack.BotToken, fakeslack.AppToken, fakeslack.Secret, annaToken, "ticket"} {
		for _, form := range []string{secret, strings.ReplaceAll(secret, "-", "%2D")} {
			if i := strings.Index(text, form); i >= 0 {
				s.t.Errorf("%s has %q: %.300s", what, form, text[max(0, i-200):])
			}
		}
	}
}
