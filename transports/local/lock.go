package local

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// lockPoll is how often a writer that waits for its turn looks again.
const lockPoll = 2 * time.Millisecond

// newLock is the lock of one writer. It belongs to the open file, so it works
// between goroutines as between processes, and dies with its holder.
func (t *Transport) newLock() *flock.Flock {
	return flock.New(filepath.Join(t.dir, lockName),
		flock.SetFlag(unix.O_CREAT|unix.O_RDONLY|openFlags), flock.SetPermissions(fileMode))
}

// lock waits for the turn of a message, at most as long as ctx.
func (t *Transport) lock(ctx context.Context) (unlock func(), err error) {
	l := t.newLock()
	if _, err := l.TryLockContext(ctx, lockPoll); err != nil {
		return nil, fmt.Errorf("no turn to write, nothing was written: %w", err)
	}
	return func() { _ = l.Close() }, nil
}

// probeLock finds out if the lock can be used; whether it is free now doesn't
// matter.
func (t *Transport) probeLock() error {
	l := t.newLock()
	if _, err := l.TryLock(); err != nil {
		return fmt.Errorf("the lock file can't be used: %w", err)
	}
	return l.Close()
}
