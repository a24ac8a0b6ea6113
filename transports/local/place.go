package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a writer that waits for its turn looks again.
const lockPoll = 2 * time.Millisecond

// A place is what a Send needs of the directory, open since Prepare: a process that has
// run out of descriptors by the time of the Send still sends, and its approval is not
// used up for nothing.
type place struct {
	t        *Transport
	messages file // nil where there are none yet: only a Send makes the file
	// spares are held for the two that Send opens then: the file, and the directory
	// for its sync.
	spares []*os.File
	// turn is locked by the writer whose turn it is. The lock belongs to the open
	// file, so it works between goroutines as between processes, and dies with its
	// holder.
	turn *os.File
}

func (t *Transport) openPlace() (*place, error) {
	turn, err := t.openTurn()
	if err != nil {
		return nil, err
	}
	p := &place{t: t, turn: turn}
	if _, err = os.Lstat(t.path()); errors.Is(err, fs.ErrNotExist) {
		err = p.holdSpares()
	} else {
		err = p.openMessages()
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *place) holdSpares() error {
	for range 2 {
		f, err := os.Open(p.t.dir)
		if err != nil {
			return err
		}
		p.spares = append(p.spares, f)
	}
	return nil
}

// openMessages makes the entry of a new file durable before anything is written into it,
// so that a failure still means that nothing was handed over.
func (p *place) openMessages() error {
	f, err := p.t.open(p.t.path())
	if err != nil {
		return err
	}
	p.messages = f
	info, err := f.Stat()
	if err != nil || info.Size() > 0 {
		return err
	}
	return syncDir(p.t.dir)
}

// openTurn finds out too whether the lock can be used; whether it is free now doesn't
// matter.
func (t *Transport) openTurn() (*os.File, error) {
	f, err := openRegular(t.turnPath(), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	taken, err := tryLock(f)
	if taken {
		err = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the lock file can't be used: %w", err), f.Close())
	}
	return f, nil
}

func (t *Transport) turnPath() string { return filepath.Join(t.dir, lockName) }

func tryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// take waits for the turn of a message, at most as long as ctx. The turn ends with close.
func (p *place) take(ctx context.Context) error {
	for {
		if err := lock(ctx, p.turn); err != nil {
			return fmt.Errorf("no turn to write, nothing was written: %w", err)
		}
		same, err := isAt(p.turn, p.t.turnPath())
		if err != nil || same {
			return err
		}
		// Somebody removed the file since: the others lock the one that is there now. It is
		// closed first, as there may be no other descriptor.
		_ = p.turn.Close()
		if p.turn, err = p.t.openTurn(); err != nil {
			return err
		}
	}
}

func lock(ctx context.Context, f *os.File) error {
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if taken, err := tryLock(f); taken || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(lockPoll):
		}
	}
}

// findEnd looks where the next line goes. It has the turn: a file that was moved away, or
// replaced, since Prepare is left to whoever did it.
func (p *place) findEnd() (end, error) {
	same := false
	if p.messages != nil {
		var err error
		if same, err = isAt(p.messages, p.t.path()); err != nil {
			return end{}, err
		}
	}
	if !same {
		p.closeMessages() // first, as there may be no other descriptor
		if err := p.openMessages(); err != nil {
			return end{}, err
		}
	}
	return findEnd(p.messages)
}

// close gives up the turn. After a Sync the files have nothing left to lose.
func (p *place) close() {
	p.closeMessages()
	if p.turn != nil {
		_ = p.turn.Close()
	}
}

func (p *place) closeMessages() {
	if p.messages != nil {
		_ = p.messages.Close()
	}
	for _, f := range p.spares {
		_ = f.Close()
	}
	p.messages, p.spares = nil, nil
}
