package sweep

import (
	"context"
	"errors"
	"time"

	"countersign/ledger"
	"countersign/transports"
)

// lane is one of the goroutines of a pass: it is on one destination at a time, with one message in hand.
type lane struct {
	*pass
	slot        *slot     // reserved before the first dispatch, and kept until a receipt is written to it
	destination *lockFile // of the destination it is on
	forgiven    bool      // the destination's earlier failures are forgotten, since something was prepared
}

// close gives the unused slot back. What can't be removed here is removed by recovery.
func (l *lane) close() {
	if l.slot != nil {
		_ = l.slot.remove()
	}
}

// visit delivers what waits at a destination, in the order of decisions.
func (l *lane) visit(ctx context.Context, d ledger.Destination) error {
	lock, err := l.worker.enter(d)
	var other *occupied
	if errors.As(err, &other) {
		return l.pastBy(ctx, d, Skipped, err)
	}
	if errors.Is(err, errNoLock) {
		return l.pastBy(ctx, d, NotPrepared, err)
	}
	if err != nil {
		return err
	}
	l.destination, l.forgiven = lock, false
	pool, err := l.pool(d.Platform)
	if err == nil {
		err = l.work(ctx, d, pool)
	} else {
		err = l.unopened(ctx, d, err)
	}
	return errors.Join(err, lock.remove())
}

// unopened leaves a destination alone that has no usable transport.
func (l *lane) unopened(ctx context.Context, d ledger.Destination, err error) error {
	var missing *NotConfiguredError
	if errors.As(err, &missing) {
		return l.pastBy(ctx, d, Skipped, err)
	}
	return l.pastBy(ctx, d, NotPrepared, err)
}

// pastBy reports a destination that is left alone as a whole, by the first message that waits there, if one still does.
func (l *lane) pastBy(ctx context.Context, d ledger.Destination, k Kind, why error) error {
	ready, err := l.ledger.Next(ctx, d, l.filter(), 0)
	if err != nil || ready == nil {
		return ignoreStop(orStopped(ctx, err))
	}
	item := itemOf(ready)
	item.Error = why.Error()
	l.report.add(k, item)
	return nil
}

func ignoreStop(err error) error {
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

// work takes one message after another, until none is left, the destination is to be left alone, or the pass is stopped.
func (l *lane) work(ctx context.Context, d ledger.Destination, pool *pool) error {
	for after := int64(0); ctx.Err() == nil; {
		ready, err := l.ledger.Next(ctx, d, l.filter(), after)
		if err != nil || ready == nil {
			return ignoreStop(orStopped(ctx, err))
		}
		after = ready.DecisionID
		goOn, err := l.take(ctx, d, ready, pool)
		if !goOn || err != nil {
			return err
		}
	}
	return nil
}

// take tries one message, and reports why it wasn't sent where it wasn't. It tells whether the destination's next one may follow.
func (l *lane) take(ctx context.Context, d ledger.Destination, ready *ledger.Ready, pool *pool) (goOn bool, err error) {
	if !l.countIn() {
		return false, nil
	}
	m := &parcel{lane: l, ready: ready, item: itemOf(ready), pool: pool, message: transports.Message{
		ObligationID: ready.ObligationID, Platform: ready.Platform, Channel: ready.Channel, Thread: ready.Thread,
		Subject: ready.Subject, Text: ready.Text}}
	err = m.deliver(ctx)
	m.putAway(ctx)
	if !m.begun {
		l.countOut()
		return l.notBegun(ctx, d, m.item, err)
	}
	if err == nil && m.retryAfter > 0 {
		return false, l.backOff(ctx, d, errors.New(m.item.Error), m.retryAfter)
	}
	return err == nil, err
}

// notBegun sorts the reasons for which a message was not begun. Its approval is not used up.
func (l *lane) notBegun(ctx context.Context, d ledger.Destination, item Item, err error) (goOn bool, failure error) {
	item.Error = err.Error()
	var unprepared *unpreparedError
	var full *spoolFullError
	switch {
	case errors.Is(err, ErrTakenOver):
		l.report.add(Skipped, item)
		return false, err
	case ctx.Err() != nil:
		return false, nil // in the middle of a step that it ended, or between two
	case errors.As(err, &unprepared):
		l.report.add(NotPrepared, item)
		return false, l.backOff(ctx, d, unprepared.err, retryAfter(unprepared.err))
	case errors.Is(err, errNoTime):
		l.report.add(Skipped, item)
		return false, nil
	case errors.As(err, &full):
		l.report.add(NotPrepared, item)
		return false, err
	case refusal(err), errors.Is(err, errLeftAlone):
		l.report.add(Skipped, item)
		return true, nil
	}
	return false, err
}

// backOff leaves the destination alone for a while, in this pass and the next ones, and at least as long as the provider asked for.
func (l *lane) backOff(ctx context.Context, d ledger.Destination, cause error, asked time.Duration) error {
	wait := func(failures int) time.Duration { return backoff(failures, asked, l.opts.Jitter()) }
	return orStopped(ctx, l.ledger.Backoff(ctx, d, wait, cause.Error()))
}
