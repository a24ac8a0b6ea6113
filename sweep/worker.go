package sweep

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrTakenOver says that this worker was declared dead while it was stopped, or that its lock file was removed. It has no
// permission to go on; what it had claimed belongs to others.
var ErrTakenOver = errors.New("this worker was taken over, or its lock file is gone; it stops without sending anything more")

// NoWorkerError says that nobody of this name is registered.
type NoWorkerError struct{ Worker string }

func (e *NoWorkerError) Error() string {
	return fmt.Sprintf("there is no worker %q; `countersign claims` shows who holds what", e.Worker)
}

const (
	lockSuffix = ".lock"

	// registerTries bounds how often a new name is tried. A try fails only when the name is taken, or somebody asks for the lock of
	// a name that nobody can know yet.
	registerTries = 5
)

// workerName is the form of the names that register makes. Nothing else is ever part of a file's name.
var workerName = regexp.MustCompile(`^w-[0-9a-f]{12}$`)

// worker is one registered pass. It is alive as long as it holds the lock on its file.
type worker struct {
	name  string
	place workplace
	lock  *lockFile
}

// register makes a new worker, alive until close or the end of the process.
func (w workplace) register() (*worker, error) {
	if err := w.open(); err != nil {
		return nil, err
	}
	var err error
	for range registerTries {
		var made *worker
		if made, err = w.tryRegister(); err == nil {
			return made, nil
		}
		if !errors.Is(err, errHeld) && !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	return nil, fmt.Errorf("register a worker: %w", err)
}

func (w workplace) tryRegister() (*worker, error) {
	var raw [6]byte
	if _, err := rand.Read(raw[:]); err != nil {
		return nil, err
	}
	name := "w-" + hex.EncodeToString(raw[:])
	lock, err := createLocked(w.workerFile(name))
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // for people only
	if err := lock.note(fmt.Sprintf("%s pid=%d host=%s\n", name, os.Getpid(), host)); err != nil {
		return nil, errors.Join(err, lock.remove())
	}
	return &worker{name: name, place: w, lock: lock}, nil
}

func (w workplace) workerFile(name string) string {
	return filepath.Join(w.workers(), name+lockSuffix)
}

// check is asked before every step: ErrTakenOver once the worker's file is not its own any more.
func (w *worker) check() error {
	if !w.lock.mine() {
		return ErrTakenOver
	}
	return nil
}

// close ends the worker's life. Claims that it still holds are from now on a dead worker's.
func (w *worker) close() error { return w.lock.remove() }

// alive tells whether a worker holds its lock. Names that no registered worker can have (a claim of another program) are
// nobody's, and hold no lock. With an error nobody knows, and the worker is not to be taken for dead.
func (w workplace) alive(name string) (bool, error) {
	if !workerName.MatchString(name) {
		return false, nil
	}
	return owned(w.workerFile(name))
}

// buryDead removes the files of workers that ended without doing so. A file that says nothing yet belongs to a worker that is about
// to lock it, and is not even looked at: asking for its lock could take it away just then.
func (w workplace) buryDead() error {
	names, err := list(w.workers())
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if !workerName.MatchString(strings.TrimSuffix(name, lockSuffix)) {
			continue
		}
		path := filepath.Join(w.workers(), name)
		if note, err := readNote(path); err != nil || note == "" {
			continue
		}
		errs = append(errs, removeUnowned(path))
	}
	return errors.Join(errs...)
}

// takeOver declares a worker dead although its process may hold its locks: it removes the worker's file, and those of the
// destinations that the worker is on.
func (w workplace) takeOver(name string) error {
	if !workerName.MatchString(name) {
		return &NoWorkerError{name}
	}
	err := os.Remove(w.workerFile(name))
	found := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names, err := list(w.destinations())
	if err != nil {
		return err
	}
	for _, file := range names {
		path := filepath.Join(w.destinations(), file)
		if holder, err := readNote(path); err != nil || strings.TrimSpace(holder) != name {
			continue
		}
		found = true
		if err := removeFile(path); err != nil {
			return err
		}
	}
	if !found {
		return &NoWorkerError{name}
	}
	return nil
}
