package sweep

import (
	"errors"
	"testing"

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
