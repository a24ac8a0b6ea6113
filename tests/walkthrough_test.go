package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/config"
	"countersign/desk"
	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// The channels of the walk-through: one that is ours alone, and one that the counterparty reads.
const (
	walkInternal = "C0INTERNAL"
	walkPartner  = "C0PARTNER"
)

var walker = fakeslack.User{ID: "U0ANNA", TeamID: fakeslack.TeamID, Name: "anna"}

// walk is one Slack and one ledger, with a program that serves and one that files.
type walk struct {
	t      *testing.T
	slack  *fakeslack.Server
	config *config.Config
	agent  *desk.Desk
}

// The walk-through: an agent files, the operator asks for changes, the agent files anew, the old card is dead, the new one is approved,
// the worker delivers to the counterparty's channel, and the card and its thread tell the receipt. The counterparty's channel holds the
// approved text and nothing else.
func TestWalkthrough(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.serve()
	first := w.file("We can offer 120 pumps at 430 EUR <each>.")
	old := w.card(first)

	w.click(old, notify.ActionChanges)
	w.submit(w.modal(1), map[string]string{"words": "say who pays for freight & until when"})
	w.until("the agent is told", func() bool { return len(w.inbox()) == 1 })
	if told := w.inbox()[0]; told.Kind != "steered" || told.Body != "anna asks for changes: say who pays for freight & until when" {
		t.Errorf("%+v", told)
	}

	text := "We can offer 120 pumps at 430 EUR <each>, freight paid & until Friday."
	second := w.file(text)
	if second.ObligationID != first.ObligationID || !second.Refiled {
		t.Fatalf("%+v", second)
	}
	w.click(old, notify.ActionApprove)
	w.until("the click is refused", func() bool { return len(w.slack.Ephemerals(walker.ID)) == 1 })
	if said := w.slack.Ephemerals(walker.ID)[0].Text; !strings.Contains(said, "superseded") {
		t.Errorf("%q", said)
	}

	card := w.card(second)
	w.shows(card, text, "say who pays for freight & until when", "+, freight paid & until Friday+", walkPartner, "#acme-shared", "EXTERNAL")
	w.click(card, notify.ActionApprove)
	confirm := w.modal(2)
	if words := strings.Join(fakeslack.DecodedViewTexts(confirm), "\n"); !strings.Contains(words, ledger.MarkNewDestination) {
		t.Errorf("the second question doesn't name the mark: %q", words)
	}
	if n := len(w.slack.Messages(walkPartner)); n != 0 {
		t.Fatalf("%d messages before an approval", n)
	}
	w.submit(confirm, nil)
	w.until("it is sent", func() bool { return w.show(second).Status == ledger.StatusSent })
	w.told(second, card)
	w.nothingLeaked(text)
}

func newWalk(t *testing.T) *walk {
	w := &walk{t: t, slack: fakeslack.New(t)}
	w.slack.AddChannel(fakeslack.Channel{ID: walkInternal, Name: "approvals", IsMember: true})
	w.slack.AddChannel(fakeslack.Channel{ID: walkPartner, Name: "acme-shared", IsMember: true, IsExtShared: true})
	w.slack.AddUser(walker)
	dir := t.TempDir()
	path := filepath.Join(dir, "countersign.toml")
	w.must(os.WriteFile(path, fmt.Appendf(nil, `
[ledger]
path = "%[1]s/ledger.db"
[[operators]]
id = "anna"
slack_team = "T0EXAMPLE"
slack_user = "U0ANNA"
[internal]
platform = "slack"
team = "T0EXAMPLE"
channel = "C0INTERNAL"
[transports.slack]
token = "file:%[1]s/bot"
app_token = "file:%[1]s/app"
api_url = %[2]q
timeout = "5s"
`, dir, w.slack.URL()), 0o600))
	w.must(os.WriteFile(filepath.Join(dir, "bot"), []byte(fakeslack.BotToken), 0o600))
	w.must(os.WriteFile(filepath.Join(dir, "app"), []byte(fakeslack.AppToken), 0o600))
	var err error
	w.config, err = config.Load(path)
	w.must(err)
	w.must(ledger.Create(t.Context(), w.config.Ledger.Path))
	w.agent = w.open()
	return w
}

func (w *walk) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *walk) open() *desk.Desk {
	w.t.Helper()
	d, err := desk.Open(w.t.Context(), w.config, desk.Options{Log: slog.New(slog.DiscardHandler)})
	w.must(err)
	w.t.Cleanup(func() { d.Close() })
	return d
}

// serve runs the operators' surface and the delivery passes until the test ends.
func (w *walk) serve() {
	served := w.open()
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- served.Serve(ctx, desk.ServeOptions{Notify: 100 * time.Millisecond, Deliver: 100 * time.Millisecond})
	}()
	w.t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	})
	w.must(w.slack.Connected(w.ctx()))
}

func (w *walk) ctx() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *walk) until(what string, condition func() bool) {
	w.t.Helper()
	for whole := w.ctx(); ; {
		soon, cancel := context.WithTimeout(whole, 50*time.Millisecond) // a change of the ledger wakes nobody
		err := w.slack.Until(soon, condition)
		cancel()
		switch {
		case err == nil:
			return
		case whole.Err() != nil:
			w.t.Fatalf("never came true: %s (%v)", what, err)
		}
	}
}

