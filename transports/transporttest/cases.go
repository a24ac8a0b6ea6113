package transporttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"countersign/transports"
)

func (s suite) textsArriveExactly(t *testing.T) {
	f := s.start(t, Accept)
	session := s.connect(t, f)
	var want []transports.Message
	for i, text := range NastyTexts() {
		m := s.claimed(int64(i + 1))
		m.Text = text.Text
		if err := f.Transport.Validate(prepared(m)); err != nil {
			s.wantValidation(t, text.Name, "text", err)
			continue
		}
		s.prepare(t, session, m)
		s.send(t, session, m)
		want = append(want, m)
	}
	f.close(t, session)
	f.saw(t, len(want), want...)
}

// outcomes has the table of the package documentation, with one attempt at most.
func (s suite) outcomes(t *testing.T) {
	for _, c := range []struct {
		script   Script
		want     transports.Outcome
		arrived  bool
		finished bool // the session must not be used again
	}{
		{Accept, transports.Confirmed, true, false},
		{RefuseSend, transports.Refused, false, false},
		{FailBefore, transports.Refused, false, false},
		{FailAfter, transports.Ambiguous, true, true},
		{Stall, transports.Ambiguous, true, true},
		{CutAnswer, transports.Ambiguous, true, true},
		{Garbage, transports.Ambiguous, true, true},
	} {
		t.Run(string(c.script), func(t *testing.T) {
			f := s.start(t, c.script)
			session := s.connect(t, f)
			m := s.claimed(7)
			s.prepare(t, session, m)
			r, err := s.sendUntilStalled(t, f, session, m)
			if got := transports.Judge(r, err); got != c.want {
				t.Errorf("outcome %q, want %q: %v", got, c.want, err)
			}
			s.checkEnd(t, r, err)
			if c.finished && session.Prepare(t.Context(), prepared(s.claimed(8))) == nil {
				t.Error("a session was used again after an ambiguous end")
			}
			f.close(t, session)
			if f.Attempts() > 1 {
				t.Errorf("%d attempts for one Send", f.Attempts())
			}
			if got := len(f.Delivered()) == 1; got != c.arrived {
				t.Errorf("arrived: %v, want %v", got, c.arrived)
			}
		})
	}
}

