package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	fileMode = 0o600
	dirMode  = 0o700

	// openFlags follow no link, and don't wait where somebody left a pipe.
	openFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

	// spareBytes is the free space wanted besides the message, for the file
	// system's own needs and for other writers.
	spareBytes = 1 << 20
)

// reserve opens the place of a message whose line has size octets, and finds out whether it
// could be appended now. It doesn't touch the messages.
func (t *Transport) reserve(size int) (*place, error) {
	if err := t.makeDir(); err != nil {
		return nil, err
	}
	if err := unix.Faccessat(unix.AT_FDCWD, t.dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return nil, fmt.Errorf("%s can't be written to: %w", t.dir, err)
	}
	p, err := t.openPlace()
	if err != nil {
		return nil, err
	}
	if err := checkSpace(t.dir, uint64(size)+spareBytes); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func checkSpace(dir string, need uint64) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := st.Bavail * uint64(st.Bsize); free < need {
		return fmt.Errorf("%s has %d octets free, the message needs %d: %w", dir, free, need, unix.ENOSPC)
	}
	return nil
}

// makeDir makes the directory, and its entry in the one above durable.
func (t *Transport) makeDir() error {
	info, err := os.Stat(t.dir)
	switch {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", t.dir)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(t.dir, dirMode); err != nil {
		return err
	}
	return syncDir(filepath.Dir(t.dir))
}

// An end is where the next line goes.
type end struct {
	offset     int64
	unfinished bool // a writer died in the middle of the last line
}

func findEnd(f file) (end, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return end{}, err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return end{}, err
	}
	return end{offset: info.Size(), unfinished: last[0] != '\n'}, nil
}

// openFile opens the messages for appending, and makes them where there are none.
func openFile(path string) (file, error) {
	f, err := openRegular(path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// openRegular never makes a file where a link leads: O_NOFOLLOW holds for O_CREAT too.
func openRegular(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|openFlags, fileMode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isAt tells if f, which was opened at path, is what is there now. It needs no descriptor.
func isAt(f interface{ Stat() (os.FileInfo, error) }, path string) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(opened, now), err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
