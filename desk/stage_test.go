package desk_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/config"
	"countersign/desk"
	"countersign/ledger"
	"countersign/notify"
	"countersign/operator"
	"countersign/tests/fakeslack"
)

// The places and people of every stage.
const (
	internalChannel = "C0INTERNAL"
	partnerChannel  = "C0PARTNER"
	annaToken       = "anna-terminal-token"
)

var (
	anna  = fakeslack.User{ID: "U0ANNA", TeamID: fakeslack.TeamID, Name: "anna"}
	bert  = fakeslack.User{ID: "U0BERT", TeamID: fakeslack.TeamID, Name: "bert"}
	carol = fakeslack.User{ID: "U0CAROL", TeamID: fakeslack.TeamID, Name: "anna"} // calls herself so
)

// stage is a Slack, a configuration file, a ledger, and two programs on it: one that serves, and one at the terminal.
type stage struct {
	t      testing.TB
	slack  *fakeslack.Server
	dir    string
	config string // path
	term   *desk.Desk
	served *desk.Desk
	logs   *lines
	end    context.CancelFunc
	done   chan error
	addr   chan string
	more   string // of the configuration
}

// lines is a log that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// clock gives each caller a later time, by more than Slack wants between two messages, so that nothing waits.
func clock() func() time.Time {
	var mu sync.Mutex
	now := time.Now()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(1100 * time.Millisecond)
		return now
	}
}

var operators = fmt.Sprintf(`
[[operators]]
id = "anna"
slack_team = "T0EXAMPLE"
slack_user = "U0ANNA"
token_sha256 = "%s"

[[operators]]
id = "bert"
slack_team = "T0EXAMPLE"
slack_user = "U0BERT"
`, operator.HashToken(annaToken))

// newStage sets the stage. Nothing serves yet.
func newStage(t testing.TB, options ...fakeslack.Option) *stage {
	t.Helper()
	s := &stage{t: t, slack: fakeslack.New(t, options...), dir: t.TempDir(), logs: &lines{}, addr: make(chan string, 1)}
	s.slack.AddChannel(fakeslack.Channel{ID: internalChannel, Name: "approvals", IsMember: true})
	s.slack.AddChannel(fakeslack.Channel{ID: partnerChannel, Name: "acme-shared", IsMember: true, IsExtShared: true})
	for _, u := range []fakeslack.User{anna, bert, carol} {
		s.slack.AddUser(u)
	}
	s.config = filepath.Join(s.dir, "countersign.toml")
	s.write(operators)
	if err := ledger.Create(t.Context(), s.ledgerPath()); err != nil {
		t.Fatal(err)
	}
	s.term = s.open()
	return s
}

func (s *stage) ledgerPath() string { return filepath.Join(s.dir, "ledger.db") }

// write makes the configuration file, with other operators than before.
func (s *stage) write(people string) {
	s.t.Helper()
	secrets := map[string]string{"bot": fakeslack.BotToken, "app": fakeslack.AppToken, "signing": fakeslack.Secret}
	for name, value := range secrets {
		s.put(filepath.Join(s.dir, name+".secret"), value)
	}
	s.put(s.config, fmt.Sprintf(`
[ledger]
path = %q

[internal]
platform = "slack"
team = "T0EXAMPLE"
channel = "C0INTERNAL"

[transports.slack]
token = "file:%[2]s/bot.secret"
app_token = "file:%[2]s/app.secret"
signing_secret = "file:%[2]s/signing.secret"
api_url = %[3]q
timeout = "5s"

[transports.local]
dir = "%[2]s/outbox"
`, s.ledgerPath(), s.dir, s.slack.URL())+s.more+people)
}

// put replaces a file in one step, so that no reader finds half of it.
func (s *stage) put(path, content string) {
	s.t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.t.Fatal(err)
	}
}

// open opens the configuration file, as another process would.
func (s *stage) open() *desk.Desk {
	s.t.Helper()
	c, err := config.Load(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d, err := desk.Open(s.t.Context(), c, desk.Options{Now: clock(), Log: log})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { d.Close() })
	return d
}

// serve runs the surface until the test ends, with Socket Mode unless the options say otherwise.
func (s *stage) serve(opts desk.ServeOptions) {
	s.t.Helper()
	if opts.Notify == 0 {
		opts.Notify = 50 * time.Millisecond
	}
	opts.Listening = func(address string) { s.addr <- address }
	s.served = s.open()
	ctx, end := context.WithCancel(context.Background())
	s.end, s.done = end, make(chan error, 1)
	go func() { s.done <- s.served.Serve(ctx, opts) }()
	s.t.Cleanup(func() { s.stop() })
	if opts.Listen == "" {
		s.must(s.slack.Connected(s.ctx()))
	}
}

// stop ends serving, and returns its error.
func (s *stage) stop() error {
	s.end()
	err := <-s.done
	s.done <- err
	return err
}

// ctx is long enough for everything that should happen, and ends a test in which it doesn't.
func (s *stage) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, s.logs)
	}
}

