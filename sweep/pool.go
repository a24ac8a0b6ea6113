package sweep

import (
	"context"
	"errors"
	"sync"
	"time"

	"countersign/transports"
)

// pool keeps the sessions of one transport for one pass, so that each of them connects once. A provider that allows fewer
// connections than the pass would like is not asked again: the pool then makes do with those it has.
type pool struct {
	transport transports.Transport
	timeout   time.Duration // of one Connect

	mu      sync.Mutex
	idle    []*pooled
	open    int           // in use, idle, or being opened
	limit   int           // of open
	down    error         // why no session can be had in this pass
	changed chan struct{} // closed, and replaced, at each change that a waiter may be waiting for
}

// pooled is a session of a pool.
type pooled struct {
	transports.Session
	used bool // it prepared a message before
}

func newPool(t transports.Transport, limit int, timeout time.Duration) *pool {
	return &pool{transport: t, timeout: timeout, limit: limit, changed: make(chan struct{})}
}

// get returns a session that nobody else uses: an idle one, a new one, or, where no more can be opened, the next that is given
// back. It fails when none is open and none can be opened.
func (p *pool) get(ctx context.Context) (*pooled, error) {
	for {
		session, changed, err := p.offer()
		if session != nil || err != nil {
			return session, err
		}
		if changed == nil {
			if session, err = p.connect(ctx); session != nil || err != nil {
				return session, err
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// offer returns an idle session, or what to wait for. With neither, the caller has a place and must connect.
func (p *pool) offer() (*pooled, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down != nil {
		return nil, nil, p.down
	}
	if n := len(p.idle); n > 0 {
		session := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return session, nil, nil
	}
	if p.open < p.limit {
		p.open++
		return nil, nil, nil
	}
	return nil, p.changed, nil
}

// connect opens a session in the place that the caller has. A failure while others are open only lowers the limit; nil and nil
// then ask the caller to wait for one of them.
func (p *pool) connect(ctx context.Context) (*pooled, error) {
	dialing, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	session, err := p.transport.Connect(dialing)
	if err == nil {
		return &pooled{Session: session}, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	defer p.wake()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if p.open > 0 {
		p.limit = p.open
		return nil, nil
	}
	p.down = err
	return nil, err
}

// put gives a session back for the next message.
func (p *pool) put(s *pooled) {
	s.used = true
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
	p.wake()
}

// discard closes a session that must not be used again. Its place is free for a new one.
func (p *pool) discard(s *pooled) {
	_ = s.Close() // changes nothing about what it sent
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.wake()
}

func (p *pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// close closes the idle sessions, which at the end of a pass are all.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, s := range idle {
		p.discard(s)
	}
}

// prepare returns a session on which m is prepared. A session that served before may have been ended by its provider since; then
// another one is tried, as nothing was claimed yet.
func (p *pool) prepare(ctx context.Context, m transports.Message) (*pooled, error) {
	for {
		session, err := p.get(ctx)
		if err != nil {
			return nil, err
		}
		used := session.used
		if err = p.tryPrepare(ctx, session, m); err == nil {
			return session, nil
		}
		var finished *finishedError
		if !errors.As(err, &finished) || !used || ctx.Err() != nil {
			return nil, err
		}
	}
}

// finishedError says that a session was finished when, or because, it could not prepare a message.
type finishedError struct{ err error }

func (e *finishedError) Error() string { return e.err.Error() }
func (e *finishedError) Unwrap() error { return e.err }

// tryPrepare prepares m, or gives the session back.
func (p *pool) tryPrepare(ctx context.Context, session *pooled, m transports.Message) error {
	preparing, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err := session.Prepare(preparing, m)
	if err == nil {
		return nil
	}
	if p.reset(ctx, session) != nil {
		return &finishedError{err}
	}
	return err
}

// reset gives up what is prepared, and gives the session back, or closes it where it is finished.
func (p *pool) reset(ctx context.Context, session *pooled) error {
	resetting, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.timeout)
	defer cancel()
	if err := session.Reset(resetting); err != nil {
		p.discard(session)
		return err
	}
	p.put(session)
	return nil
}
