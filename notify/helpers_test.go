package notify_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
	"countersign/notify"
	"countersign/operator"
	"countersign/tests/fakeslack"
)

const (
	room   = "C0INTERNAL"
	abroad = "C0CUSTOMER"
)

// desk is a ledger whose notices go to a channel of a fake Slack, with a clock that moves only when something waits or the test says so.
type desk struct {
	*ledger.Ledger
	t     testing.TB
	slack *fakeslack.Server
	*notify.Notifier
	anna  operator.Operator
	party string // whom all is filed for, where it is set

	mu     sync.Mutex
	now    time.Time
	tokens int
}

func newDesk(t testing.TB, change ...func(*notify.Options)) *desk {
	t.Helper()
	d := &desk{t: t, now: time.Unix(1_800_000_000, 0), slack: fakeslack.New(t, fakeslack.WithBlocksTotal(13_000))}
	d.slack.AddChannel(fakeslack.Channel{ID: room, Name: "approvals", IsMember: true})
	d.slack.AddChannel(fakeslack.Channel{ID: abroad, Name: "acme", IsMember: true, IsExtShared: true})
	path := filepath.Join(t.TempDir(), "ledger.db")
	empty, err := emptyLedger()
	must(t, err)
	must(t, os.WriteFile(path, empty, 0o600))
	d.Ledger, err = ledger.Open(t.Context(), path, ledger.Options{Now: d.clock, Token: d.token,
		Route: func() ledger.Notice { return ledger.Notice{Routed: ledger.RoutedInternal, Reason: "test"} }})
	must(t, err)
	t.Cleanup(func() { d.Ledger.Close() })
	d.anna = newOperator(t)
	opts := notify.Options{Now: d.clock, Wait: func(_ context.Context, by time.Duration) error { d.tick(by); return nil }}
	for _, c := range change {
		c(&opts)
	}
	// No kept-alive connection: a test that ends one has to meet the next call, not a retry of net/http.
	client := slackgo.New(fakeslack.BotToken, slackgo.OptionAPIURL(d.slack.URL()),
		slackgo.OptionHTTPClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}))
	d.Notifier = notify.New(d.Ledger, client, notify.Internal{Team: fakeslack.TeamID, Channel: room}, opts)
	return d
}

