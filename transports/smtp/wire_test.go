package smtp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// A brittleConn lets through so many octets after DATA and then breaks.
type brittleConn struct {
	net.Conn
	left int
	data bool
}

var errBroken = errors.New("the line broke")

func (b *brittleConn) Write(p []byte) (int, error) {
	if !b.data {
		b.data = string(p) == "DATA\r\n"
		return b.Conn.Write(p)
	}
	if len(p) <= b.left {
		b.left -= len(p)
		return b.Conn.Write(p)
	}
	n, err := b.Conn.Write(p[:b.left])
	b.left = 0
	return n, errors.Join(err, errBroken)
}

// piped makes tr talk to the server without anything in between that could hold
// octets back; wrap may stand in the way.
func piped(tr *Transport, server *transporttest.SMTPServer, wrap func(net.Conn) net.Conn) *Transport {
	tr.dial = func(context.Context, string, string) (net.Conn, error) { return wrap(server.Pipe()), nil }
	return tr
}

func asItIs(c net.Conn) net.Conn { return c }

// The line breaks after each number of octets around the final dot: up to the
// dot it is refused, from its first octet on ambiguous. The letters have the
// sizes at which the client's buffer of 4096 splits the dot from the content, or
// within itself.
func TestBreakAtEachOctetAroundTheFinalDot(t *testing.T) {
	for _, over := range []int{-5, -4, -3, -2, -1, 0, 1, 2, 500} {
		m := claimed(offer())
		size := lengthen(t, &m, 4096+over)
		for _, through := range []int{0, 1, 4095, size - 2, size - 1, size, size + 1, size + 2, size + 3} {
			if through > size+3 {
				continue
			}
			want, stage := transports.Refused, stageContent
			switch {
			case through >= size+3:
				want, stage = transports.Confirmed, ""
			case through >= size:
				want, stage = transports.Ambiguous, stageFinalDot
			}
			checkBreak(t, m, size, through, want, stage)
		}
	}
}

// lengthen makes the letter of m as long as wanted and gives its size.
func lengthen(t *testing.T, m *transports.Message, want int) int {
	t.Helper()
	m.Text = strings.Repeat("x", 1500)
	m.Subject = "S"
	for n := len(composed(t, nil, *m)); n < want; n = len(composed(t, nil, *m)) {
		if want-n > 100 {
			m.Text += strings.Repeat("x", (want-n-50)*3/5)
			continue
		}
		m.Thread = strings.Replace(m.Thread, "<", "<"+strings.Repeat("t", (want-n)/2), 1)
		if (want-n)%2 == 1 {
			m.Subject += "s"
		}
	}
	n := len(composed(t, nil, *m))
	if n != want {
		t.Fatalf("a letter of %d octets, wanted %d", n, want)
	}
	return n
}

func checkBreak(t *testing.T, m transports.Message, size, through int, want transports.Outcome, stage string) {
	t.Helper()
	server := (&transporttest.SMTPServer{}).Start(t)
	tr := piped(newTransport(t, config(server)), server, func(c net.Conn) net.Conn {
		return &brittleConn{Conn: c, left: through}
	})
	_, err := sendOne(t.Context(), tr, m)
	server.Wait()
	if got := transports.Classify(err); got != want {
		t.Errorf("%d of %d octets: outcome %q, want %q: %v", through, size, got, want, err)
	}
	if got, _ := stageAndCode(err); got != stage {
		t.Errorf("%d of %d octets: stage %q, want %q", through, size, got, stage)
	}
	if want != transports.Confirmed && !errors.Is(err, errBroken) {
		t.Errorf("the reason is lost: %v", err)
	}
	// Go's textproto writer ends an unfinished DATA with a dot before the next
	// command: QUIT would have delivered half a text.
	conn := server.Conns()[0]
	_, sent, _ := strings.Cut(conn.Raw, "DATA\r\n")
	if want != transports.Confirmed && len(sent) != through {
		t.Errorf("%d of %d octets: the server has %d", through, size, len(sent))
	}
	if (want == transports.Confirmed) != (len(conn.Mails) == 1) {
		t.Errorf("%d of %d octets: %d mails arrived", through, size, len(conn.Mails))
	}
}

// A server that stops reading, or goes away, in the middle of the content.
func TestContentCutByTheServer(t *testing.T) {
	for _, then := range []transporttest.After{transporttest.Deaf, transporttest.Cut} {
		server := (&transporttest.SMTPServer{Steps: map[string]step{"CONTENT": {At: 1000, Then: then}}}).Start(t)
		s := connect(t, piped(newTransport(t, config(server)), server, asItIs))
		m := offer()
		m.Text = strings.Repeat("a long story\n", 5000)
		prepare(t, s, m)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			select {
			case <-server.Stalled:
				cancel()
			case <-ctx.Done():
			}
		}()
		_, err := s.Send(ctx, claimed(m))
		cancel()
		if stage, _ := stageAndCode(err); transports.Classify(err) != transports.Refused || stage != stageContent {
			t.Errorf("got %v", err)
		}
		_ = s.Close()
		server.Wait()
		if conn := server.Conns()[0]; len(conn.Mails) != 0 || slices.Contains(conn.Verbs, "QUIT") {
			t.Errorf("%d mails, verbs %v", len(conn.Mails), conn.Verbs)
		}
	}
}