// sendUntilStalled sends, and ends the time for it once the counterpart of Stall
// has everything: a deadline that comes neither too early nor late.
func (s suite) sendUntilStalled(t *testing.T, f Fixture, session transports.Session, m transports.Message) (transports.Receipt, error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if f.Stalled != nil {
		go func() {
			select {
			case <-f.Stalled:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return session.Send(ctx, m)
}

func (s suite) checkEnd(t *testing.T, r transports.Receipt, err error) {
	t.Helper()
	if err == nil {
		s.checkReceipt(t, r)
		return
	}
	if r != (transports.Receipt{}) {
		t.Errorf("a receipt came with an error: %+v", r)
	}
	s.checkError(t, err)
}

func (s suite) connectRefused(t *testing.T) {
	f := s.start(t, RefuseConnect)
	session, err := f.Transport.Connect(t.Context())
	if err == nil {
		f.close(t, session)
		t.Fatal("Connect succeeded")
	}
	s.wantPrepareError(t, err)
	if f.Settle != nil {
		f.Settle()
	}
	f.saw(t, 0)
}

func (s suite) prepareRefused(t *testing.T) {
	f := s.start(t, RefusePrepare)
	session := s.connect(t, f)
	err := session.Prepare(t.Context(), prepared(s.claimed(1)))
	if err == nil {
		t.Fatal("Prepare succeeded")
	}
	s.wantPrepareError(t, err)
	_, err = session.Send(t.Context(), s.claimed(1))
	s.wantRefused(t, err)
	f.close(t, session)
	f.saw(t, 0)
}

func (s suite) prepareShowsNothing(t *testing.T) {
	f := s.start(t, Accept)
	for _, reset := range []bool{true, false} {
		session := s.connect(t, f)
		s.prepare(t, session, s.claimed(1))
		if reset {
			if err := session.Reset(t.Context()); err != nil {
				t.Errorf("Reset: %v", err)
			}
		}
		f.close(t, session)
	}
	f.saw(t, 0)
}

// onlyWhatWasPrepared sends everything but what was prepared.
func (s suite) onlyWhatWasPrepared(t *testing.T) {
	f := s.start(t, Accept)
	session := s.connect(t, f)
	m := s.claimed(1)
	for name, change := range map[string]func(*transports.Message){
		"obligation":  func(m *transports.Message) { m.ObligationID++ },
		"platform":    func(m *transports.Message) { m.Platform += "x" },
		"channel":     func(m *transports.Message) { m.Channel += "x" },
		"thread":      func(m *transports.Message) { m.Thread = "<other@example.com>" },
		"subject":     func(m *transports.Message) { m.Subject += "x" },
		"text":        func(m *transports.Message) { m.Text += "\n" },
		"no decision": func(m *transports.Message) { m.DecisionID = 0 },
		"no key":      func(m *transports.Message) { m.Key = "" },
		"bad key":     func(m *transports.Message) { m.Key = "x\r\nBcc: evil@example.com" },
	} {
		s.prepare(t, session, m)
		changed := m
		change(&changed)
		if _, err := session.Send(t.Context(), changed); transports.Classify(err) != transports.Refused {
			t.Errorf("changed %s: not refused: %v", name, err)
		}
		if _, err := session.Send(t.Context(), m); transports.Classify(err) != transports.Refused {
			t.Errorf("changed %s: a second Send was not refused: %v", name, err)
		}
	}
	f.close(t, session)
	f.saw(t, 0)
}

func (s suite) onlyOnce(t *testing.T) {
	f := s.start(t, Accept)
	session := s.connect(t, f)
	m := s.claimed(1)
	_, err := session.Send(t.Context(), m)
	s.wantRefused(t, err)

	s.prepare(t, session, m)
	s.send(t, session, m)
	_, err = session.Send(t.Context(), m)
	s.wantRefused(t, err)

	s.prepare(t, session, m)
	if err := session.Reset(t.Context()); err != nil {
		t.Errorf("Reset: %v", err)
	}
	_, err = session.Send(t.Context(), m)
	s.wantRefused(t, err)
	f.close(t, session)
	f.saw(t, 1, m)
}

// noTimeLeft: done before Send, and past a deadline whose timer has not run yet,
// as in a process that was stopped.
func (s suite) noTimeLeft(t *testing.T) {
	f := s.start(t, Accept)
	for name, ctx := range map[string]context.Context{
		"cancelled": cancelled(t),
		"past":      lateTimer{t.Context(), time.Now().Add(-time.Second)},
	} {
		session := s.connect(t, f)
		s.prepare(t, session, s.claimed(1))
		_, err := session.Send(ctx, s.claimed(1))
		if transports.Classify(err) != transports.Refused {
			t.Errorf("%s: not refused: %v", name, err)
		}
		f.close(t, session)
	}
	if _, err := f.Transport.Connect(cancelled(t)); err == nil {
		t.Error("Connect succeeded without time")
	}
	session := s.connect(t, f)
	s.wantPrepareError(t, session.Prepare(cancelled(t), prepared(s.claimed(1))))
	f.close(t, session)
	f.saw(t, 0)
}

// lateTimer has a deadline that nothing has noticed.
type lateTimer struct {
	context.Context
	at time.Time
}

func (l lateTimer) Deadline() (time.Time, bool) { return l.at, true }

func (s suite) manyMessages(t *testing.T) {
	f := s.start(t, Accept)
	session := s.connect(t, f)
	var want []transports.Message
	for i := range int64(6) {
		m := s.claimed(i + 1)
		m.Text = fmt.Sprintf("message %d", i)
		s.prepare(t, session, m)
		switch i % 3 {
		case 1:
			if err := session.Reset(t.Context()); err != nil {
				t.Fatalf("Reset: %v", err)
			}
			continue
		case 2: // a second Prepare gives up the first
			m.Text += ", again"
			s.prepare(t, session, m)
		}
		s.send(t, session, m)
		want = append(want, m)
	}
	f.close(t, session)
	f.saw(t, len(want), want...)
}

func (s suite) sessionsDoNotMix(t *testing.T) {
	const sessions, each = 4, 5
	f := s.start(t, Accept)
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		places = make(map[string]bool)
		want   []Delivered
	)
	for n := range sessions {
		wg.Go(func() {
			for m, place := range s.sendMany(t, f, n, each) {
				mu.Lock()
				want = append(want, asDelivered(m))
				places[place] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if f.Settle != nil {
		f.Settle()
	}
	got := f.Delivered()
	byText := func(a, b Delivered) int { return cmp.Compare(a.Text, b.Text) }
	slices.SortFunc(got, byText)
	slices.SortFunc(want, byText)
	if !slices.Equal(got, want) || f.Attempts() != sessions*each {
		t.Errorf("%d messages in %d attempts arrived, want exactly the %d sent", len(got), f.Attempts(), len(want))
	}
	if len(places) != sessions*each {
		t.Errorf("%d coordinates for %d messages", len(places), sessions*each)
	}
}

// sendMany is the n-th session; it yields what it sent, and its coordinate.
func (s suite) sendMany(t *testing.T, f Fixture, n, each int) iter.Seq2[transports.Message, string] {
	return func(yield func(transports.Message, string) bool) {
		session, err := f.Transport.Connect(t.Context())
		if err != nil {
			t.Errorf("Connect: %v", err)
			return
		}
		defer session.Close()
		for i := range each {
			m := s.claimed(int64(n*each + i + 1))
			m.Text = fmt.Sprintf("%d/%d %0*d", n, i, 900*(n+1), i)
			err := session.Prepare(t.Context(), prepared(m))
			r, sendErr := session.Send(t.Context(), m)
			if err := errors.Join(err, sendErr); err != nil {
				t.Errorf("session %d: %v", n, err)
				return
			}
			if !yield(m, r.Coordinate) {
				return
			}
		}
	}
}

func (s suite) afterClose(t *testing.T) {
	f := s.start(t, Accept)
	session := s.connect(t, f)
	s.prepare(t, session, s.claimed(1))
	f.close(t, session)
	_, err := session.Send(t.Context(), s.claimed(1))
	s.wantRefused(t, err)
	_ = session.Close() // again, without harm
	f.saw(t, 0)
}