// eventually is Until for conditions on the ledger, whose changes wake nobody.
func eventually(ctx context.Context, slack *fakeslack.Server, condition func() bool) error {
	for {
		soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		err := slack.Until(soon, condition)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

func (s *stage) until(what string, condition func() bool) {
	s.t.Helper()
	if err := eventually(s.ctx(), s.slack, condition); err != nil {
		s.t.Fatalf("never came true: %s (%v)\n%s%s", what, err, s.shown(), s.logs)
	}
}

// filing is for a destination that was approved before, if usual was called.
func filing(text string) ledger.Filing {
	return ledger.Filing{Agent: "quoter", Counterparty: "acme", Platform: "local", Channel: "sales", Priority: "P2", Text: text, Summary: "an offer"}
}

func (s *stage) file(f ledger.Filing) ledger.Filed {
	s.t.Helper()
	filed, err := s.term.File(s.t.Context(), f)
	s.must(err)
	return filed
}

// usual makes the destination of filing one that was used before, so that what follows carries no mark.
func (s *stage) usual() {
	s.t.Helper()
	filed := s.file(filing("Hello."))
	s.approve(filed)
	_, err := s.term.Deliver(s.t.Context(), deliverOnce)
	s.must(err)
}

// approve is the terminal's.
func (s *stage) approve(f ledger.Filed) ledger.Decided {
	s.t.Helper()
	op, err := s.term.Operator(s.t.Context(), annaToken)
	s.must(err)
	d, err := s.term.Ledger.Decide(s.t.Context(), ledger.Decision{ObligationID: f.ObligationID, Epoch: f.Epoch, Verdict: ledger.Approve, Operator: op})
	s.must(err)
	return d
}

func (s *stage) show(id int64) ledger.Shown {
	s.t.Helper()
	shown, err := s.term.Ledger.Show(s.t.Context(), id)
	s.must(err)
	return shown
}

func (s *stage) subject(id int64) ledger.Subject {
	s.t.Helper()
	subject, err := s.term.Ledger.Subject(s.t.Context(), id, internalChannel)
	s.must(err)
	return subject
}

// card waits until the obligation's card shows the present state, with this button, and the ledger knows what it shows.
func (s *stage) card(id int64, action string) fakeslack.Message {
	s.t.Helper()
	var m fakeslack.Message
	s.until(fmt.Sprintf("card of #%d with %s", id, action), func() bool {
		about := s.subject(id)
		if about.Card == nil || about.View == nil || about.View.Epoch != about.Epoch {
			return false
		}
		m, _ = s.slack.Message(internalChannel, about.Card.TS)
		return hasButton(m, action, about.Epoch)
	})
	return m
}

// shown is what stands in the internal channel, for a test that waited in vain.
func (s *stage) shown() string {
	var b strings.Builder
	for _, m := range s.slack.Messages(internalChannel) {
		fmt.Fprintf(&b, "%s: %s\n", m.TS, strings.Join(fakeslack.DecodedTexts(m), " | "))
	}
	return b.String()
}

func hasButton(m fakeslack.Message, action string, epoch int64) bool {
	return slices.ContainsFunc(fakeslack.Buttons(m), func(b fakeslack.Button) bool {
		ref, err := notify.ParseRef(b.Value)
		return err == nil && b.ActionID == action && ref.Epoch == epoch
	})
}

func (s *stage) click(m fakeslack.Message, action string, by fakeslack.User, changes ...fakeslack.Change) fakeslack.Interaction {
	s.t.Helper()
	in := s.slack.Click(m, action, by, changes...)
	s.send(in)
	return in
}

func (s *stage) send(in fakeslack.Interaction) {
	s.t.Helper()
	_, err := s.slack.Send(s.ctx(), in)
	s.must(err)
}

// modal waits for the n-th dialog, counted from 1.
func (s *stage) modal(n int) fakeslack.View {
	s.t.Helper()
	s.until(fmt.Sprintf("dialog %d", n), func() bool { return len(s.slack.Views()) >= n })
	return s.slack.Views()[n-1]
}

func (s *stage) submit(v fakeslack.View, words map[string]string, by fakeslack.User) fakeslack.Interaction {
	s.t.Helper()
	in := s.slack.Submit(v, words, by)
	s.send(in)
	return in
}

// said waits for the n-th sentence that this user alone was told, and returns it.
func (s *stage) said(by fakeslack.User, n int) string {
	s.t.Helper()
	s.until(fmt.Sprintf("sentence %d to %s", n, by.ID), func() bool { return len(s.slack.Ephemerals(by.ID)) >= n })
	all := s.slack.Ephemerals(by.ID)
	if len(all) != n {
		s.t.Fatalf("%s was told %d sentences, not %d", by.ID, len(all), n)
	}
	return fakeslack.Decode(all[n-1].Text)
}

func (s *stage) status(id int64, want ledger.Status) {
	s.t.Helper()
	s.until(fmt.Sprintf("#%d is %s", id, want), func() bool { return s.show(id).Status == want })
}

// count counts rows by a query.
func (s *stage) count(query string, args ...any) int {
	s.t.Helper()
	db, err := sql.Open("sqlite", "file:"+s.ledgerPath()+"?mode=ro&_pragma=busy_timeout(5000)")
	s.must(err)
	defer db.Close()
	var n int
	s.must(db.QueryRow(query, args...).Scan(&n))
	return n
}

// untouched asserts that nothing was decided on an obligation.
func (s *stage) untouched(f ledger.Filed) {
	s.t.Helper()
	shown := s.show(f.ObligationID)
	if shown.Status != ledger.StatusDrafted || shown.Epoch != f.Epoch || len(shown.Decisions) != 0 || shown.Snapshot != nil {
		s.t.Errorf("#%d was touched: %+v", f.ObligationID, shown)
	}
}

func contains(t testing.TB, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

func wantAs[T error](t testing.TB, err error) {
	t.Helper()
	var target T
	if !errors.As(err, &target) {
		t.Errorf("error is %v, not a %T", err, target)
	}
}

// waiting is a stage that is served by Socket Mode, with one draft that waits on its card.
func waiting(t testing.TB) (*stage, ledger.Filed, fakeslack.Message) {
	t.Helper()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{})
	return s, filed, s.card(filed.ObligationID, notify.ActionApprove)
}
