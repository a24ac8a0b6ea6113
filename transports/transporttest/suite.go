// Package transporttest is the suite every transport passes, and the fakes it is
// run against. A transport's own tests describe their counterpart in a [Harness]
// and call [Run].
package transporttest

import (
	"context"
	"errors"
	"testing"

	"countersign/transports"
)

// A Script says what the counterpart (server, provider, disk) does to a message.
type Script string

// The scripted outcomes. "The effect" is that the receiver has the message.
const (
	Accept        Script = "accept"
	RefuseConnect Script = "refuse to connect"
	RefusePrepare Script = "refuse in prepare"
	RefuseSend    Script = "refuse at send"             // says no to Send
	FailBefore    Script = "fail before the effect"     // the line or the disk fails
	FailAfter     Script = "fail after the effect"      // accepted, the answer is lost
	Stall         Script = "stall until the deadline"   // accepted, no answer ever
	CutAnswer     Script = "cut-off answer"             // accepted, half an answer
	Garbage       Script = "answer that makes no sense" // accepted, an answer nobody knows
)

// A Harness describes one transport to the suite.
type Harness struct {
	// Message is one the transport can send, without DecisionID and Key.
	Message transports.Message
	// Start gives a transport and the counterpart it talks to, which treats each
	// message as the script says.
	Start func(t *testing.T, script Script) Fixture
	// Unsendable are messages Validate refuses, by the field it names.
	Unsendable []Unsendable
	// Secrets must not be in any error or receipt. A counterpart does well to
	// repeat them in what it says.
	Secrets []string
	// Skip has the scripts that can't happen to this transport, and why.
	Skip map[Script]string
}

// Unsendable is a message that Validate refuses for Field.
type Unsendable struct {
	Field   string
	Message transports.Message
}

// A Fixture is one transport with its counterpart.
type Fixture struct {
	Transport transports.Transport
	// Settle waits until the counterpart has done with all closed sessions; nil
	// where there is nothing to wait for.
	Settle func()
	// Delivered is what took effect, decoded from the raw octets by other means
	// than the transport's own.
	Delivered func() []Delivered
	// Attempts is how often the content of a message was begun to be handed over.
	Attempts func() int
	// Stalled gets a value each time the counterpart of Stall has the whole
	// message and falls silent.
	Stalled <-chan struct{}
}

// Delivered is what the receiver sees.
type Delivered struct{ Channel, Thread, Subject, Text string }

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	s := suite{h}
	t.Run("texts arrive exactly", s.textsArriveExactly)
	t.Run("outcomes", s.outcomes)
	t.Run("connect refused", s.connectRefused)
	t.Run("prepare refused", s.prepareRefused)
	t.Run("prepare shows nothing", s.prepareShowsNothing)
	t.Run("only what was prepared", s.onlyWhatWasPrepared)
	t.Run("only once", s.onlyOnce)
	t.Run("no time left", s.noTimeLeft)
	t.Run("one session, many messages", s.manyMessages)
	t.Run("sessions do not mix", s.sessionsDoNotMix)
	t.Run("validate", s.validate)
	t.Run("after close", s.afterClose)
}

type suite struct{ h Harness }

// claimed is the n-th message as it is after its claim.
func (s suite) claimed(n int64) transports.Message {
	m := s.h.Message
	m.ObligationID, m.DecisionID = n, 1000+n
	m.Key = "0123456789abcdef"
	return m
}

// prepared is a message before its claim.
func prepared(m transports.Message) transports.Message {
	m.DecisionID, m.Key = 0, ""
	return m
}

func (s suite) start(t *testing.T, script Script) Fixture {
	t.Helper()
	if why, skip := s.h.Skip[script]; skip {
		t.Skipf("cannot happen here: %s", why)
	}
	return s.h.Start(t, script)
}

func (s suite) connect(t *testing.T, f Fixture) transports.Session {
	t.Helper()
	session, err := f.Transport.Connect(t.Context())
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func (s suite) prepare(t *testing.T, session transports.Session, m transports.Message) {
	t.Helper()
	if err := session.Prepare(t.Context(), prepared(m)); err != nil {
		t.Fatalf("Prepare: %v", err)
	}
}

func (s suite) send(t *testing.T, session transports.Session, m transports.Message) transports.Receipt {
	t.Helper()
	r, err := session.Send(t.Context(), m)
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	s.checkReceipt(t, r)
	return r
}

// close ends the session and waits for the counterpart, so that what it saw can
// be looked at.
func (f Fixture) close(t *testing.T, session transports.Session) {
	t.Helper()
	_ = session.Close() // its error changes nothing
	if f.Settle != nil {
		f.Settle()
	}
}

// saw checks what the counterpart saw in all.
func (f Fixture) saw(t *testing.T, attempts int, want ...transports.Message) {
	t.Helper()
	if got := f.Attempts(); got != attempts {
		t.Errorf("the content was begun %d times, want %d", got, attempts)
	}
	got := f.Delivered()
	if len(got) != len(want) {
		t.Fatalf("%d messages arrived, want %d: %+v", len(got), len(want), got)
	}
	for i, m := range want {
		if w := asDelivered(m); got[i] != w {
			t.Errorf("arrived %+q\nwant    %+q", got[i], w)
		}
	}
}

func asDelivered(m transports.Message) Delivered {
	return Delivered{Channel: m.Channel, Thread: m.Thread, Subject: m.Subject, Text: m.Text}
}

// wantRefused checks a Send that ended before anything was handed over.
func (s suite) wantRefused(t *testing.T, err error) {
	t.Helper()
	if got := transports.Classify(err); got != transports.Refused {
		t.Errorf("outcome %q, want refused: %v", got, err)
	}
	s.checkError(t, err)
}

func (s suite) wantPrepareError(t *testing.T, err error) {
	t.Helper()
	var p *transports.PrepareError
	if !errors.As(err, &p) {
		t.Fatalf("error is %T, want *PrepareError: %v", err, err)
	}
	if p.Stage == "" {
		t.Errorf("no stage in %v", err)
	}
	s.checkError(t, err)
}

func cancelled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
