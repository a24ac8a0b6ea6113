package ledger_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/operator"

	"pgregory.net/rapid"
)

// TestModel walks random sequences of every operation, by two agents, two operators (one of them files too) and three workers that die
// and come back, over two openings of one ledger file with clocks of their own. After each step the answer and every fact of the ledger
// must be what the model of the contract says, and the promises must hold that need no model. At the end nobody may be stuck, and three
// steps at once must end as they would have in some order.
//
// A run of its own: go test ./ledger -run TestModel -v -rapid.checks=100 (add -rapid.seed=N to repeat one).
func TestModel(t *testing.T) {
	template := filepath.Join(t.TempDir(), "template.db")
	must(t, ledger.Create(t.Context(), template))
	empty, err := os.ReadFile(template)
	must(t, err)
	anna, ben := newOperators(t)
	cover := newCoverage()
	t.Run("walks", func(t *testing.T) {
		for i := range walkers {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				dir, budget := t.TempDir(), newBudget(cover)
				rapid.Check(t, func(rt *rapid.T) {
					if !budget.spend(rt) {
						return
					}
					w := newWorld(rt, filepath.Join(dir, fmt.Sprint(budget.used.Load(), ".db")), empty, anna, ben, cover)
					w.walk()
				})
			})
		}
	})
	if !t.Failed() {
		cover.report(t)
	}
}

const (
	walkers = 2 // in parallel: half of a step is waiting for the disk
	// enough is how many steps a plain `go test` takes, far less than rapid's 100 sequences for each walker: under the race detector a step
	// takes 20 to 40 ms of the processor.
	enough = 300
)

// budget ends a plain `go test` after enough steps, unless some operation has not succeeded yet. It never stands in the way of flags, nor
// of shrinking a failure.
type budget struct {
	used   atomic.Int64 // names the files
	cover  *coverage
	asked  bool
	failed atomic.Bool
}

func newBudget(cover *coverage) *budget {
	b := &budget{cover: cover}
	flag.Visit(func(f *flag.Flag) { b.asked = b.asked || strings.HasPrefix(f.Name, "rapid.") })
	return b
}

func (b *budget) spend(rt *rapid.T) bool {
	rt.Cleanup(func() {
		if rt.Failed() {
			b.failed.Store(true)
		}
	})
	b.used.Add(1)
	return b.asked || b.failed.Load() || !b.cover.complete()
}

// world is one ledger with the actors around it.
type world struct {
	t         *rapid.T
	m         *model
	path      string
	seats     []*seat
	next      int // the seat that takes the next step
	raw       *rawSide
	handed    []ledger.Claim // every claim that anybody ever got
	operators []operator.Operator
	focus     int64 // where it is set, steps are drawn for this obligation
	played    []int // of each plot
	cover     *coverage
	seen      map[string]bool // situations, and operations that succeeded
}

// seat is one opening of the ledger, with its own clock.
type seat struct {
	*ledger.Ledger
	now time.Time
}

var internalRoute = ledger.Notice{Routed: ledger.RoutedInternal, Reason: "test"}

func newWorld(rt *rapid.T, path string, empty []byte, anna, ben operator.Operator, cover *coverage) *world {
	w := &world{t: rt, path: path, operators: []operator.Operator{ben, anna}, played: make([]int, len(plots)), cover: cover, seen: map[string]bool{}}
	os.Remove(path)
	w.must(os.WriteFile(path, empty, 0o600))
	start := time.Unix(1_800_000_000, 0)
	w.m = &model{maxAge: map[string]time.Duration{"smtp": time.Hour}}
	for range 2 {
		s := &seat{now: start}
		w.seats = append(w.seats, s)
		w.open(s)
	}
	w.raw = w.look()
	rt.Cleanup(func() {
		for _, s := range w.seats {
			s.Close()
		}
		w.raw.db.Close()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			os.Remove(path + suffix)
		}
	})
	w.signal(start)
	return w
}

func (w *world) open(s *seat) {
	l, err := ledger.Open(context.Background(), w.path, ledger.Options{
		Now:   func() time.Time { return s.now },
		Terms: func(platform string) ledger.Terms { return ledger.Terms{MaxAge: w.m.maxAge[platform]} },
		Route: func() ledger.Notice { return internalRoute },
	})
	w.must(err)
	s.Ledger = l
}

// signal records an inbound item, which no step does yet.
func (w *world) signal(at time.Time) {
	writer := w.plain("rw")
	_, err := writer.Exec(`INSERT INTO obligations (counterparty, source, channel, direction, status, summary, opened_ts, last_touch_ts, updated_at)
		VALUES ('acme', 'smtp', 'C1', 'we_owe_them', 'open', 'asks for a price', $1, $1, $1)`, at.Unix())
	w.must(errors.Join(err, writer.Close()))
	w.m.obligations = []*mObligation{{id: 1, counterparty: "acme", channel: "C1", platform: "smtp", status: ledger.StatusOpen, epoch: at.Unix()}}
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Helper()
		w.t.Fatal(err)
	}
}

func (w *world) seat() *seat { return w.seats[w.next] }

