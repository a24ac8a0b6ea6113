// Package inputfile answers one question: what does a file hold that somebody named in a flag or in the configuration?
//
// A named pipe would make a program wait for a writer that may never come, a device may never end, and a log file is no
// token. So only regular files are read, up to a size that fits what they are for.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

var (
	errNotRegular = errors.New("is not a regular file")
	errDirectory  = errors.New("is a directory")
)

// Read reads a regular file of at most limit bytes; links are followed. Opening doesn't wait for anybody to write into a
// pipe, and what was opened is what is looked at: the FileInfo is of the file that the bytes came from. The errors are
// *fs.PathError.
func Read(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if err := checkRegular(info); err != nil {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > limit {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("is larger than %d bytes", limit)}
	}
	return data, info, nil
}

func checkRegular(info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return errDirectory
	case !info.Mode().IsRegular():
		return errNotRegular
	}
	return nil
}
