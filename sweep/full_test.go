package sweep

import (
	"errors"
	"fmt"
	"testing"

	"countersign/ledger"
	"countersign/transports"
)

// In these tests the kernel refuses a worker process every write past a file's present size (RLIMIT_FSIZE), as a full disk refuses
// a file that has to grow. SQLite reports that as a failed write.

func TestADiskFullAfterTheSendSpoolsAndIsReconciled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, next := b.approve("a", "x"), b.approve("a", "next")
	out := b.start(orders{GrowNoMore: map[Step]bool{AfterSend: true}}).finish()
	if out.Error == "" {
		t.Error("the ledger could not be written, and the pass says nothing")
	}
	b.expectItems("ambiguous", out.Report.Ambiguous, d)
	contains(t, out.Report.Ambiguous[0].Error, fmt.Sprintf("wire:%d", d.DecisionID), "spool")
	b.expectWire(d) // the pass stopped
	b.expect(d, ledger.StatusApproved, ledger.ClaimDispatching)

	report := b.deliver(Options{}) // space is back
	b.expectItems("delivered", report.Delivered, d, next)
	b.expectWire(d, next)
}

func TestADiskFullBeforeTheClaimBeginsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	out := b.start(orders{GrowNoMore: map[Step]bool{AfterPrepare: true}, FileLimit: slotSize / 2}).finish()
	b.expectItems("not prepared", out.Report.NotPrepared, d) // one, and no loop
	contains(t, out.Error, "no room can be reserved")
	b.expectWire()
	b.expect(d, ledger.StatusApproved, "")
	b.expectItems("delivered", b.deliver(Options{}).Delivered, d)
	if left := b.files(); len(left) != 0 {
		t.Errorf("files left: %v", left)
	}
}

func TestADiskFullAtEachStepLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at    Step
		claim ledger.ClaimState
		kind  Kind
	}{
		{AfterSlot, "", ""},
		{AfterClaim, ledger.ClaimClaimed, ""},
		{AfterBegin, ledger.ClaimDispatching, Ambiguous}, // sent, and kept in the spool
	} {
		t.Run(string(c.at), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			d := b.approve("a", "x")
			out := b.start(orders{GrowNoMore: map[Step]bool{c.at: true}}).finish()
			if out.Error == "" {
				t.Error("the ledger could not be written, and the pass says nothing")
			}
			if c.kind != "" {
				b.expectItems(string(c.kind), *out.Report.list(c.kind), d)
			}
			b.expect(d, ledger.StatusApproved, c.claim)
			b.expectItems("delivered", b.deliver(Options{}).Delivered, d)
			b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
			b.expectWire(d)
		})
	}
}

// The outcome of a refused send can't be recorded: the claim stays in dispatch, and its worker's end makes it unknown.
func TestAnOutcomeThatCannotBeRecordedBecomesUnknown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, next := b.approve("a", "x"), b.approve("a", "next")
	b.fake.after = func(m transports.Message, _ *transports.Receipt) error {
		if m.Text == "x" {
			return &transports.RefusedError{Stage: "final-dot", Code: "550"}
		}
		return nil
	}
	report, err := b.deliverBusy(func() {})
	if !errors.Is(err, ledger.ErrBusy) {
		t.Fatalf("err: %v", err)
	}
	b.expectItems("refused", report.Refused, d)
	contains(t, report.Refused[0].Error, "550", "could not be recorded")
	b.expect(d, ledger.StatusApproved, ledger.ClaimDispatching)
	report = b.deliver(Options{})
	b.expectItems("ambiguous", report.Ambiguous, d)
	b.expectItems("delivered", report.Delivered, next)
	b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown)
	b.expectWire(d, next)
}

func TestABusyLedgerStopsThePassWithItsReport(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sent, waiting, elsewhere := b.approve("a", "x"), b.approve("a", "y"), b.approve("b", "z")
	release := func() {}
	report, err := b.Deliver(t.Context(), Options{Concurrency: 1, Step: func(s Step, item Item) {
		if s == AfterPrepare && item.ObligationID == waiting.ObligationID {
			release = b.writeLock()
		}
	}})
	release()
	if !errors.Is(err, ledger.ErrBusy) {
		t.Fatalf("err: %v", err)
	}
	b.expectItems("delivered", report.Delivered, sent)
	b.expect(waiting, ledger.StatusApproved, "")
	if b.fake.prepares != 2 {
		t.Errorf("%d messages were prepared; the pass went on after its failure", b.fake.prepares)
	}
	b.expectItems("delivered", b.deliver(Options{}).Delivered, waiting, elsewhere)
}

func TestAnOutcomeIsWrittenAgainOnlyWhileTheLedgerIsBusy(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		outcomes []error
		want     error
		tries    int
	}{
		{[]error{nil}, nil, 1},
		{[]error{ledger.ErrBusy, ledger.ErrBusy, nil}, nil, 3},
		{[]error{ledger.ErrBusy, ledger.ErrBusy, ledger.ErrBusy}, ledger.ErrBusy, 3},
		{[]error{broken}, broken, 1},
		{[]error{&ledger.FullError{}}, &ledger.FullError{}, 1},
	} {
		tries := 0
		err := persist(func() error {
			tries++
			return c.outcomes[tries-1]
		})
		if tries != c.tries || fmt.Sprint(err) != fmt.Sprint(c.want) {
			t.Errorf("%v: %d tries, %v", c.outcomes, tries, err)
		}
	}
}
