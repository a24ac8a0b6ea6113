package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"countersign/ledger"
)

// destinationFile names a destination's lock. Platforms have no NUL in them, so that no two destinations share a name.
func (w workplace) destinationFile(d ledger.Destination) string {
	sum := sha256.Sum256([]byte(d.Platform + "\x00" + d.Channel))
	return filepath.Join(w.destinations(), hex.EncodeToString(sum[:])+lockSuffix)
}

// occupied says that another worker is on a destination.
type occupied struct{ by string }

func (e *occupied) Error() string {
	if e.by == "" {
		return "another worker is on this destination"
	}
	return fmt.Sprintf("another worker (%s) is on this destination", e.by)
}

// enter locks a destination for this worker, or returns *occupied at once; errNoLock where something else stands in the lock's place,
// which is of no consequence for other destinations. The file is removed by leaving, so that only those of
// killed workers stay; the next worker on that destination takes such a file over, and removes it.
func (w *worker) enter(d ledger.Destination) (*lockFile, error) {
	path := w.place.destinationFile(d)
	lock, err := takeLock(path)
	if errors.Is(err, errHeld) && !errors.Is(err, errNoLock) {
		by, _ := readNote(path) // for people only
		return nil, &occupied{strings.TrimSpace(by)}
	}
	if err != nil {
		return nil, fmt.Errorf("lock of a destination: %w", err)
	}
	if err := lock.note(w.name + "\n"); err != nil {
		return nil, errors.Join(fmt.Errorf("lock of a destination: %w", err), lock.remove())
	}
	return lock, nil
}
