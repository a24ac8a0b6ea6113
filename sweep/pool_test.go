package sweep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"countersign/ledger"
	"countersign/transports"
)

func TestAServerThatAllowsTwoConnectionsGetsAllMessages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want []ledger.Decided
	for i := range 10 {
		want = append(want, b.approve(fmt.Sprint(i), "x"))
	}
	b.fake.connect = func(int) error {
		b.fake.mu.Lock()
		defer b.fake.mu.Unlock()
		if b.fake.open >= 2 {
			return &transports.PrepareError{Stage: "connect", Code: "421", Err: errors.New("too many connections")}
		}
		return nil
	}
	report := b.deliver(Options{Concurrency: 8})
	b.expectItems("delivered", report.Delivered, want...)
	b.expectItems("not prepared", report.NotPrepared)
	if b.fake.mostOpen > 2 {
		t.Errorf("%d connections were open at once", b.fake.mostOpen)
	}
}

func TestADeadServerIsAskedOnceAPass(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var want []ledger.Decided
	for i := range 10 {
		want = append(want, b.approve(fmt.Sprint(i), "x"))
	}
	b.fake.connect = func(int) error {
		return &transports.PrepareError{Stage: "connect", Err: errors.New("connection refused")}
	}
	report := b.deliver(Options{Concurrency: 1})
	b.expectItems("not prepared", report.NotPrepared, want...)
	if b.fake.connects != 1 {
		t.Errorf("%d connects in one pass", b.fake.connects)
	}
	for _, d := range want {
		b.expect(d, ledger.StatusApproved, "")
	}
	b.expectItems("not prepared", b.deliver(Options{}).NotPrepared) // all are left alone for a while
}

func TestSessionsServeManyDestinations(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 12 {
		b.approve(fmt.Sprint(i), "x")
	}
	if r := b.deliver(Options{Concurrency: 3}); len(r.Delivered) != 12 {
		t.Fatalf("%+v", r)
	}
	if b.fake.connects > 3 {
		t.Errorf("%d connects for a concurrency of 3", b.fake.connects)
	}
}

// A server may close a connection after so many messages; the next Prepare then finds the session finished.
func TestASessionThatEndedIsReplacedBeforeTheClaim(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.approve("a", "first"), b.approve("a", "second")
	finished := map[int]bool{}
	b.fake.prepare = func(session int, _ transports.Message) error {
		if session == 1 && b.fake.sessions[0].sends == 1 {
			finished[session] = true
			return &transports.PrepareError{Stage: "session", Err: errors.New("finished")}
		}
		return nil
	}
	b.fake.reset = func(session int) error {
		if finished[session] {
			return errors.New("finished")
		}
		return nil
	}
	report := b.deliver(Options{})
	b.expectItems("delivered", report.Delivered, first, second)
	if b.fake.connects != 2 || !b.fake.sessions[0].closed {
		t.Errorf("%d connects", b.fake.connects)
	}
}

// A fresh session that can't prepare is no reason to try another one.
func TestAFreshSessionIsNotReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	b.fake.prepare = func(int, transports.Message) error { return &transports.PrepareError{Stage: "mail", Code: "421"} }
	b.fake.reset = func(int) error { return errors.New("finished") }
	b.expectItems("not prepared", b.deliver(Options{}).NotPrepared, d)
	if b.fake.connects != 1 || b.fake.prepares != 1 {
		t.Errorf("%d connects, %d prepares", b.fake.connects, b.fake.prepares)
	}
}

func TestARefusedRecipientLeavesTheSessionUsable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	no, yes := b.approve("a", "x"), b.approve("b", "y")
	b.fake.prepare = func(_ int, m transports.Message) error {
		if m.Channel == "a" {
			return &transports.PrepareError{Stage: "rcpt", Code: "550", Permanent: true}
		}
		return nil
	}
	report := b.deliver(Options{Concurrency: 1})
	b.expectItems("not prepared", report.NotPrepared, no)
	b.expectItems("delivered", report.Delivered, yes)
	if b.fake.connects != 1 {
		t.Errorf("%d connects", b.fake.connects)
	}
}

func TestAWaiterGetsThePlaceOfADiscardedSession(t *testing.T) {
	t.Parallel()
	f := &fake{}
	p := newPool(f, 1, DefaultTimeout)
	held, err := p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var waiter sync.WaitGroup
	waiter.Go(func() {
		s, err := p.get(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		p.put(s)
	})
	p.discard(held)
	waiter.Wait()
	p.close()
	f.verify(t)

	ctx, cancel := context.WithCancel(t.Context())
	held, err = p.get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := p.get(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled wait: %v", err)
	}
	p.put(held)
	p.close()
	f.verify(t)
}
