package sweep

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

const (
	fileMode = 0o600
	dirMode  = 0o700

	// lockTries bounds how often a lock is taken anew because its file was removed in between. Each round needs another owner to
	// come and go, so that more than a few mean that somebody plays with the files.
	lockTries = 100

	// noteLimit is the most that is read of the note in a lock file.
	noteLimit = 256
)

// errHeld says that somebody else holds the lock.
var errHeld = errors.New("the lock is held by somebody else")

// errNoLock says that something stands where a lock file belongs which can't be one.
var errNoLock = errors.New("it can't be used as a lock file")

// lockFile is a file that is locked by this holder. The lock belongs to the open file, so that it works between goroutines as
// between processes, and it ends with its process.
type lockFile struct {
	path string
	lock *flock.Flock
}

func newFlock(path string, flags int) *flock.Flock {
	return flock.New(path, flock.SetFlag(flags|unix.O_NOFOLLOW|unix.O_CLOEXEC), flock.SetPermissions(fileMode))
}

// takeLock locks the file at path, and creates it where it is missing. It never waits: errHeld when somebody else holds it.
func takeLock(path string) (*lockFile, error) {
	for range lockTries {
		f, err := tryLock(path, unix.O_CREAT)
		if err != nil || f.mine() {
			return f, err
		}
		// Its last owner removed the file between our opening and our locking it: we locked a file without a name.
		f.release()
	}
	return nil, errHeld
}

// createLocked creates a file under a name that was never used, and locks it. errHeld when somebody looked at it before it was
// locked: the name is used up then, since removeUnowned may be about to remove whatever stands there.
func createLocked(path string) (*lockFile, error) {
	f, err := tryLock(path, unix.O_CREAT|unix.O_EXCL)
	if err != nil || f.mine() {
		return f, err
	}
	f.release()
	return nil, errHeld
}

func tryLock(path string, flags int) (*lockFile, error) {
	f := &lockFile{path: path, lock: newFlock(path, flags|unix.O_RDWR|unix.O_NONBLOCK)}
	got, err := f.lock.TryLock()
	if err == nil && !got {
		err = errHeld
	}
	if err == nil {
		if have, err := f.lock.Stat(); err == nil && have.Mode().IsRegular() {
			return f, nil
		}
		f.release()
		err = errNoLock
	}
	return nil, noLock(path, err)
}

// noLock is err, and errNoLock with the remedy where what stands at path will never be a lock, whatever is tried. A link is not
// followed, and a pipe not waited for.
func noLock(path string, err error) error {
	info, looking := os.Lstat(path)
	if looking != nil || info.Mode().IsRegular() && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	why := fmt.Errorf("%w: %s is %s; remove it", errNoLock, path, kindOf(info.Mode()))
	if errors.Is(err, errNoLock) {
		return why
	}
	return fmt.Errorf("%w (%w)", why, err)
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "somebody else's file"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	default:
		return "no file"
	}
}

// mine tells whether the file under the name is still the one that is locked. It is not after a take-over.
func (f *lockFile) mine() bool {
	have, err := f.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(f.path)
	return err == nil && os.SameFile(have, there)
}

// remove removes the file while its lock is held, and then lets go. Between the look and the removal only a take-over of this
// very worker can come; whoever's file is removed then notices it before its next step.
func (f *lockFile) remove() error {
	defer f.release()
	if !f.mine() {
		return nil
	}
	return removeFile(f.path)
}

func (f *lockFile) release() { _ = f.lock.Close() }

// note replaces what the lock file says for people and for a take-over.
func (f *lockFile) note(text string) error {
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Close())
}

func readNote(path string) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", err // an open pipe would be waited for
	}
	text, err := io.ReadAll(io.LimitReader(file, noteLimit))
	return string(text), err
}

// probe asks for a file's lock without keeping it from others who ask: the lock is shared, so that two who ask at one instant
// don't take each other for the owner. free is nil when the owner lives, else it must be called. A missing file is
// fs.ErrNotExist. While a probe lasts, nobody can become the file's owner; owners-to-be try another name.
func probe(path string) (free func(), err error) {
	lock := newFlock(path, unix.O_RDONLY|unix.O_NONBLOCK)
	got, err := lock.TryRLock()
	if err != nil || !got {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// owned tells whether somebody holds the lock of a file as its owner. A missing file has none. With an error nobody knows.
func owned(path string) (bool, error) {
	free, err := probe(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if free != nil {
		free()
	}
	return free == nil, err
}

// removeUnowned removes a file unless it has a living owner. It is meant for names that are never used twice: of those, a file
// that nobody owns will never be anybody's.
func removeUnowned(path string) error {
	free, err := probe(path)
	if free != nil {
		defer free()
		return removeFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeFile removes a file. One that is gone already is no error.
func removeFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
