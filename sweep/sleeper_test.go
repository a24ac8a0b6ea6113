package sweep

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"countersign/ledger"
)

// sleep starts a worker process, and stops it where it waits first. It returns the event, which release has to repeat.
func (b *bench) sleep(o orders, at string) (*process, string) {
	b.t.Helper()
	p := b.start(o)
	line := p.await(at)
	p.freeze()
	return p, line
}

// wake lets a stopped worker go on to its end.
func (p *process) wake(line string) result {
	p.t.Helper()
	p.signal(unix.SIGCONT)
	p.release(line)
	return p.finish()
}

func (b *bench) takeOver(d ledger.Decided) {
	b.t.Helper()
	holder := b.show(d).Claim.Worker
	if alive, err := b.Alive(holder); !alive || err != nil {
		b.t.Errorf("a stopped worker is not alive: %v", err)
	}
	if r := b.recoverAll(); len(r.Unknown)+len(r.Adoptable) != 0 {
		b.t.Errorf("a stopped worker was taken for dead: %+v", r)
	}
	if err := b.TakeOver(holder); err != nil {
		b.t.Fatal(err)
	}
}

func TestASleeperAfterClaimSendsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	p, line := b.sleep(orders{WaitAt: []Step{AfterClaim}, Skew: time.Hour}, string(AfterClaim))
	b.takeOver(d)
	b.expectItems("delivered", b.deliver(Options{}).Delivered, d)

	out := p.wake(line)
	b.expectItems("skipped", out.Report.Skipped, d)
	contains(t, out.Error, "taken over")
	if n := len(out.Report.Delivered) + len(out.Report.Ambiguous) + len(out.Report.Refused); n != 0 {
		t.Errorf("%+v", out.Report)
	}
	b.expectWire(d)
	b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
}

func TestASleeperAfterBeginSendsNothing(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"longer than the time-out": time.Hour, "not longer": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			d, next := b.approve("a", "x"), b.approve("a", "next")
			p, line := b.sleep(orders{WaitAt: []Step{AfterBegin}, Skew: skew}, string(AfterBegin))
			b.takeOver(d)
			report := b.deliver(Options{})
			b.expectItems("ambiguous", report.Ambiguous, d)
			b.expectItems("delivered", report.Delivered, next)

			out := p.wake(line)
			contains(t, out.Error, "could not be recorded")
			b.expectItems("delivered", out.Report.Delivered)
			b.expectWire(next)
			if s := b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown); s.Claim.Outcome != ledger.Ambiguous || events(s, "unknown") != 1 {
				t.Errorf("the sleeper changed what was recorded: %+v", s.Claim)
			}
		})
	}
}

// Nobody took it over, but it slept past its time-out: its own refusal is what counts.
func TestASleeperThatNobodyMissedSendsNothingEither(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	p, line := b.sleep(orders{WaitAt: []Step{AfterBegin}, Skew: time.Hour}, string(AfterBegin))
	b.deliver(Options{})
	out := p.wake(line)
	b.expectItems("refused", out.Report.Refused, d)
	contains(t, out.Report.Refused[0].Error, "stale-begin", "nothing was handed over")
	b.expectWire()
	b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown)
}

// It was stopped in the middle of its send; the provider's yes is then the truth, and reaches the ledger by the spool.
func TestASleeperInItsSendSpoolsTheReceipt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	p, line := b.sleep(orders{WaitInSend: true}, "sending")
	b.takeOver(d)
	b.expectItems("ambiguous", b.deliver(Options{}).Ambiguous, d)
	out := p.wake(line)
	b.expectItems("ambiguous", out.Report.Ambiguous, d)
	contains(t, out.Report.Ambiguous[0].Error, "spool")
	b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown)
	b.expectItems("delivered", b.deliver(Options{}).Delivered, d)
	b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
	b.expectWire(d)
}

// The look at its own locks is a courtesy: without it, the ledger refuses every step of the sleeper.
func TestTheLedgerRefusesEveryStepOfASleeper(t *testing.T) {
	t.Parallel()
	for _, held := range []string{"claimed", "begun"} {
		t.Run(held, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			d := b.approve("a", "x")
			p, line := b.sleep(orders{Ledger: held}, "holding")
			b.takeOver(d)
			b.deliver(Options{})
			out := p.wake(line)
			if out.Error != "" || len(out.Lost) != 4 {
				t.Fatalf("%+v", out)
			}
			for step, lost := range out.Lost {
				if !lost {
					t.Errorf("%s was not refused", step)
				}
			}
			if held == "claimed" {
				b.expectWire(d)
				b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
			} else {
				b.expectWire()
				b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown)
			}
		})
	}
}
