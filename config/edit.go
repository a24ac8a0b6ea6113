package config

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"

	"countersign/inputfile"
	"countersign/operator"
)

// EditError says why a configuration can't be edited by the program. The file is as it was.
type EditError struct {
	Path   string
	Reason string
}

func (e *EditError) Error() string { return fmt.Sprintf("can't edit %s: %s", e.Path, e.Reason) }

// UnknownOperatorError says that the configuration has no operator of that id.
type UnknownOperatorError struct{ ID string }

func (e *UnknownOperatorError) Error() string {
	return fmt.Sprintf("the configuration has no operator %q", e.ID)
}

// AddOperator adds an operator to the configuration at path, behind those that are there.
//
// Like SetToken and RemoveOperator it edits the text, so that comments and all other settings stay byte for byte, and replaces
// the file at once: who reads it meanwhile gets the one or the other. Mode and owner stay. Nothing is written if the result would
// not be a valid configuration (*InvalidError), or if the file's form makes it unsure what to edit (*EditError).
func AddOperator(ctx context.Context, path string, e operator.Entry) error {
	return edit(ctx, path, func(text string) (string, error) { return addOperator(text, e) })
}

// SetToken gives an operator another terminal token, by its hash. The error is an *UnknownOperatorError if there is none of that
// id.
func SetToken(ctx context.Context, path, id, tokenSHA256 string) error {
	return edit(ctx, path, func(text string) (string, error) { return setToken(text, id, tokenSHA256) })
}

// RemoveOperator removes an operator. The error is an *UnknownOperatorError if there is none of that id.
func RemoveOperator(ctx context.Context, path, id string) error {
	return edit(ctx, path, func(text string) (string, error) { return removeOperator(text, id) })
}

// changedMeanwhile tells of an editor, which knows no lock.
const changedMeanwhile = "somebody else changed it just now; try again"

// edit changes the text of the file at path, while nobody else does.
func edit(ctx context.Context, path string, change func(text string) (string, error)) error {
	lock, err := lockForEdit(ctx, path)
	if err != nil {
		return err
	}
	defer lock.Close()
	data, info, err := inputfile.Read(path, maxFile)
	if err != nil {
		return unreadable(path, err)
	}
	if locked, err := lock.Stat(); err != nil || !os.SameFile(locked, info) {
		return errors.Join(&EditError{path, changedMeanwhile}, err)
	}
	edited, err := change(string(data))
	if err != nil {
		if reason := (formError("")); errors.As(err, &reason) {
			return &EditError{path, reason.Error()}
		}
		return err
	}
	if problems := problemsOf(edited); len(problems) > 0 {
		return &InvalidError{Path: path, Problems: inOrder(problems)}
	}
	return replace(path, []byte(edited), info)
}

func problemsOf(text string) []Problem {
	c, problems := parse([]byte(text))
	if len(problems) == 0 {
		problems = c.check(newLines([]byte(text)))
	}
	return problems
}

// lockForEdit locks the file itself: a lock beside it would have to be removed again. Whoever waited for a lock on a file that
// was replaced meanwhile starts over with the new one. A link is refused: replacing it would leave the file behind it as it was.
func lockForEdit(ctx context.Context, path string) (*flock.Flock, error) {
	const pause = 20 * time.Millisecond
	for {
		info, err := os.Lstat(path)
		if err != nil {
			return nil, unreadable(path, err)
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return nil, &EditError{path, "it is a link; name the file itself with --config"}
		}
		if !info.Mode().IsRegular() {
			return nil, &EditError{path, "it is not a regular file"}
		}
		lock := flock.New(path, flock.SetFlag(os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC))
		if _, err := lock.TryLockContext(ctx, pause); err != nil {
			return nil, errors.Join(unreadable(path, err), lock.Close())
		}
		locked, err := lock.Stat()
		if now, gone := os.Lstat(path); err == nil && gone == nil && os.SameFile(now, locked) {
			return lock, nil
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			return nil, err
		}
	}
}

// replace puts data in place of the file at path, which stays whole if the machine stops in between.
func replace(path string, data []byte, was fs.FileInfo) error {
	dir := filepath.Dir(path)
	draft, err := os.CreateTemp(dir, ".countersign-edit-*") // 0600
	if err != nil {
		return &EditError{path, withoutPath(err).Error() + " in its folder"}
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(data)
	if err := errors.Join(err, likeBefore(draft, was), draft.Sync(), draft.Close()); err != nil {
		return &EditError{path, err.Error()}
	}
	if now, err := os.Lstat(path); err != nil || !os.SameFile(now, was) || now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime()) {
		return &EditError{path, changedMeanwhile}
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return &EditError{path, withoutPath(err).Error()}
	}
	return syncDir(dir)
}

// likeBefore gives the new file the mode and owner of the old one: a root who edits must not lock the desk's user out.
func likeBefore(f *os.File, was fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	before, made := was.Sys().(*syscall.Stat_t), now.Sys().(*syscall.Stat_t)
	if before.Uid != made.Uid || before.Gid != made.Gid {
		if err := f.Chown(int(before.Uid), int(before.Gid)); err != nil {
			return fmt.Errorf("it belongs to somebody else, and would not any more: %w", withoutPath(err))
		}
	}
	return f.Chmod(was.Mode().Perm())
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
