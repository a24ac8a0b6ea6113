package inputfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(path, []byte("12345"), 0o640), os.Symlink(path, link)); err != nil {
		t.Fatal(err)
	}
	for _, named := range []string{path, link} {
		data, info, err := Read(named, 5)
		if err != nil || string(data) != "12345" || info.Mode() != 0o640 {
			t.Errorf("%s: %q, %v, %v", named, data, info, err)
		}
	}
}

// A named pipe used to be waited for until somebody wrote into it, and a device could be read for ever.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	listener, err := net.Listen("unix", in("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	err = errors.Join(syscall.Mkfifo(in("pipe"), 0o600), os.Symlink(in("pipe"), in("link")), os.WriteFile(in("long"), []byte("123456"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		in("pipe"): "is not a regular file", in("link"): "is not a regular file", "/dev/zero": "is not a regular file",
		dir: "is a directory", in("long"): "is larger than 5 bytes", in("none"): "no such file", in("socket"): "",
	} {
		data, _, err := Read(path, 5)
		var at *fs.PathError
		if !errors.As(err, &at) || at.Path != path || !strings.Contains(err.Error(), want) || data != nil {
			t.Errorf("%s: %q, %v", path, data, err)
		}
	}
}
