package config

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

// readRegular reads a regular file of at most limit bytes. Opening doesn't wait for anybody to write into a pipe, and what
// was opened is what is looked at.
func readRegular(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, nil, err
	case info.IsDir():
		return nil, nil, errDirectory
	case !info.Mode().IsRegular():
		return nil, nil, errNotRegular
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, nil, err
	}
	if int64(len(data)) > limit {
		return nil, nil, fmt.Errorf("is larger than %d bytes", limit)
	}
	return data, info, nil
}
