package sweep

import (
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/ledger"
)

// A worker process is killed at every step; what is then found must be what the step's comment says.
func TestAKilledWorkerSendsAtMostOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at      Step
		adopted bool
		sent    bool // by the killed worker
		unknown bool
	}{
		{at: AfterPrepare}, {at: AfterSlot}, {at: AfterClaim, adopted: true},
		{at: AfterBegin, unknown: true}, {at: AfterSend, sent: true, unknown: true}, {at: AfterComplete, sent: true},
	} {
		t.Run(string(c.at), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			d := b.approve("a", "x")
			p := b.start(orders{WaitAt: []Step{c.at}})
			p.await(string(c.at))
			if r := b.deliver(Options{}); len(r.Delivered)+len(r.Ambiguous) != 0 {
				t.Errorf("a living worker was robbed: %+v", r)
			}
			p.kill()

			report := b.deliver(Options{})
			shown := b.show(d)
			switch {
			case c.unknown:
				b.expectItems("ambiguous", report.Ambiguous, d)
				b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown)
				contains(t, report.Ambiguous[0].Error, "died")
			case c.sent:
				b.expectItems("ambiguous", report.Ambiguous)
				b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
			default:
				b.expectItems("delivered", report.Delivered, d)
			}
			if got := events(shown, "adopted") == 1; got != c.adopted {
				t.Errorf("adopted: %v, want %v", got, c.adopted)
			}
			again := b.deliver(Options{})
			if n := len(again.Delivered) + len(again.Ambiguous) + len(again.Skipped); n != 0 {
				t.Errorf("a second pass did something: %+v", again)
			}
			if got := events(b.show(d), "unknown"); (got == 1) != c.unknown || got > 1 { // listed and noticed once
				t.Errorf("marked unknown %d times", got)
			}
			if c.sent || !c.unknown {
				b.expectWire(d)
			} else {
				b.expectWire()
			}
			if left := b.files(); len(left) > 1 { // a destination where nothing waits any more keeps its dead worker's lock file
				t.Errorf("files left: %v", left)
			}
		})
	}
}

func TestAKilledWorkersSpooledReceiptIsReconciled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	p := b.start(orders{WaitAt: []Step{AfterSpool}, GrowNoMore: map[Step]bool{AfterSend: true}})
	p.await(string(AfterSpool))
	p.kill()
	report := b.deliver(Options{})
	b.expectItems("delivered", report.Delivered, d)
	b.expectItems("ambiguous", report.Ambiguous)
	b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
	b.expectWire(d)
}

func TestManyPassesRecoverADeadWorkerOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	p := b.start(orders{WaitAt: []Step{AfterSend}})
	p.await(string(AfterSend))
	p.kill()
	unknown := 0
	for _, out := range b.together(8, orders{}) {
		if out.Error != "" {
			t.Error(out.Error)
		}
		unknown += len(out.Report.Ambiguous)
	}
	if unknown != 1 || events(b.show(d), "unknown") != 1 {
		t.Errorf("marked unknown by %d passes", unknown)
	}
	b.expectWire(d)
}

// together starts so many worker processes, lets them go at one instant, and returns what they did. All end with 0.
func (b *bench) together(n int, o orders) []result {
	b.t.Helper()
	o.WaitReady = true
	var all []*process
	for range n {
		all = append(all, b.start(o))
	}
	for _, p := range all {
		p.await("ready")
	}
	for _, p := range all {
		p.release("ready 0")
	}
	var out []result
	for _, p := range all {
		out = append(out, p.finish())
	}
	return out
}

func TestEightPassesOnOneRowSendItOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	delivered := 0
	for _, out := range b.together(8, orders{}) {
		if out.Error != "" {
			t.Error(out.Error)
		}
		delivered += len(out.Report.Delivered)
		if n := len(out.Report.Ambiguous) + len(out.Report.Refused) + len(out.Report.NotPrepared); n != 0 {
			t.Errorf("a loser did something: %+v", out.Report)
		}
	}
	if delivered != 1 {
		t.Errorf("%d passes delivered it", delivered)
	}
	b.expectWire(d)
}

// Eight passes, of which one is slow: it stays in the middle of its first send until all others are done.
func TestEightPassesOnAHundredRowsSendEachOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want []int64
	inOrder := map[string][]int64{}
	for i := range 100 {
		channel := fmt.Sprint(i % 20)
		d := b.approve(channel, "x")
		want = append(want, d.DecisionID)
		inOrder[channel] = append(inOrder[channel], d.DecisionID)
	}
	slow := b.start(orders{WaitInSend: true, Concurrency: 1})
	first := slow.await("sending")
	for _, out := range b.together(7, orders{Concurrency: 3}) {
		if out.Error != "" || len(out.Report.Ambiguous)+len(out.Report.Refused)+len(out.Report.NotPrepared) != 0 {
			t.Errorf("%+v", out)
		}
	}
	if got := len(b.onWire()); got != 96 { // its destination's other four wait for it
		t.Errorf("%d rows were sent while the slow one was in its first send, want 96", got)
	}
	for line := first; line != ""; line = slow.next() {
		slow.release(line)
	}
	if out := slow.finish(); len(out.Report.Delivered) != 5 || out.Error != "" {
		t.Errorf("the slow one: %+v", out)
	}
	got := b.onWire()
	for channel, ids := range inOrder {
		here := slices.DeleteFunc(slices.Clone(got), func(id int64) bool { return !slices.Contains(ids, id) })
		if !slices.Equal(here, ids) {
			t.Errorf("destination %s got %v, want %v", channel, here, ids)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%d sends of %d rows", len(got), len(want))
	}
}

func TestSIGTERMFinishesTheMessageInHand(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	sending, next := b.approve("a", "in hand"), b.approve("a", "next")
	claimed := b.approve("b", "only claimed")
	p := b.start(orders{WaitInSend: true, WaitAt: []Step{AfterClaim}, Concurrency: 2})
	inSend := fmt.Sprintf("sending %d", sending.DecisionID)
	inClaim := fmt.Sprintf("after-claim %d", claimed.DecisionID)
	for seen := map[string]bool{}; !seen[inSend] || !seen[inClaim]; {
		line := p.await("")
		seen[line] = true
		if line == fmt.Sprintf("after-claim %d", sending.DecisionID) {
			p.release(line)
		}
	}
	p.signal(unix.SIGTERM)
	p.await("terminated")
	p.release(inClaim)
	p.release(inSend)
	out := p.finish()
	b.expectItems("delivered", out.Report.Delivered, sending)
	if out.Error != "" || !out.Report.Interrupted {
		t.Errorf("%+v", out)
	}
	b.expect(sending, ledger.StatusSent, ledger.ClaimDelivered)
	b.expect(next, ledger.StatusApproved, "")
	b.expect(claimed, ledger.StatusApproved, ledger.ClaimClaimed)
	b.expectWire(sending)
	b.deliver(Options{Concurrency: 1})
	b.expectWire(sending, next, claimed)
}