// emptyLedger is made once: a test that needs one copies it.
var emptyLedger = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "countersign-empty-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.db")
	if err := ledger.Create(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func newOperator(t testing.TB) operator.Operator {
	t.Helper()
	token, hash, err := operator.NewToken()
	must(t, err)
	directory, err := operator.NewDirectory([]operator.Entry{{ID: "anna", TokenSHA256: hash}})
	must(t, err)
	anna, err := directory.ByToken(token)
	must(t, err)
	return anna
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

// token counts, so that what is posted is the same at each run.
func (d *desk) token() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens++
	return fmt.Sprintf("%064x", sha256.Sum256([]byte{byte(d.tokens >> 8), byte(d.tokens)})), nil
}

func (d *desk) tick(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

func filing(text string) ledger.Filing {
	return ledger.Filing{Counterparty: "acme", Platform: "slack", Channel: abroad, Text: text, Agent: "quoter"}
}

func (d *desk) file(f ledger.Filing, markers ...string) ledger.Filed {
	d.t.Helper()
	if d.party != "" {
		f.Counterparty = d.party
	}
	draft, err := ledger.Clean(f, ledger.DefaultLimits())
	must(d.t, err)
	filed, err := d.File(d.t.Context(), draft, ledger.Gates{Markers: markers})
	must(d.t, err)
	return filed
}

func (d *desk) decide(filed ledger.Filed, verdict ledger.Verdict) ledger.Decided {
	d.t.Helper()
	out, err := d.Decide(d.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: verdict,
		Operator: d.anna, Reason: "because"})
	must(d.t, err)
	return out
}

// begun files, approves and begins the dispatch of a text.
func (d *desk) begun(f ledger.Filing) ledger.Claim {
	d.t.Helper()
	c, err := d.Claim(d.t.Context(), d.decide(d.file(f), ledger.Approve).DecisionID, "w1")
	must(d.t, err)
	_, err = d.BeginDispatch(d.t.Context(), c)
	must(d.t, err)
	return c
}

func (d *desk) complete(c ledger.Claim, altered bool) {
	d.t.Helper()
	must(d.t, d.Complete(d.t.Context(), c, ledger.Receipt{Coordinate: abroad + "/1.2", Altered: altered}))
}

func (d *desk) unknown(c ledger.Claim) {
	d.t.Helper()
	must(d.t, d.MarkUnknown(d.t.Context(), c, ledger.Failure{Outcome: ledger.Ambiguous, Stage: "post", Code: "reset", Detail: "the line <broke> & fell"}))
}

// pass makes a pass that has to succeed for every obligation.
func (d *desk) pass() notify.Report {
	d.t.Helper()
	out, err := d.Pass(d.t.Context())
	must(d.t, err)
	if len(out.Failed) > 0 || out.Busy {
		d.t.Fatalf("the pass: %+v", out)
	}
	return out
}

func (d *desk) subject(id int64) ledger.Subject {
	d.t.Helper()
	s, err := d.Subject(d.t.Context(), id, room)
	must(d.t, err)
	return s
}

// card is the message that the ledger takes for the obligation's card.
func (d *desk) card(id int64) fakeslack.Message {
	d.t.Helper()
	s := d.subject(id)
	if s.Card == nil {
		d.t.Fatalf("obligation %d has no card", id)
	}
	return d.message(s.Card.TS)
}

func (d *desk) message(ts string) fakeslack.Message {
	d.t.Helper()
	m, ok := d.slack.Message(room, ts)
	if !ok {
		d.t.Fatalf("no message at %s", ts)
	}
	return m
}

// thread is what stands below a card, each reply as one text.
func (d *desk) thread(card fakeslack.Message) (replies []string) {
	for _, m := range d.slack.Messages(room) {
		if m.ThreadTS == card.TS {
			replies = append(replies, words(m))
		}
	}
	return replies
}

func (d *desk) queued() []int64 {
	d.t.Helper()
	ids, err := d.Outbox(d.t.Context(), room, 1000)
	must(d.t, err)
	return ids
}

func words(m fakeslack.Message) string { return strings.Join(fakeslack.DecodedTexts(m), "\n") }

func actions(m fakeslack.Message) string {
	var ids []string
	for _, b := range fakeslack.Buttons(m) {
		ids = append(ids, b.ActionID)
	}
	return strings.Join(ids, " ")
}

func (d *desk) calls() int {
	return len(d.slack.Requests("chat.postMessage")) + len(d.slack.Requests("chat.update"))
}

// checkSound is the rule of every moment after a clean pass: the newest version of each card has its buttons, and no message can approve
// without a complete view of that epoch on record.
func (d *desk) checkSound(id int64) {
	d.t.Helper()
	s := d.subject(id)
	if len(s.Notices) > 0 || len(d.queued()) > 0 {
		d.t.Errorf("still queued: %+v, %v", s.Notices, d.queued())
	}
	for _, m := range d.slack.Messages(room) {
		for _, b := range fakeslack.Buttons(m) {
			if b.ActionID != notify.ActionApprove {
				continue
			}
			ref, err := notify.ParseRef(b.Value)
			must(d.t, err)
			if ref.ID != id {
				continue // another obligation's
			}
			if m.TS != s.Card.TS || s.View == nil || !s.View.Complete || s.View.Epoch != ref.Epoch {
				d.t.Errorf("message %s can approve %+v, the view is %+v of card %s", m.TS, ref, s.View, s.Card.TS)
			}
		}
	}
	if s.Status == ledger.StatusDrafted && actions(d.card(id)) != "approve request_changes reject" {
		d.t.Errorf("the card has %q", actions(d.card(id)))
	}
}

func want[T error](t testing.TB, err error) T {
	t.Helper()
	var target T
	if !errors.As(err, &target) {
		t.Fatalf("got error %v, want a %T", err, target)
	}
	return target
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sectionTexts(m fakeslack.Message) (texts []string) {
	for _, b := range m.Blocks {
		if text, ok := b["text"].(map[string]any); ok && b["type"] == "section" {
			texts = append(texts, fakeslack.Decode(text["text"].(string)))
		}
	}
	return texts
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	must(t, err)
	return string(out)
}
