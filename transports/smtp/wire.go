package smtp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"sync"
	"time"
)

const (
	// maxReplyLine is twice what RFC 5321 section 4.5.3.1.5 allows a reply line
	// and more than go-smtp's client takes.
	maxReplyLine = 4096
	// maxReply bounds a whole reply, which may have any number of lines.
	maxReply = 64 << 10
)

var (
	errLongReply  = errors.New("the server's reply is too long")
	errOutOfTurn  = errors.New("the server spoke before it was asked")
	errPlainBytes = errors.New("the server sent plain text along with its answer to STARTTLS")
	errClosed     = fmt.Errorf("the server closed the connection: %w", io.ErrUnexpectedEOF)
)

// A wire is the connection as go-smtp's client sees it. It stands between the
// client and TCP or TLS, to know and to enforce what the client can't:
//
//   - A reply counts only when its line end has arrived. Go's textproto reader
//     takes a line that was cut off by a reset or a time-out for a whole one, so
//     "250 2.0.0 que" would confirm a delivery. A wire hands out whole lines.
//   - Whether any octet of the final dot may have left. The client's buffer
//     sends the end of the content and the dot in one write; a wire counts.
//   - After any failure not one octet more goes out. The textproto writer ends
//     an unfinished DATA with a dot before the next command, even before QUIT,
//     which would deliver half a text.
//   - Deadlines come from the context, not from the client's own time-outs.
//   - A reply belongs to the command it follows: what the server says before it
//     was asked ends the session, before the next octet goes out (quiet.go).
type wire struct {
	raw  net.Conn // TCP; deadlines are set here
	conn net.Conn // raw, or TLS over it
	in   *bufio.Reader
	rest []byte // of the reply line being handed out
	got  int    // octets of the present reply

	broken  error // why no octet may go out any more
	spoke   bool  // the client has sent something
	counted bool  // within DATA
	content int   // octets of content still to come, when counted
	dot     bool  // an octet of the final dot may have left

	mu       sync.Mutex // guards what follows, against the end of a context
	ctx      context.Context
	turn     int
	deadline time.Time
}

func newWire(raw net.Conn) *wire {
	return &wire{raw: raw, conn: raw, in: bufio.NewReaderSize(raw, maxReplyLine), ctx: context.Background()}
}

// arm bounds all I/O by ctx and by limit until disarm is called. This is real
// time, that of the connection, and so not the injected clock.
func (w *wire) arm(ctx context.Context, limit time.Duration) (disarm func()) {
	deadline := time.Now().Add(limit)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	w.mu.Lock()
	w.turn++
	turn := w.turn
	w.ctx, w.deadline = ctx, deadline
	_ = w.raw.SetDeadline(deadline) // fails on a closed connection only, and then so does the I/O
	w.mu.Unlock()

	stop := context.AfterFunc(ctx, func() { w.interrupt(turn) })
	return func() {
		stop()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.turn++
	}
}

// interrupt ends the I/O of one turn; a later turn is none of its business.
func (w *wire) interrupt(turn int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn == turn {
		_ = w.raw.SetDeadline(past)
	}
}

// ready tells if an octet may go out now. It asks the clock itself: the timers
// of a process that was stopped may run late.
func (w *wire) ready() error {
	if w.broken != nil {
		return w.broken
	}
	if err := w.quiet(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if !time.Now().Before(w.deadline) {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// fail breaks the wire for good and returns err.
func (w *wire) fail(err error) error {
	if w.broken == nil {
		w.broken = err
	}
	return err
}

// Read hands out one reply line, or a part of it, once it has come whole.
func (w *wire) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		line, err := w.readLine()
		if err != nil {
			return 0, w.fail(err)
		}
		w.rest = line
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *wire) readLine() ([]byte, error) {
	line, err := w.in.ReadSlice('\n')
	w.got += len(line)
	switch {
	case errors.Is(err, bufio.ErrBufferFull) || w.got > maxReply:
		return nil, errLongReply
	case errors.Is(err, io.EOF):
		return nil, errClosed
	case err != nil:
		return nil, err
	case len(line) == len("250\r\n") && line[3] == '\r':
		// RFC 5321 section 4.2: a client must take a reply without text; textproto
		// wants the space.
		return append(line[:3:3], " \r\n"...), nil
	}
	return line, nil
}

// Write sends p, and within DATA keeps the content apart from the final dot.
func (w *wire) Write(p []byte) (int, error) {
	content := p
	if w.counted && len(p) > w.content {
		content = p[:w.content]
	}
	n, err := w.put(content)
	w.content -= n
	if err != nil || len(content) == len(p) {
		return n, err
	}
	if err := w.ready(); err != nil {
		return n, w.fail(err)
	}
	w.dot = true // from here on the server may have seen it, whatever Write says
	m, err := w.put(p[n:])
	return n + m, err
}

func (w *wire) put(p []byte) (int, error) {
	if err := w.ready(); err != nil {
		return 0, w.fail(err)
	}
	w.spoke, w.got = true, 0
	n, err := w.conn.Write(p)
	if err != nil {
		return n, w.fail(err)
	}
	return n, nil
}

// beginContent announces the octets of a DATA's content. They end in CRLF and no
// line of them starts with a dot, so that exactly ".\r\n" follows them.
func (w *wire) beginContent(octets int) { w.counted, w.content, w.dot = true, octets, false }

func (w *wire) endContent() { w.counted = false }

// startTLS upgrades the connection, after the client's EHLO. The client's own
// STARTTLS puts TLS above the wire, where replies can't be watched, and drops
// plain octets that came along with the 220 without a word.
func (w *wire) startTLS(ctx context.Context, config *tls.Config) error {
	if _, err := io.WriteString(w, "STARTTLS\r\n"); err != nil {
		return err
	}
	if _, _, err := textproto.NewReader(bufio.NewReader(w)).ReadResponse(220); err != nil {
		return err
	}
	if w.in.Buffered() > 0 {
		return w.fail(errPlainBytes)
	}
	return w.handshake(ctx, config)
}

// handshake puts TLS over the connection. Nothing may have been read in advance.
func (w *wire) handshake(ctx context.Context, config *tls.Config) error {
	conn := tls.Client(w.raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return w.fail(err)
	}
	w.conn = conn
	w.in.Reset(conn)
	return nil
}

// greetAgain makes up a greeting for the client that goes on after STARTTLS: it
// waits for one, but RFC 3207 section 4.2 knows no second greeting.
func (w *wire) greetAgain() { w.rest = []byte("220 go on\r\n") }

// abort closes the connection without another octet, TLS's farewell included.
func (w *wire) abort() {
	_ = w.fail(net.ErrClosed)
	_ = w.raw.Close()
}

func (w *wire) Close() error         { return w.conn.Close() }
func (w *wire) LocalAddr() net.Addr  { return w.raw.LocalAddr() }
func (w *wire) RemoteAddr() net.Addr { return w.raw.RemoteAddr() }

// The client sets deadlines from its own limits and clears them after each
// command. They are arm's business.
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

var _ net.Conn = (*wire)(nil)
