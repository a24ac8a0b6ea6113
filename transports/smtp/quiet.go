package smtp

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long octets that have arrived under TLS may take to turn out to be
// words of the server, or TLS's own business such as a session ticket.
const patience = 100 * time.Millisecond

// past is a deadline that lets a read have what is here already, and no more.
var past = time.Unix(1, 0)

// quiet tells if the server has said nothing since its last reply, and is still
// there. A reply that comes late, or twice, would be taken for the next command's, and
// a stray 250 before the final dot for a delivery.
func (w *wire) quiet() error {
	if w.in.Buffered() > 0 || len(w.rest) > 0 {
		return errOutOfTurn
	}
	here := arrived(w.raw)
	if !here && w.conn == w.raw {
		return nil
	}
	_, err := w.peek(here)
	switch {
	case err == nil:
		return errOutOfTurn
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil
	case errors.Is(err, io.EOF):
		return errClosed
	}
	return err
}

// peek reads what is here: TLS may keep octets for itself that have arrived earlier.
func (w *wire) peek(here bool) ([]byte, error) {
	w.mu.Lock()
	limit := past
	if here {
		limit = time.Now().Add(patience)
		if w.deadline.Before(limit) {
			limit = w.deadline
		}
	}
	_ = w.raw.SetReadDeadline(limit) // fails on a closed connection only, and then so does the read
	w.mu.Unlock()
	defer w.restoreDeadline()
	return w.in.Peek(1)
}

// restoreDeadline gives the turn its deadline back, unless the turn was interrupted.
func (w *wire) restoreDeadline() {
	w.mu.Lock()
	defer w.mu.Unlock()
	deadline := w.deadline
	if w.ctx.Err() != nil {
		deadline = past
	}
	_ = w.raw.SetReadDeadline(deadline)
}

// arrived tells if octets of the server, or its end, wait in the operating system.
// Whatever isn't a socket is believed to have none.
func arrived(c net.Conn) bool {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	waiting := false
	err = raw.Read(func(fd uintptr) bool {
		_, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		waiting = !errors.Is(err, unix.EAGAIN) // so the end, or a reset, counts too
		return true
	})
	return err == nil && waiting
}
