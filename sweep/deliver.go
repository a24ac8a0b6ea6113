package sweep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"countersign/ledger"
)

// Sweeper makes passes over one ledger. It is safe for concurrent use, and any number of them may work on one ledger, in any
// number of processes of one host.
type Sweeper struct {
	ledger     *ledger.Ledger
	transports Transports
	place      workplace
}

// New returns a Sweeper. It touches nothing yet.
func New(l *ledger.Ledger, t Transports) *Sweeper {
	return &Sweeper{ledger: l, transports: t, place: workplaceOf(l.Path())}
}

// Alive tells whether a worker holds its lock, which no clock decides. With an error nobody knows.
func (s *Sweeper) Alive(worker string) (bool, error) { return s.place.alive(worker) }

// TakeOver declares a worker dead although its process may still hold its locks, which is what a process that was stopped
// (SIGSTOP) and won't go on needs. The next pass then treats its claims as a dead worker's. When it wakes, its every step is
// refused; only a send that it was in the middle of may still end, and its receipt then goes to the spool. The caller has made
// sure that an operator wants this. *NoWorkerError when there is no such worker.
func (s *Sweeper) TakeOver(worker string) error { return s.place.takeOver(worker) }

// Deliver makes one pass: it recovers what dead workers left, and then delivers what is approved, several destinations at once,
// the most urgent first, and on each destination in the order of decisions.
//
// The report is what was done, also with an error. Errors are failures of the ledger (ledger.ErrBusy, *ledger.FullError), of the
// spool or the locks, and ErrTakenOver; the first one ends the pass. That something could not be prepared, was refused, or is
// unknown, is no error. A cancelled context ends the pass after the message in hand, without an error.
func (s *Sweeper) Deliver(ctx context.Context, opts Options) (Report, error) {
	opts = opts.withDefaults()
	if opts.MaxRuntime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opts.MaxRuntime)
		defer cancel()
	}
	p := &pass{Sweeper: s, opts: opts, pools: map[string]*pool{}, report: &collector{report: newReport(), progress: opts.Progress}}
	err := p.run(ctx)
	p.report.report.Interrupted = ctx.Err() != nil
	if errors.Is(err, errStopped) {
		err = nil
	}
	return p.report.report, err
}

// errStopped says that the context of a pass was cancelled before something was begun. It is no failure.
var errStopped = errors.New("the pass was stopped")

// orStopped tells a step that a cancelled context interrupted, which is no failure of the ledger, from one that failed.
func orStopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errStopped
	}
	return err
}

// pass is one deliver pass.
type pass struct {
	*Sweeper
	opts   Options
	worker *worker
	report *collector

	mu    sync.Mutex
	pools map[string]*pool // by platform

	begun atomic.Int64 // messages that count against the limit
	slots atomic.Int64 // numbers of slots
}

func (p *pass) run(ctx context.Context) (err error) {
	if p.opts.DryRun {
		return p.plan(ctx)
	}
	if p.worker, err = p.place.register(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.worker.close()) }()
	if err := p.recoverFirst(ctx); err != nil {
		return err
	}
	if err := p.tellBackedOff(ctx); err != nil {
		return orStopped(ctx, err)
	}
	destinations, err := p.ledger.Destinations(ctx, p.filter())
	if err != nil {
		return orStopped(ctx, err)
	}
	defer p.closePools()
	return p.visit(ctx, destinations)
}

func (p *pass) filter() ledger.DeliverFilter {
	return ledger.DeliverFilter{Platform: p.opts.Platform, Hold: p.opts.Hold, Resting: p.opts.NoBackoff}
}

// recoverFirst recovers, and reports what that found out about messages: it is part of the pass.
func (p *pass) recoverFirst(ctx context.Context) error {
	found, err := p.recover(ctx, p.worker)
	p.report.add(Delivered, found.Confirmed...)
	p.report.add(Ambiguous, found.Unknown...)
	p.report.add(Ambiguous, found.Bad...)
	return orStopped(ctx, err)
}

// tellBackedOff reports what waits at destinations that are left alone for now: whoever has just mended their mail server has to hear
// why nothing happens, and until when.
func (p *pass) tellBackedOff(ctx context.Context) error {
	if p.opts.NoBackoff {
		return nil
	}
	resting, err := p.ledger.BackedOff(ctx, p.filter())
	if err != nil {
		return err
	}
	for _, b := range resting {
		why := fmt.Errorf("left alone until %s, since it could not be prepared: %s", b.Until.UTC().Format(time.RFC3339), b.Cause)
		if err := (&lane{pass: p}).pastBy(ctx, b.Destination, Skipped, why); err != nil {
			return err
		}
	}
	return nil
}

// plan lists what would be tried, and what rests.
func (p *pass) plan(ctx context.Context) error {
	if err := p.tellBackedOff(ctx); err != nil {
		return orStopped(ctx, err)
	}
	destinations, err := p.ledger.Destinations(ctx, p.filter())
	if err != nil {
		return orStopped(ctx, err)
	}
	for _, d := range destinations {
		for after := int64(0); ; {
			ready, err := p.ledger.Next(ctx, d, p.filter(), after)
			if err != nil {
				return orStopped(ctx, err)
			}
			if ready == nil {
				break
			}
			if !p.countIn() {
				return nil
			}
			after = ready.DecisionID
			p.report.add(Planned, itemOf(ready))
		}
	}
	return nil
}

// visit works on several destinations at once, in their order. The first failure lets the others finish what they have in hand.
func (p *pass) visit(ctx context.Context, destinations []ledger.Destination) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	failures := make(chan error, 1) // the first
	var next atomic.Int64
	var lanes sync.WaitGroup
	for range min(p.opts.Concurrency, len(destinations)) {
		lanes.Go(func() {
			l := &lane{pass: p}
			defer l.close()
			for i := int(next.Add(1)) - 1; i < len(destinations) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				if err := l.visit(ctx, destinations[i]); err != nil {
					stop(err)
					select {
					case failures <- err:
					default:
					}
				}
			}
		})
	}
	lanes.Wait()
	close(failures)
	return <-failures
}

// pool returns the sessions of a platform.
func (p *pass) pool(platform string) (*pool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have, ok := p.pools[platform]; ok {
		return have, nil
	}
	transport, err := p.transports(platform)
	if err != nil {
		return nil, fmt.Errorf("the transport of %s: %w", platform, err)
	}
	p.pools[platform] = newPool(transport, p.opts.Concurrency, p.opts.Timeout)
	return p.pools[platform], nil
}

func (p *pass) closePools() {
	for _, pool := range p.pools {
		pool.close()
	}
}

// countIn takes one message from the pass's limit, if any is left.
func (p *pass) countIn() bool {
	if p.opts.Limit <= 0 {
		return true
	}
	if p.begun.Add(1) <= int64(p.opts.Limit) {
		return true
	}
	p.countOut()
	return false
}

func (p *pass) countOut() { p.begun.Add(-1) }

func itemOf(r *ledger.Ready) Item {
	return Item{ObligationID: r.ObligationID, DecisionID: r.DecisionID, Platform: r.Platform, Channel: r.Channel}
}