func (w *walk) file(text string) ledger.Filed {
	w.t.Helper()
	filed, err := w.agent.File(w.t.Context(), ledger.Filing{Agent: "quoter", Counterparty: "Acme", Platform: "slack", Channel: walkPartner, Text: text,
		Summary: "secret summary", Context: "secret context"})
	w.must(err)
	return filed
}

func (w *walk) show(f ledger.Filed) ledger.Subject {
	w.t.Helper()
	s, err := w.agent.Ledger.Subject(w.t.Context(), f.ObligationID, walkInternal)
	w.must(err)
	return s
}

// card waits until the card shows this filing whole, with Approve on it.
func (w *walk) card(f ledger.Filed) (m fakeslack.Message) {
	w.t.Helper()
	w.until("the card shows the filing", func() bool {
		s := w.show(f)
		if s.Card == nil || s.View == nil || s.View.Epoch != f.Epoch || !s.View.Complete {
			return false
		}
		m, _ = w.slack.Message(walkInternal, s.Card.TS)
		return slices.ContainsFunc(fakeslack.Buttons(m), func(b fakeslack.Button) bool {
			ref, err := notify.ParseRef(b.Value)
			return err == nil && b.ActionID == notify.ActionApprove && ref.Epoch == f.Epoch
		})
	})
	return m
}

func (w *walk) shows(m fakeslack.Message, words ...string) {
	w.t.Helper()
	all := strings.Join(fakeslack.DecodedTexts(m), "\n")
	for _, word := range words {
		if !strings.Contains(all, word) {
			w.t.Errorf("the card doesn't show %q: %s", word, all)
		}
	}
}

func (w *walk) click(m fakeslack.Message, action string) {
	w.t.Helper()
	_, err := w.slack.Send(w.ctx(), w.slack.Click(m, action, walker))
	w.must(err)
}

func (w *walk) modal(n int) fakeslack.View {
	w.t.Helper()
	w.until("the dialog opens", func() bool { return len(w.slack.Views()) >= n })
	return w.slack.Views()[n-1]
}

func (w *walk) submit(v fakeslack.View, words map[string]string) {
	w.t.Helper()
	_, err := w.slack.Send(w.ctx(), w.slack.Submit(v, words, walker))
	w.must(err)
}

func (w *walk) inbox() []ledger.FollowUp {
	w.t.Helper()
	told, err := w.agent.Ledger.Inbox(w.t.Context(), "quoter")
	w.must(err)
	return told
}

// told asserts that the card and its thread tell the receipt, and the agent's inbox the coordinate.
func (w *walk) told(f ledger.Filed, card fakeslack.Message) {
	w.t.Helper()
	s := w.show(f)
	footer := fmt.Sprintf("approved by anna · receipt %d · draft sha256 %.16s", *s.Delivery.DecisionID, f.DraftSHA256)
	w.until("card and thread tell the receipt", func() bool {
		now, _ := w.slack.Message(walkInternal, card.TS)
		onCard := strings.Contains(strings.Join(fakeslack.DecodedTexts(now), "\n"), footer) && len(fakeslack.Buttons(now)) == 0
		inThread := slices.ContainsFunc(w.slack.Messages(walkInternal), func(m fakeslack.Message) bool {
			return m.ThreadTS == card.TS && strings.Contains(strings.Join(fakeslack.DecodedTexts(m), "\n"), footer)
		})
		return onCard && inThread
	})
	kinds := ""
	for _, follow := range w.inbox() {
		kinds += follow.Kind + " "
	}
	if kinds != "steered approved sent " || !strings.Contains(w.inbox()[2].Body, s.Delivery.Coordinate) {
		w.t.Errorf("the agent was told %q", kinds)
	}
}

// nothingLeaked asserts that the counterparty's channel holds the approved text and nothing else, and that whatever else was posted went
// to the internal channel.
func (w *walk) nothingLeaked(text string) {
	w.t.Helper()
	there := w.slack.Messages(walkPartner)
	if len(there) != 1 || fakeslack.Decode(there[0].Text) != text || len(there[0].Blocks) != 0 || len(there[0].Edits) != 0 || there[0].ThreadTS != "" {
		w.t.Fatalf("the counterparty's channel holds %+v", there)
	}
	posts := 0
	for _, r := range w.slack.Requests("") {
		if !strings.HasPrefix(r.Method, "chat.") || r.Params["channel"] == walkInternal {
			continue
		}
		posts++
		body, err := url.QueryUnescape(string(r.Body))
		w.must(err)
		for _, ours := range []string{"secret", "anna", "sha256", "receipt", "quoter", "Acme", "epoch", "approve"} {
			if strings.Contains(body, ours) {
				w.t.Errorf("%s to %s carries %q: %s", r.Method, r.Params["channel"], ours, body)
			}
		}
	}
	if posts != 1 {
		w.t.Errorf("%d messages left the internal channel", posts)
	}
	raw, err := json.Marshal(there[0].Params)
	w.must(err)
	if strings.Contains(string(raw), "metadata") {
		w.t.Errorf("%s", raw)
	}
}
