package sweep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"countersign/transports"
)

// Defaults of Options.
const (
	DefaultTimeout     = 60 * time.Second
	DefaultConcurrency = 8
)

// MaxRateLimitWait is the longest time for which a provider's request to come back later is waited out inside a dispatch.
const MaxRateLimitWait = 30 * time.Second

// Options say what one deliver pass does. The zero value is ready for use.
type Options struct {
	Timeout     time.Duration // of one Send, counted from the begin of its dispatch; of Connect and Prepare too. DefaultTimeout
	Concurrency int           // destinations at once. DefaultConcurrency
	Hold        time.Duration // only what was approved at least this long ago
	Limit       int           // messages whose dispatch may begin; 0 is no limit
	Platform    string        // "": all
	MaxRuntime  time.Duration // after that nothing new is begun; 0 is no limit
	NoBackoff   bool          // try also what is left alone for now; what fails again rests longer, as ever

	// RateLimitWaits is how many documented rate-limit refusals one dispatch may wait out, each up to MaxRateLimitWait; none by
	// default. It is the one case in which a message is handed over again: the provider has said that it did not take it.
	RateLimitWaits int

	// DryRun lists what would be tried as Planned, and as Skipped what is left alone for now; it touches nothing.
	DryRun bool

	// Progress is told of every item at once, one at a time.
	Progress func(Kind, Item)

	// Step is told of every step that a message has behind it; self-tests and crash tests kill their process in it. Several
	// destinations call it at once.
	Step func(Step, Item)

	Now    func() time.Time                                 // time.Now. Deadlines come from it, so that it has to run with the real time
	Wait   func(ctx context.Context, d time.Duration) error // a timer; returns early, with its error, when ctx ends
	Jitter func() float64                                   // of back-off, from 0 up to 1; random
}

// Step names a point between two steps of a delivery.
type Step string

// The steps, in their order. A process that ends at one of them leaves:
const (
	AfterPrepare  Step = "after-prepare"  // nothing
	AfterSlot     Step = "after-slot"     // an empty slot, which recovery removes
	AfterClaim    Step = "after-claim"    // a claim, which another worker adopts
	AfterBegin    Step = "after-begin"    // a claim that becomes unknown; nothing was sent
	AfterSend     Step = "after-send"     // a claim that becomes unknown; it was sent
	AfterSpool    Step = "after-spool"    // a claim that recovery completes from the spool
	AfterComplete Step = "after-complete" // a delivered message
	AfterUnknown  Step = "after-unknown"  // an unknown claim
)

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Concurrency <= 0 {
		o.Concurrency = DefaultConcurrency
	}
	if o.Step == nil {
		o.Step = func(Step, Item) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Transports opens the transport of a platform, once a pass, when the first message for it comes. For a platform that has none
// its error is *NotConfiguredError.
type Transports func(platform string) (transports.Transport, error)

// Fixed serves transports that are open already.
func Fixed(byPlatform map[string]transports.Transport) Transports {
	return func(platform string) (transports.Transport, error) {
		t, ok := byPlatform[platform]
		if !ok {
			return nil, &NotConfiguredError{platform}
		}
		return t, nil
	}
}

// NotConfiguredError says that a platform has no transport.
type NotConfiguredError struct{ Platform string }

func (e *NotConfiguredError) Error() string {
	return fmt.Sprintf("there is no transport for %q; add [transports.%s] to the configuration", e.Platform, e.Platform)
}