// walk is one sequence: three stretches of random steps, a reopening after each, then a way out for everybody but one,
// then a race for that one.
func (w *world) walk() {
	all := operations()
	for range 3 {
		w.t.Repeat(map[string]func(*rapid.T){"step": func(*rapid.T) { w.step(all) }})
		w.reopen()
	}
	raced := w.obligation(true, func(m *model, o *mObligation) bool { return drafted(m, o) || o.status == ledger.StatusApproved })
	w.waysOut(raced)
	w.race(all, raced)
	w.sound(histories)
	checked, err := w.seats[0].Check(context.Background())
	w.must(err)
	if !checked.OK {
		w.t.Fatalf("check: %q", checked.Problems)
	}
	w.cover.walked(w)
}

func (w *world) step(all []mOperation) {
	w.next = w.upTo(len(w.seats), "seat")
	switch kind := w.upTo(64, "kind of step"); {
	case kind < 24:
		w.take(w.draw(all, true))
	case kind < 44:
		w.plot(all)
	case kind < 56:
		w.take(w.draw(all, false))
	case kind < 61:
		w.tick()
	case kind < 63:
		w.reads()
	default:
		w.reopen()
	}
}

// plots lead into the deep states. They are played step by step between the others; who a step is for is left to chance.
var plots = [][]string{
	{"File", "Approve", "Claim", "BeginDispatch", "MarkUnknown", "MarkUnknownAgain", "Settle", "File", "Approve", "Claim", "BeginDispatch"},
	{"File", "Approve", "Claim", "Adopt", "BeginDispatch", "MarkDead", "Reconcile"},
	{"File", "Approve", "Claim", "Cancel", "Approve", "Claim", "BeginDispatch", "Complete", "CompleteAgain"},
	{"File", "FileAgain", "Approve", "File", "Claim", "CancelByOperator", "Approve", "Claim", "BeginDispatch", "ConfirmSpooled", "ConfirmAgain"},
	{"File", "Approve", "Revoke", "RevokeAgain", "Approve", "DecideAgain"},
}

// plot takes the next step of one of the plots.
func (w *world) plot(all []mOperation) {
	i := w.upTo(len(plots), "plot")
	if w.played[i] == len(plots[i]) {
		w.played[i] = 0
	}
	op := named(all, plots[i][w.played[i]])
	w.played[i]++
	if op.ready == nil || op.ready(w) {
		w.take(op.draw(w, true))
	}
}

// draw draws a step: a lawful one of an operation that has one, or one that most likely is refused.
func (w *world) draw(all []mOperation, lawful bool) mStep {
	var names []string
	for _, op := range all {
		switch {
		case !lawful:
			names = append(names, slices.Repeat([]string{op.name}, 1+op.weight/4)...)
		case op.ready == nil || op.ready(w):
			names = append(names, slices.Repeat([]string{op.name}, op.weight)...)
		}
	}
	return named(all, choose(w, "operation", names)).draw(w, lawful)
}

func named(all []mOperation, name string) mOperation {
	return all[slices.IndexFunc(all, func(op mOperation) bool { return op.name == name })]
}

// take makes one step with ledger and model, and compares.
func (w *world) take(s mStep) error {
	at := w.seat()
	events := len(w.m.events)
	got, err := s.call(context.Background(), at.Ledger)
	w.t.Logf("%s seat %d: %s %s: %v %v", at.now.UTC().Format("02 15:04:05"), w.next, s.name, s.what, got, err)
	if problem := judge(s.rule(w.m, at.now), got, err); problem != nil {
		w.t.Fatalf("%s: %v", s.name, problem)
	}
	w.keep(s, got, err)
	if problem := w.states(w.m); problem != nil {
		w.t.Fatalf("%s: %v", s.name, problem)
	}
	w.audit(w.m.events[events:], err != nil, err != nil && !unrecorded(s, err))
	w.sound(histories[:3])
	return err
}

// unrecorded are the refusals that the audit log may leave out: of a worker that comes again and again, of somebody who proved no
// identity, of what was refused before it came to the ledger; and an expiry has an event of its own.
func unrecorded(s mStep, err error) bool {
	ofWorker := s.name == "Claim" || s.name == "Adopt"
	atClean := errors.As(err, new(*ledger.InputError)) && (s.name == "FileAgain" || s.name == "Repeated")
	return ofWorker || atClean || errors.Is(err, ledger.ErrNoOperator) || errors.As(err, new(*ledger.ExpiredError))
}

func (w *world) keep(s mStep, got any, err error) {
	if c, ok := got.(ledger.Claim); ok && err == nil {
		w.handed = append(w.handed, c)
	}
	w.cover.took(w, s.name, err)
}

func (w *world) reopen() {
	w.must(w.seat().Close())
	w.open(w.seat())
}

// tick moves a seat's clock. The clocks of the seats drift apart, and run back.
func (w *world) tick() {
	by := choose(w, "tick", []time.Duration{time.Second, time.Millisecond, 10 * time.Minute, -time.Second, time.Hour, 2 * time.Hour,
		-10 * time.Minute, -30 * time.Hour, 25 * time.Hour})
	w.seat().now = w.seat().now.Add(by)
}
