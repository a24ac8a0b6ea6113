package sweep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/operator"
	"countersign/transports"
)

// bench is a real ledger on a fresh file, an operator, and one fake transport, "fake", with its wire.
type bench struct {
	*Sweeper
	t    testing.TB
	l    *ledger.Ledger
	path string
	op   operator.Operator
	fake *fake
	now  func() time.Time // of the ledger
	busy time.Duration    // its busy timeout
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "ledger.db"), op: newOperator(t), now: time.Now, busy: 50 * time.Millisecond}
	if err := os.WriteFile(b.path, emptyLedger(), 0o600); err != nil {
		t.Fatal(err)
	}
	b.l = b.open()
	b.fake = &fake{wire: filepath.Join(filepath.Dir(b.path), "wire")}
	b.Sweeper = New(b.l, Fixed(map[string]transports.Transport{"fake": b.fake}))
	t.Cleanup(func() { b.fake.verify(t) })
	return b
}

// emptyLedger is the file of a new ledger. It is made once: under the race detector that takes a while.
var emptyLedger = sync.OnceValue(func() []byte {
	dir := must(os.MkdirTemp("", "sweep-test-"))
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.db")
	if err := ledger.Create(context.Background(), path); err != nil {
		panic(err)
	}
	return must(os.ReadFile(path))
})

func (b *bench) open() *ledger.Ledger {
	b.t.Helper()
	l, err := ledger.Open(context.Background(), b.path, ledger.Options{
		BusyTimeout: b.busy, Now: func() time.Time { return b.now() }})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { l.Close() })
	return l
}

