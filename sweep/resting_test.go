package sweep

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/transports"
)

// Whoever mended the provider used to see nothing happen, and no reason, until the back-off ended.
func TestWhatRestsIsToldWithItsTimeAndCause(t *testing.T) {
	b := newBench(t)
	b.fake.prepare = func(int, transports.Message) error {
		return &transports.PrepareError{Stage: "rcpt", Code: "450", Err: errors.New("greylisted")}
	}
	v := b.approve("c1", "one")
	b.expectItems("not prepared", b.deliver(Options{}).NotPrepared, v)
	b.fake.prepare = nil
	report := b.deliver(Options{})
	b.expectItems("skipped", report.Skipped, v)
	contains(t, report.Skipped[0].Error, "left alone until 20", "450", "greylisted")
	b.expectWire()
	if other := b.deliver(Options{Platform: "elsewhere"}); len(other.Skipped) != 0 {
		t.Errorf("another platform's pass tells of it: %+v", other.Skipped)
	}
}

// Whoever had mended the provider used to have no way but to wait.
func TestAPassCanTryWhatRests(t *testing.T) {
	b := newBench(t)
	broken := func(int, transports.Message) error {
		return &transports.PrepareError{Stage: "rcpt", Code: "450", Err: errors.New("greylisted")}
	}
	b.fake.prepare = broken
	v := b.approve("c1", "one")
	b.expectItems("not prepared", b.deliver(Options{}).NotPrepared, v)

	plan := b.deliver(Options{DryRun: true})
	b.expectItems("skipped", plan.Skipped, v)
	contains(t, plan.Skipped[0].Error, "left alone until 20", "greylisted")
	b.expectItems("planned", plan.Planned)
	plan = b.deliver(Options{DryRun: true, NoBackoff: true})
	b.expectItems("skipped", plan.Skipped)
	b.expectItems("planned", plan.Planned, v)

	// What fails once more rests longer than before, also for a pass that doesn't ask.
	until := func() time.Time {
		t.Helper()
		resting, err := b.l.BackedOff(t.Context(), ledger.DeliverFilter{})
		if err != nil || len(resting) != 1 {
			t.Fatalf("%v, %v", resting, err)
		}
		return resting[0].Until
	}
	first := until()
	b.expectItems("not prepared", b.deliver(Options{NoBackoff: true}).NotPrepared, v)
	if second := until(); !second.After(first) {
		t.Errorf("it rests until %v, and before until %v", second, first)
	}
	b.expectItems("skipped", b.deliver(Options{}).Skipped, v)

	b.fake.prepare = nil
	b.expectItems("delivered", b.deliver(Options{NoBackoff: true}).Delivered, v)
	b.expectWire(v)
}

// A signal in a recover pass used to be told as its failure.
func TestACancelledRecoverPassIsNoFailure(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found, err := b.Recover(ctx)
	if err != nil || !found.Interrupted {
		t.Errorf("%+v, %v", found, err)
	}
	if left := b.files(); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
}
