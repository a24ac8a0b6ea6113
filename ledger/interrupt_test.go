package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"countersign/ledger"
)

// A context that ends at any moment leaves no half-written step, and the next call works at once.

// within runs the step with a context that ends after 0 to 5 ms.
func within(t *testing.T, random *rand.Rand, step func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(5*time.Millisecond))))
	defer cancel()
	err := step(ctx)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("interrupted: %v", err)
	}
	return err
}

func TestAnInterruptedStepIsDoneOrNot(t *testing.T) {
	t.Parallel()
	const workers, cycles = 4, interruptCycles // of three steps each, all on one pool: a thousand contexts that end
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	d := newDesk(t)
	var approvals [workers][cycles]ledger.Decided
	for w := range workers {
		for i := range cycles {
			f := filing("one")
			f.Counterparty = fmt.Sprintf("c%d-%d", w, i)
			approvals[w][i] = d.decide(d.file(f), ledger.Approve)
		}
	}
	var all sync.WaitGroup
	var interrupted atomic.Int64
	for w := range workers {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		all.Go(func() {
			for _, v := range approvals[w] {
				interrupted.Add(d.cycle(random, v))
			}
		})
	}
	all.Wait()
	t.Logf("%d of %d steps were interrupted", interrupted.Load(), 3*workers*cycles)
	if interrupted.Load() == 0 {
		t.Error("no step was interrupted: the test proves nothing")
	}
	if n := d.count(`SELECT count(*) FROM obligations o JOIN obligation_deliveries r ON r.obligation_id = o.id WHERE o.status = 'sent'`); n != workers*cycles {
		t.Errorf("%d of %d were sent", n, workers*cycles)
	}
	if n := d.count(`SELECT count(*) FROM audit_log WHERE event IN ('claimed', 'dispatching', 'delivered')`); n != 3*workers*cycles {
		t.Errorf("%d audit rows of the claims' steps, want %d", n, 3*workers*cycles)
	}
	checked, err := d.Check(t.Context())
	must(t, err)
	if !checked.OK {
		t.Errorf("check: %v", checked.Problems)
	}
}

// cycle takes an approval to sent, each step first with a context that ends, and returns how many of them that interrupted.
func (d *desk) cycle(random *rand.Rand, v ledger.Decided) (interrupted int64) {
	var c ledger.Claim
	for _, step := range []func(ctx context.Context) error{
		func(ctx context.Context) (err error) { c, err = d.Claim(ctx, v.DecisionID, "w1"); return err },
		func(ctx context.Context) error { return second(d.BeginDispatch(ctx, c)) },
		func(ctx context.Context) error { return d.Complete(ctx, c, ledger.Receipt{Coordinate: "x"}) },
	} {
		before := d.state(v)
		if within(d.t.(*testing.T), random, step) == nil {
			continue
		}
		interrupted++
		if now := d.state(v); now != before { // told that it failed, so nothing may have happened
			d.t.Errorf("obligation %d: an interrupted step left it %q, it was %q", v.ObligationID, now, before)
		}
		if err := step(d.t.Context()); err != nil {
			d.t.Errorf("the next call: %v", err)
		}
	}
	return interrupted
}

// state is all that a step of a claim can have written.
func (d *desk) state(v ledger.Decided) string {
	d.t.Helper()
	s := d.show(v.ObligationID)
	claim := "none"
	if s.Claim != nil {
		claim = string(s.Claim.State)
	}
	return fmt.Sprint(s.Status, claim, s.Delivery != nil, len(s.Audit))
}

func TestAnEndedContextStartsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := d.state(v)
	for name, err := range map[string]error{
		"claim":  second(d.Claim(ended, v.DecisionID, "w1")),
		"file":   second(d.File(ended, d.clean(filing("two")), ledger.Gates{})),
		"revoke": second(d.Revoke(ended, ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "r"})),
		"show":   second(d.Show(ended, v.ObligationID)),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now := d.state(v); now != before {
		t.Errorf("it was %s and is %s", before, now)
	}
	d.claim(v)
}

// A read that is interrupted leaves its connection usable.
func TestAnInterruptedReadLeavesThePoolWhole(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	d := newDesk(t)
	for i := range 5 {
		f := filing("one")
		f.Counterparty = fmt.Sprintf("c%d", i)
		d.file(f)
	}
	for range 60 {
		within(t, random, func(ctx context.Context) error { return second(d.Check(ctx)) })
		waiting, err := d.Waiting(t.Context(), ledger.ListFilter{})
		if err != nil || len(waiting) != 5 {
			t.Fatalf("%d wait, %v", len(waiting), err)
		}
	}
}