func newOperator(t testing.TB) operator.Operator {
	t.Helper()
	token, hash, err := operator.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	directory, err := operator.NewDirectory([]operator.Entry{{ID: "anna", TokenSHA256: hash}})
	if err != nil {
		t.Fatal(err)
	}
	op, err := directory.ByToken(token)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

var counterparties atomic.Int64

// approve files and approves a text for a destination. Each has a counterparty of its own, so that no pair is held.
func (b *bench) approve(channel, text string) ledger.Decided {
	b.t.Helper()
	return b.approveAs(ledger.Filing{Platform: "fake", Channel: channel, Text: text})
}

func (b *bench) approveAs(f ledger.Filing) ledger.Decided {
	b.t.Helper()
	f.Counterparty = fmt.Sprintf("acme-%d", counterparties.Add(1))
	f.Agent = "quoter"
	draft, err := ledger.Clean(f, ledger.DefaultLimits())
	if err != nil {
		b.t.Fatal(err)
	}
	filed, err := b.l.File(b.t.Context(), draft, ledger.Gates{})
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := b.l.Decide(b.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch,
		Verdict: ledger.Approve, Operator: b.op})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// deliver makes a pass that must not fail.
func (b *bench) deliver(opts Options) Report {
	b.t.Helper()
	report, err := b.Deliver(b.t.Context(), opts)
	if err != nil {
		b.t.Fatalf("deliver: %v\n%+v", err, report)
	}
	return report
}

func (b *bench) recoverAll() Recovered {
	b.t.Helper()
	out, err := b.Recover(b.t.Context())
	if err != nil {
		b.t.Fatalf("recover: %v\n%+v", err, out)
	}
	return out
}

func (b *bench) show(d ledger.Decided) ledger.Shown {
	b.t.Helper()
	out, err := b.l.Show(b.t.Context(), d.ObligationID)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

// expect checks status and claim of an obligation; "" is no claim.
func (b *bench) expect(d ledger.Decided, status ledger.Status, claim ledger.ClaimState) ledger.Shown {
	b.t.Helper()
	s := b.show(d)
	var have ledger.ClaimState
	if s.Claim != nil {
		have = s.Claim.State
	}
	if s.Status != status || have != claim {
		b.t.Errorf("obligation %d is %s with claim %q, want %s with %q", d.ObligationID, s.Status, have, status, claim)
	}
	return s
}

// onWire returns the decisions that were sent, in the order of sending.
func (b *bench) onWire() []int64 {
	b.t.Helper()
	raw, err := os.ReadFile(b.fake.wire)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	out := []int64{}
	for line := range strings.Lines(string(raw)) {
		id, _, _ := strings.Cut(line, " ")
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			b.t.Fatalf("torn line on the wire: %q", line)
		}
		out = append(out, n)
	}
	return out
}

func (b *bench) expectWire(want ...ledger.Decided) {
	b.t.Helper()
	ids := []int64{}
	for _, d := range want {
		ids = append(ids, d.DecisionID)
	}
	if got := b.onWire(); !slices.Equal(got, ids) {
		b.t.Errorf("on the wire: decisions %v, want %v", got, ids)
	}
}

// expectItems checks which obligations a list of a report names.
func (b *bench) expectItems(what string, got []Item, want ...ledger.Decided) {
	b.t.Helper()
	var have, ids []int64
	for _, item := range got {
		have = append(have, item.ObligationID)
	}
	for _, d := range want {
		ids = append(ids, d.ObligationID)
	}
	slices.Sort(have)
	if !slices.Equal(have, ids) {
		b.t.Fatalf("%s: obligations %v, want %v: %+v", what, have, ids, got)
	}
}

// events counts the audit rows of one kind of an obligation.
func events(s ledger.Shown, name string) (n int) {
	for _, e := range s.Audit {
		if e.Event == name {
			n++
		}
	}
	return n
}

// files lists everything in the workers' directory.
func (b *bench) files() []string {
	b.t.Helper()
	var out []string
	for _, dir := range []string{"workers", "destinations", "spool"} {
		names, err := list(filepath.Join(b.path+".d", dir))
		if err != nil {
			b.t.Fatal(err)
		}
		for _, n := range names {
			out = append(out, dir+"/"+n)
		}
	}
	return out
}

// fake is a transport whose outcomes are scripted. What it hands over stands on the wire: a file that processes share, one line a
// Send, appended at once. It notices every use that the interface forbids.
type fake struct {
	wire string

	connect func(n int) error                                       // n counts from 1
	prepare func(session int, m transports.Message) error           // nil: prepared
	before  func(ctx context.Context, m transports.Message) error   // ends the Send with nothing on the wire
	after   func(m transports.Message, r *transports.Receipt) error // ends it with the message on the wire
	reset   func(session int) error                                 //
	hook    func(ctx context.Context, m transports.Message)         // in the middle of a Send, after the wire

	mu         sync.Mutex
	connects   int
	open       int
	mostOpen   int
	prepares   int
	sessions   []*fakeSession
	violations []string
}

var _ transports.Transport = (*fake)(nil)

func (f *fake) violation(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.violations = append(f.violations, fmt.Sprintf(format, args...))
}

// verify fails the test where the fake was used against its interface, or sessions were left open.
func (f *fake) verify(t testing.TB) {
	for _, v := range f.violations {
		t.Error(v)
	}
	if f.open != 0 {
		t.Errorf("%d sessions were left open", f.open)
	}
}

func (f *fake) Validate(m transports.Message) error { return transports.CheckMessage(m) }

func (f *fake) Connect(ctx context.Context) (transports.Session, error) {
	f.mu.Lock()
	f.connects++
	n := f.connects
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, &transports.PrepareError{Stage: "connect", Err: err}
	}
	if f.connect != nil {
		if err := f.connect(n); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open++
	f.mostOpen = max(f.mostOpen, f.open)
	s := &fakeSession{fake: f, number: n}
	f.sessions = append(f.sessions, s)
	return s, nil
}

type fakeSession struct {
	*fake
	number    int
	prepared  *transports.Message
	prepares  int
	sends     int
	ambiguous bool
	closed    bool
	busy      atomic.Bool
}

// enter notices a use after the end, and by two goroutines.
func (s *fakeSession) enter(what string) func() {
	if s.closed {
		s.violation("%s on the closed session %d", what, s.number)
	}
	if s.ambiguous && what != "Close" {
		s.violation("%s on session %d, on which something was ambiguous", what, s.number)
	}
	if !s.busy.CompareAndSwap(false, true) {
		s.violation("%s on session %d, which another goroutine uses", what, s.number)
	}
	return func() { s.busy.Store(false) }
}

func (s *fakeSession) Prepare(ctx context.Context, m transports.Message) error {
	defer s.enter("Prepare")()
	s.fake.mu.Lock()
	s.fake.prepares++
	s.fake.mu.Unlock()
	s.prepares++
	if s.fake.prepare != nil {
		if err := s.fake.prepare(s.number, m); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return &transports.PrepareError{Stage: "prepare", Err: err}
	}
	if m.DecisionID != 0 || m.Key != "" {
		s.violation("Prepare knows of a claim: %+v", m)
	}
	s.prepared = &m
	return nil
}

func (s *fakeSession) Send(ctx context.Context, m transports.Message) (transports.Receipt, error) {
	defer s.enter("Send")()
	prepared := s.prepared
	s.prepared = nil
	s.sends++
	if err := transports.CheckSend(ctx, prepared, m); err != nil {
		return transports.Receipt{}, err
	}
	if s.before != nil {
		if err := s.before(ctx, m); err != nil {
			return s.end(transports.Receipt{}, err)
		}
	}
	if err := appendLine(s.wire, fmt.Sprintf("%d %s %q", m.DecisionID, m.Channel, m.Text)); err != nil {
		return transports.Receipt{}, err
	}
	if s.hook != nil {
		s.hook(ctx, m)
	}
	r := transports.Receipt{Coordinate: fmt.Sprintf("wire:%d", m.DecisionID), Detail: "taken"}
	if s.after != nil {
		if err := s.after(m, &r); err != nil {
			return s.end(transports.Receipt{}, err)
		}
	}
	return r, nil
}

func (s *fakeSession) end(r transports.Receipt, err error) (transports.Receipt, error) {
	s.ambiguous = transports.Classify(err) == transports.Ambiguous
	return r, err
}

func (s *fakeSession) Reset(context.Context) error {
	defer s.enter("Reset")()
	s.prepared = nil
	if s.fake.reset != nil {
		return s.fake.reset(s.number)
	}
	return nil
}

func (s *fakeSession) Close() error {
	defer s.enter("Close")()
	s.closed = true
	s.fake.mu.Lock()
	defer s.fake.mu.Unlock()
	s.fake.open--
	return errors.New("a close that fails changes nothing")
}

// appendLine appends a line in one write, so that processes don't mix theirs.
func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Close())
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is not in %q", p, text)
		}
	}
}
