package sweep

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	slotSuffix = ".slot"
	badSuffix  = ".bad"

	// slotSize is what a slot reserves. It holds the longest receipt that a transport gives (a coordinate and a detail of 1,000
	// octets each) many times over.
	slotSize = 16 << 10

	// reserveTries bounds how often a slot is reserved anew because a recovering pass looked at it before it was locked.
	reserveTries = 100
)

// padding fills an unused slot. It is written out, since a hole in the file would need a block just when there is none left.
var padding = []byte(strings.Repeat(" ", slotSize))

// spoolFullError says that no room could be reserved for a receipt. Nothing was begun.
type spoolFullError struct{ err error }

func (e *spoolFullError) Error() string {
	return "no room can be reserved for a receipt, so nothing is begun: " + e.err.Error()
}

func (e *spoolFullError) Unwrap() error { return e.err }

// slot is room for one receipt, reserved before the dispatch begins. Its owner holds its lock; recovery touches no slot of a
// living owner. A receipt is written in place: on file systems that overwrite in place (ext4, xfs) that needs no new block, so
// that it works on a full disk. On those that always write elsewhere (btrfs, ZFS) it depends on their own reserve.
type slot struct {
	lock *lockFile
	file *os.File
}

// reserve makes a slot: file and name are on the disk when it returns. Numbers are taken from seq, so that no name is used twice.
func (w *worker) reserve(seq *atomic.Int64) (*slot, error) {
	var err error
	for range reserveTries {
		name := fmt.Sprintf("%s-%d%s", w.name, seq.Add(1), slotSuffix)
		var lock *lockFile
		lock, err = createLocked(filepath.Join(w.place.spool(), name))
		if err == nil {
			return newSlot(lock)
		}
		if !errors.Is(err, errHeld) {
			break
		}
	}
	return nil, &spoolFullError{err}
}

func newSlot(lock *lockFile) (*slot, error) {
	file, err := os.OpenFile(lock.path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, &spoolFullError{errors.Join(err, lock.remove())}
	}
	s := &slot{lock: lock, file: file}
	if err := errors.Join(s.write(padding), syncDir(filepath.Dir(lock.path))); err != nil {
		return nil, &spoolFullError{errors.Join(err, s.remove())}
	}
	return s, nil
}

// usable tells whether what is written here will be found.
func (s *slot) usable() bool { return s.lock.mine() }

// write writes from the slot's beginning, durably.
func (s *slot) write(content []byte) error {
	if _, err := s.file.WriteAt(content, 0); err != nil {
		return err
	}
	return s.file.Sync()
}

// leave lets go of a written slot: from now on it belongs to recovery.
func (s *slot) leave() {
	_ = s.file.Close()
	s.lock.release()
}

func (s *slot) remove() error { return errors.Join(s.file.Close(), s.lock.remove()) }

var (
	errSlotOwned = errors.New("the slot's owner lives")
	errSlotEmpty = errors.New("the slot is empty")
)

// badSlotError says that a slot can't be believed, now or later.
type badSlotError struct{ why string }

func (e *badSlotError) Error() string { return e.why }

// readUnowned reads the receipt in a slot that nobody is writing: errSlotOwned, errSlotEmpty, *badSlotError, or what hinders the
// reading. The slot stays so until free, which may be nil, is called.
func readUnowned(path string) (receipt sealed, free func(), err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return receipt, nil, err
	}
	if !info.Mode().IsRegular() {
		return receipt, nil, &badSlotError{"it is no regular file"}
	}
	if free, err = probe(path); err != nil {
		return receipt, nil, err
	}
	if free == nil {
		return receipt, nil, errSlotOwned
	}
	line, err := readSlot(path)
	if err == nil {
		receipt, err = decode(line)
	}
	return receipt, free, err
}

// readSlot returns the line that was written to a slot.
func readSlot(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, slotSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > slotSize {
		return nil, &badSlotError{"it is longer than a slot"}
	}
	line := bytes.TrimRight(content, " ")
	if len(line) == 0 {
		return nil, errSlotEmpty
	}
	return line, nil
}

// setAside renames a slot that can't be used, so that it is reported once and kept as evidence. Nothing is overwritten.
func setAside(path string) (string, error) {
	for n := 1; ; n++ {
		aside := path + badSuffix
		if n > 1 {
			aside = fmt.Sprintf("%s.%d%s", path, n, badSuffix)
		}
		err := os.Link(path, aside)
		if errors.Is(err, os.ErrExist) && n < 100 {
			continue
		}
		if err != nil {
			return "", err
		}
		return aside, os.Remove(path)
	}
}
