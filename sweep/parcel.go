package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/ledger"
	"countersign/transports"
)

// parcel is one approved message on its way. Its session belongs to it from prepare to putAway.
type parcel struct {
	*lane
	ready   *ledger.Ready
	item    Item
	pool    *pool
	message transports.Message // as it was prepared

	session  *pooled
	prepared bool // the session has a preparation that no Send used up
	spoiled  bool // the session must not be used again

	claim   ledger.Claim
	begun   bool      // dispatch began: the approval is used up
	begunAt time.Time // read before BeginDispatch, so that its duration counts

	retryAfter time.Duration // the provider refused it for its rate limit, and asked for this
}

// unpreparedError says that a message could not be prepared. Nothing was claimed.
type unpreparedError struct{ err error }

func (e *unpreparedError) Error() string { return e.err.Error() }
func (e *unpreparedError) Unwrap() error { return e.err }

// errLeftAlone says that a claim of somebody else is left alone.
var errLeftAlone = errors.New("left alone")

// deliver shows the order of a delivery, and the order is the safety. Its error, before the begin, is why nothing was begun; after
// it, what could not be recorded.
func (m *parcel) deliver(ctx context.Context) error {
	adopt, err := m.mayTry()
	if err != nil {
		return err
	}
	if err := m.prepare(ctx); err != nil {
		return err
	}
	if err := m.pace(ctx); err != nil {
		return err
	}
	if err := m.reserve(ctx); err != nil {
		return err
	}
	if err := m.reserveClaim(ctx, adopt); err != nil {
		return err
	}
	payload, err := m.begin(ctx)
	if err != nil {
		return err
	}
	// From here on the message is finished, whatever is cancelled: its approval is used up.
	ctx = context.WithoutCancel(ctx)
	receipt, err := m.send(ctx, payload)
	return m.record(ctx, receipt, err)
}

// mayTry tells whether the message's claim is to be adopted from a dead worker. A living one's is left alone.
func (m *parcel) mayTry() (adopt bool, err error) {
	holder := m.ready.Holder
	if holder == "" {
		return false, nil
	}
	if !workerName.MatchString(holder) {
		return false, fmt.Errorf("%w: it is claimed by %q, which is no worker of this program; cancel it", errLeftAlone, holder)
	}
	alive, err := m.place.alive(holder)
	if err != nil {
		return false, fmt.Errorf("whether worker %s lives: %w", holder, err)
	}
	if alive {
		return false, fmt.Errorf("%w: it is claimed by worker %s, which lives", errLeftAlone, holder)
	}
	return true, nil
}

// gate stands before every step up to the begin.
func (m *parcel) gate(ctx context.Context) error {
	if ctx.Err() != nil {
		return errStopped
	}
	return m.stillOurs()
}

// stillOurs is asked before every step: ErrTakenOver when the worker, or its place at the destination, is not its own any more.
func (m *parcel) stillOurs() error {
	if !m.destination.mine() {
		return ErrTakenOver
	}
	if err := m.worker.check(); err != nil {
		return err
	}
	return m.ledger.StillThere()
}

func (m *parcel) step(s Step) { m.opts.Step(s, m.item) }

func (m *parcel) prepare(ctx context.Context) error {
	if err := m.gate(ctx); err != nil {
		return err
	}
	session, err := m.pool.prepare(ctx, m.message)
	if err != nil {
		return &unpreparedError{err}
	}
	m.session, m.prepared = session, true
	if !m.forgiven {
		if err := m.ledger.Prepared(ctx, ledger.Destination{Platform: m.ready.Platform, Channel: m.ready.Channel}); err != nil {
			return err
		}
		m.forgiven = true
	}
	m.step(AfterPrepare)
	return nil
}

// reserve makes sure that there is room for the receipt. That comes before the claim, so that a full disk leaves none behind.
func (m *parcel) reserve(ctx context.Context) error {
	if err := m.gate(ctx); err != nil {
		return err
	}
	if m.slot == nil || !m.slot.usable() {
		fresh, err := m.worker.reserve(&m.slots)
		if err != nil {
			return err
		}
		m.replaceSlot(fresh)
	}
	m.step(AfterSlot)
	return nil
}

func (l *lane) replaceSlot(fresh *slot) {
	if l.slot != nil {
		_ = l.slot.remove()
	}
	l.slot = fresh
}

func (m *parcel) reserveClaim(ctx context.Context, adopt bool) (err error) {
	if err := m.gate(ctx); err != nil {
		return err
	}
	if adopt {
		m.claim, err = m.ledger.Adopt(ctx, m.ready.DecisionID, m.ready.Holder, m.worker.name)
	} else {
		m.claim, err = m.ledger.Claim(ctx, m.ready.DecisionID, m.worker.name)
	}
	if err != nil {
		return err
	}
	m.step(AfterClaim)
	return nil
}

func (m *parcel) begin(ctx context.Context) (ledger.Payload, error) {
	if err := m.gate(ctx); err != nil {
		return ledger.Payload{}, err
	}
	m.begunAt = m.opts.Now()
	payload, err := m.ledger.BeginDispatch(ctx, m.claim)
	if err != nil {
		return ledger.Payload{}, err
	}
	m.begun = true
	m.step(AfterBegin)
	return payload, nil
}

// send makes the last checks and hands the message over, once. The deadline is counted from the begin.
func (m *parcel) send(ctx context.Context, p ledger.Payload) (transports.Receipt, error) {
	message := messageOf(p)
	if refused := m.mustNotSend(message); refused != nil {
		return transports.Receipt{}, refused
	}
	ctx, cancel := context.WithDeadline(ctx, m.begunAt.Add(m.opts.Timeout))
	defer cancel()
	m.prepared = false
	receipt, err := m.session.Send(ctx, message)
	for waits := 0; waits < m.opts.RateLimitWaits && m.waitedOut(ctx, err); waits++ {
		receipt, err = m.session.Send(ctx, message)
	}
	m.step(AfterSend)
	return receipt, err
}

func messageOf(p ledger.Payload) transports.Message {
	return transports.Message{ObligationID: p.ObligationID, DecisionID: p.DecisionID, Platform: p.Platform, Channel: p.Channel,
		Thread: p.Thread, Subject: p.Subject, Text: p.Text, Key: p.Key}
}

// mustNotSend are the checks between begin and first byte. The clock comes last: this is where a process that was stopped for
// long goes on.
func (m *parcel) mustNotSend(message transports.Message) error {
	if !message.SameContent(m.message) {
		return nothingSent("compare", errors.New("what was approved is not what was prepared"))
	}
	if err := m.stillOurs(); err != nil {
		return nothingSent("taken-over", err)
	}
	if age := olderOf(m.begunAt, m.opts.Now()); age >= m.opts.Timeout {
		return nothingSent("stale-begin", fmt.Errorf("its dispatch began %s ago, the limit is %s", age.Round(time.Millisecond), m.opts.Timeout))
	}
	return nil
}

func nothingSent(stage string, why error) error {
	return &transports.RefusedError{Stage: stage, Err: fmt.Errorf("%w; nothing was handed over", why)}
}

// olderOf is the time between two readings of the clock, by the monotonic clock or by the wall's, whichever says more: the first
// stands still while the machine sleeps, the second can be set back.
func olderOf(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// putAway gives the session back, or closes it where something ambiguous happened on it.
func (m *parcel) putAway(ctx context.Context) {
	switch {
	case m.session == nil:
	case m.spoiled:
		m.pool.discard(m.session)
	case m.prepared:
		_ = m.pool.reset(ctx, m.session)
	default:
		m.pool.put(m.session)
	}
}