// Whenever the context ends, the outcome is true: nothing arrived of what was
// refused, all of what was confirmed, and never more than one.
func TestCancelledAtAnyMoment(t *testing.T) {
	for i := range 150 {
		server := (&transporttest.SMTPServer{}).Start(t)
		s := connect(t, newTransport(t, config(server)))
		prepare(t, s, offer())
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Microsecond)
		r, err := s.Send(ctx, claimed(offer()))
		cancel()
		outcome := transports.Judge(r, err)
		if outcome == transports.Ambiguous && s.Prepare(t.Context(), offer()) == nil {
			t.Error("used again after an ambiguous end")
		}
		_ = s.Close()
		server.Wait()
		mails := len(server.Mails())
		if outcome == transports.Refused && mails != 0 || outcome == transports.Confirmed && mails != 1 || mails > 1 {
			t.Errorf("after %d: %q, and %d mails arrived: %v", i, outcome, mails, err)
		}
	}
}

func TestWireHandsOutWholeLines(t *testing.T) {
	for in, want := range map[string]string{
		"250 ok\r\n":           "250 ok\r\n",
		"250-a\r\n250 b\r\n":   "250-a\r\n250 b\r\n",
		"250 a\r\n250 b":       "250 a\r\n",
		"250 a\r":              "",
		"":                     "",
		"250\r\n354\r\n":       "250 \r\n354 \r\n",
		"250-\n250 \n":         "250-\n250 \n",
		"250 \r\n":             "250 \r\n",
		"220 x\r\n\r\n220 y\r": "220 x\r\n\r\n",
	} {
		w, server := newTestWire(t)
		go func() {
			_, _ = io.WriteString(server, in)
			_ = server.Close()
		}()
		got, err := io.ReadAll(w)
		if string(got) != want || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%q gave %q, %v; want %q", in, got, err, want)
		}
	}
}

func newTestWire(t *testing.T) (*wire, net.Conn) {
	client, server := net.Pipe()
	t.Cleanup(func() {
		_ = client.Close()
		_ = server.Close()
	})
	w := newWire(client)
	t.Cleanup(w.arm(t.Context(), time.Minute))
	return w, server
}

// The clock is asked at each write: timers of a stopped process run late.
func TestWireWritesNothingTooLate(t *testing.T) {
	past := late{t.Context(), time.Now().Add(-time.Second)}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	for want, ctx := range map[error]context.Context{os.ErrDeadlineExceeded: past, context.Canceled: done} {
		sink := &sink{}
		w := newWire(sink)
		disarm := w.arm(ctx, time.Minute)
		if _, err := io.WriteString(w, "DATA\r\n"); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		disarm()
		defer w.arm(t.Context(), time.Minute)()
		if _, err := io.WriteString(w, "QUIT\r\n"); err == nil {
			t.Error("wrote after a failure")
		}
		if sink.written != "" {
			t.Errorf("%q went out", sink.written)
		}
	}
}

// A sink takes everything at any time.
type sink struct {
	net.Conn
	written string
}

func (s *sink) Write(p []byte) (int, error) {
	s.written += string(p)
	return len(p), nil
}

func (s *sink) SetDeadline(time.Time) error { return nil }
func (s *sink) Read([]byte) (int, error)    { return 0, io.EOF }

type late struct {
	context.Context
	at time.Time
}

func (l late) Deadline() (time.Time, bool) { return l.at, true }

// The end of a context that bounded an earlier turn doesn't touch a later one.
func TestWireTurns(t *testing.T) {
	w, server := newTestWire(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.arm(ctx, time.Minute)()
	disarm := w.arm(t.Context(), time.Minute)
	defer disarm()
	w.interrupt(w.turn - 1)
	cancel()
	go func() { _, _ = io.WriteString(server, "250 ok\r\n") }()
	if line, err := io.ReadAll(io.LimitReader(w, 8)); err != nil || string(line) != "250 ok\r\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func TestWireBoundsReplies(t *testing.T) {
	for name, in := range map[string]string{
		"a line":  "250 " + strings.Repeat("x", maxReplyLine) + "\r\n",
		"a reply": strings.Repeat("250-x\r\n", maxReply/7+1),
	} {
		w, server := newTestWire(t)
		go func() { _, _ = io.WriteString(server, in) }()
		if _, err := io.Copy(io.Discard, w); !errors.Is(err, errLongReply) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
