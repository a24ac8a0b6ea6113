package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/transports"
)

// withoutDescriptors runs f while the process has no descriptor left.
func withoutDescriptors(t *testing.T, f func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = min(before.Cur, 256)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var all []*os.File
	null, err := os.Open(os.DevNull)
	for ; err == nil; null, err = os.Open(os.DevNull) {
		all = append(all, null)
	}
	f()
	for _, null := range all {
		_ = null.Close()
	}
	if restored := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); restored != nil {
		t.Fatal(restored)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Fatalf("there were descriptors left: %v", err)
	}
}

// A process that ran out of descriptors after the dispatch began used up the approval, and nothing was written.
func TestSendNeedsNoDescriptor(t *testing.T) {
	dir := t.TempDir()
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	for want := 1; want <= 2; want++ { // into a new file, and behind a message
		session := prepared(t, tr)
		var err error
		withoutDescriptors(t, func() { _, err = session.Send(t.Context(), claimed(message())) })
		if err != nil {
			t.Fatal(err)
		}
		if lines := readLines(t, dir); len(lines) != want {
			t.Errorf("%d lines, want %d", len(lines), want)
		}
	}
}

// What there are no descriptors for is found out before the claim.
func TestPrepareWithoutDescriptors(t *testing.T) {
	tr := withDisk(t, t.TempDir(), scriptedFile{writes: new(atomic.Int64)})
	session := prepared(t, tr)
	if err := session.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	withoutDescriptors(t, func() { err = session.Prepare(t.Context(), message()) })
	var p *transports.PrepareError
	if !errors.As(err, &p) || p.Permanent || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("got %v", err)
	}
	if err := session.Prepare(t.Context(), message()); err != nil {
		t.Errorf("with descriptors: %v", err)
	}
}

// However a preparation ends, it holds no file any more.
func TestNoDescriptorIsLeftOpen(t *testing.T) {
	dir := t.TempDir()
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	session := prepared(t, tr)
	if held := descriptors(t, dir); held == 0 {
		t.Fatal("a preparation holds nothing open")
	}
	if _, err := os.Stat(tr.path()); err == nil {
		t.Error("a preparation made the file of messages")
	}
	other := message()
	other.Text = "another text"
	for name, end := range map[string]func() error{
		"Reset": func() error { return session.Reset(t.Context()) },
		"Send": func() error {
			_, err := session.Send(t.Context(), claimed(message()))
			return err
		},
		"refused": func() error {
			if _, err := session.Send(t.Context(), claimed(other)); transports.Classify(err) != transports.Refused {
				return fmt.Errorf("it was to be refused: %w", err)
			}
			return nil
		},
	} {
		for range 2 {
			if err := session.Prepare(t.Context(), message()); err != nil {
				t.Fatal(err)
			}
		}
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if held := descriptors(t, dir); held != 0 {
			t.Errorf("%s left %d files open", name, held)
		}
	}
	if err := session.Prepare(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	_ = session.Close()
	if held := descriptors(t, dir); held != 0 {
		t.Errorf("Close left %d files open", held)
	}
}

// descriptors counts those of the process that lead into dir.
func descriptors(t *testing.T, dir string) int {
	t.Helper()
	const own = "/proc/self/fd"
	open, err := os.ReadDir(own)
	if err != nil {
		t.Skip("the system doesn't tell what is open")
	}
	n := 0
	for _, fd := range open {
		if at, err := os.Readlink(filepath.Join(own, fd.Name())); err == nil && strings.HasPrefix(at, dir) {
			n++
		}
	}
	return n
}

// Files that were taken away, or replaced, between Prepare and Send: the line goes where readers and other writers look.
func TestFilesReplacedBeforeSend(t *testing.T) {
	for name, lines := range map[string]struct{ here, taken int }{FileName: {1, 1}, lockName: {2, 0}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
			session := prepared(t, tr)
			if _, err := session.Send(t.Context(), claimed(message())); err != nil {
				t.Fatal(err)
			}
			if err := session.Prepare(t.Context(), message()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name)
			if err := errors.Join(os.Rename(path, filepath.Join(dir, "taken")), os.WriteFile(path, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			other, err := tr.openPlace()
			if err != nil {
				t.Fatal(err)
			}
			defer other.close()
			if _, err := session.Send(t.Context(), claimed(message())); err != nil {
				t.Fatal(err)
			}
			if got := len(readLines(t, dir)); got != lines.here {
				t.Errorf("%d lines, want %d", got, lines.here)
			}
			taken, err := os.ReadFile(filepath.Join(dir, "taken"))
			if got := strings.Count(string(taken), "\n"); err != nil || got != lines.taken {
				t.Errorf("what was taken away has %d lines, want %d: %v", got, lines.taken, err)
			}
		})
	}
}

// A lock file that was replaced is no lock: whoever waits for its turn looks which one the others use.
func TestReplacedLockStillExcludes(t *testing.T) {
	dir := t.TempDir()
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	session := prepared(t, tr)
	if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
		t.Fatal(err)
	}
	other, err := tr.openPlace()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = session.Send(ctx, claimed(message()))
	if transports.Classify(err) != transports.Refused || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if lines := readLines(t, dir); len(lines) != 0 {
		t.Errorf("written out of turn: %+v", lines)
	}
	other.close()
	if _, err := send(t.Context(), tr, claimed(message())); err != nil {
		t.Error(err)
	}
}
