package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"countersign/ledger"
)

// What happens when somebody else holds the ledger's write lock.

// hold takes the write lock as another process would, and returns what gives it back.
func (d *desk) hold() (release func()) {
	d.t.Helper()
	conn, err := d.plain().Conn(context.Background())
	must(d.t, err)
	_, err = conn.ExecContext(context.Background(), "BEGIN IMMEDIATE")
	must(d.t, err)
	return sync.OnceFunc(func() {
		conn.ExecContext(context.Background(), "ROLLBACK")
		conn.Close()
	})
}

func TestAStepWaitsForTheLockAndSucceeds(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *ledger.Options) { o.BusyTimeout = time.Minute })
	v := d.approved("one")
	release := d.hold()
	defer release()
	claimed := make(chan error, 1)
	go func() { claimed <- second(d.Claim(t.Context(), v.DecisionID, "w1")) }()
	for range 50 { // reads don't wait for the writer
		if s := d.show(v.ObligationID); s.Claim != nil {
			t.Fatal("it claimed without the lock")
		}
	}
	select {
	case err := <-claimed:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	release()
	must(t, <-claimed)
}

func TestAfterTheLimitAStepIsBusyAndChangedNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *ledger.Options) { o.BusyTimeout = 5 * time.Millisecond })
	v := d.approved("one")
	c := d.claim(v)
	draft := d.clean(filing("two"))
	release := d.hold()
	defer release()
	before := d.state(v)
	for name, err := range map[string]error{
		"file":     second(d.File(t.Context(), draft, ledger.Gates{})),
		"begin":    second(d.BeginDispatch(t.Context(), c)),
		"claim":    second(d.Claim(t.Context(), v.DecisionID, "w2")),
		"decide":   second(d.Decide(t.Context(), ledger.Decision{ObligationID: v.ObligationID, Epoch: v.Epoch, Verdict: ledger.Approve, Operator: d.anna})),
		"backoff":  d.Backoff(t.Context(), ledger.Destination{}, func(int) time.Duration { return 0 }, "x"),
		"complete": d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}),
	} {
		if !errors.Is(err, ledger.ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := d.state(v); now != before {
		t.Errorf("it was %s and is %s", before, now)
	}
	release()
	d.begin(c)
}

func TestFourWritersAllGetTheirTurn(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 25
	d := newDesk(t, func(o *ledger.Options) { o.BusyTimeout = time.Minute })
	var all sync.WaitGroup
	for w := range writers {
		l := d.open()
		all.Go(func() {
			for i := range each {
				f := filing(fmt.Sprintf("text %d of writer %d", i, w))
				f.Counterparty = fmt.Sprintf("c%d", i) // all writers file for the same pairs
				if _, err := l.File(t.Context(), d.clean(f), ledger.Gates{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := d.count(`SELECT count(*) FROM filings`); n != writers*each {
		t.Errorf("%d filings, want %d", n, writers*each)
	}
	if n := d.count(`SELECT count(*) FROM obligations`); n != each {
		t.Errorf("%d obligations, want %d", n, each)
	}
	if n := d.count(`SELECT count(*) FROM obligations o JOIN filings f ON f.obligation_id = o.id AND f.epoch = o.updated_at
		JOIN obligation_drafts x ON x.obligation_id = o.id AND x.draft_text = f.text`); n != each {
		t.Errorf("%d drafts equal their newest filing, want %d", n, each)
	}
}

// One approval, many workers on connections of their own: one gets the permission, and it sends.
func TestManyWorkersOneDispatch(t *testing.T) {
	t.Parallel()
	const workers = 6
	d := newDesk(t, func(o *ledger.Options) { o.BusyTimeout = time.Minute })
	v := d.approved("one")
	var all sync.WaitGroup
	var payloads sync.Map
	for w := range workers {
		l := d.open()
		all.Go(func() {
			name := fmt.Sprintf("w%d", w)
			c, err := l.Claim(t.Context(), v.DecisionID, name)
			if is[*ledger.HeldError](err) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			p, err := l.BeginDispatch(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			payloads.Store(name, p)
		})
	}
	all.Wait()
	n := 0
	payloads.Range(func(_, _ any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d payloads came out, want 1", n)
	}
}

// The same claim in two hands: one begin wins.
func TestTwoBeginsOfOneClaim(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.claim(d.approved("one"))
	results := make(chan error, 2)
	for range 2 {
		l := d.open()
		go func() { results <- second(l.BeginDispatch(t.Context(), c)) }()
	}
	first, other := <-results, <-results
	if first != nil {
		first, other = other, first
	}
	must(t, first)
	want[*ledger.LostClaimError](t, other)
}
