package sweep

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/transports"
)

// paced is the fake with a provider's limit on each channel.
type paced struct {
	*fake
	every time.Duration
}

func (p paced) Pace(m transports.Message) []transports.Pace {
	return []transports.Pace{{Scope: "channel " + m.Channel, Every: p.every}}
}

// waits collects what a pass would wait for, and doesn't wait.
type waits struct {
	mu  sync.Mutex
	all []time.Duration
}

func (w *waits) wait(_ context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, d)
	return nil
}

func TestPacingIsSharedByOverlappingPasses(t *testing.T) {
	b := newBench(t)
	provider := Fixed(map[string]transports.Transport{"fake": paced{b.fake, time.Hour / 4}})
	first, second := b.approve("c1", "one"), b.approve("c1", "two")
	one := &waits{}
	if _, err := New(b.l, provider).Deliver(t.Context(), Options{Limit: 1, Wait: one.wait}); err != nil {
		t.Fatal(err)
	}
	other := b.approve("c2", "elsewhere")
	two := &waits{}
	if _, err := New(b.open(), provider).Deliver(t.Context(), Options{Wait: two.wait, Concurrency: 1}); err != nil {
		t.Fatal(err)
	}
	if len(one.all) != 0 {
		t.Errorf("the first call waited %v", one.all)
	}
	if len(two.all) != 1 || two.all[0] < 14*time.Minute || two.all[0] > 15*time.Minute {
		t.Errorf("the second pass waited %v, want once, for what is left of 15m", two.all)
	}
	if got := b.onWire(); len(got) != 3 || !slices.Contains(got, other.DecisionID) || got[0] != first.DecisionID || !slices.Contains(got, second.DecisionID) {
		t.Errorf("on the wire: %v", got)
	}
}

func TestWhatIsPacedBeyondThePassIsLeftToALaterOne(t *testing.T) {
	b := newBench(t)
	provider := Fixed(map[string]transports.Transport{"fake": paced{b.fake, time.Hour / 2}})
	first, second, third := b.approve("c1", "one"), b.approve("c1", "two"), b.approve("c1", "three")
	report, err := New(b.l, provider).Deliver(t.Context(), Options{MaxRuntime: time.Minute, Wait: new(waits).wait})
	if err != nil {
		t.Fatal(err)
	}
	b.expectItems("delivered", report.Delivered, first)
	b.expectItems("skipped", report.Skipped, second)
	b.expect(second, "approved", "")
	b.expect(third, "approved", "")
	b.expectWire(first)
}

func rateLimited(after time.Duration) error {
	return &transports.RefusedError{Stage: "send", Code: "429", RetryAfter: after, Err: errors.New("slow down")}
}

func TestRateLimitIsWaitedOutOnlyWhereItIsSwitchedOn(t *testing.T) {
	for _, test := range []struct {
		name           string
		after          time.Duration
		waits, refuses int
		delivered      bool
		attempts       int
	}{
		{"off by default", 3 * time.Second, 0, 1, false, 1},
		{"a short one is waited out", 3 * time.Second, 1, 1, true, 2},
		{"the longest", MaxRateLimitWait, 2, 2, true, 3},
		{"more than allowed", 3 * time.Second, 1, 2, false, 2},
		{"too long to wait for", 10_072 * time.Second, 1, 1, false, 1},
		{"no usable time", 0, 1, 1, false, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			var attempts int
			b.fake.before = func(context.Context, transports.Message) error {
				if attempts++; attempts <= test.refuses {
					return rateLimited(test.after)
				}
				return nil
			}
			v, next := b.approve("c1", "one"), b.approve("c1", "next")
			report := b.deliver(Options{RateLimitWaits: test.waits, Wait: new(waits).wait, Limit: 1})
			if attempts != test.attempts {
				t.Errorf("%d attempts, want %d", attempts, test.attempts)
			}
			if test.delivered {
				b.expectItems("delivered", report.Delivered, v)
				b.expectWire(v)
				return
			}
			b.expectItems("refused", report.Refused, v)
			b.expect(v, "approved", "unknown")
			b.expect(next, "approved", "")
			b.expectWire()
		})
	}
}

// After a rate-limit refusal the whole destination is left alone for as long as the provider asked, by every process.
func TestRateLimitRefusalBacksTheDestinationOff(t *testing.T) {
	b := newBench(t)
	b.fake.before = func(context.Context, transports.Message) error { return rateLimited(10_072 * time.Second) }
	v, next := b.approve("c1", "one"), b.approve("c1", "next")
	report := b.deliver(Options{})
	b.expectItems("refused", report.Refused, v)
	b.now = func() time.Time { return time.Now().Add(10_000 * time.Second) }
	if again := b.deliver(Options{}); len(again.Refused)+len(again.Delivered)+len(again.NotPrepared) != 0 {
		t.Errorf("tried before its time: %+v", again)
	}
	b.expect(next, "approved", "")
}

// A worker that was taken over while it waited does not send again.
func TestRateLimitWaitEndsWithATakeOver(t *testing.T) {
	b := newBench(t)
	var attempts int
	b.fake.before = func(context.Context, transports.Message) error { attempts++; return rateLimited(time.Second) }
	v := b.approve("c1", "one")
	stolen := func(context.Context, time.Duration) error {
		return b.TakeOver(b.show(v).Claim.Worker)
	}
	report, _ := b.Deliver(t.Context(), Options{RateLimitWaits: 3, Wait: stolen})
	if attempts != 1 {
		t.Errorf("%d attempts, want 1: %+v", attempts, report)
	}
}
