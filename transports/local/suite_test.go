package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/transports"
	"countersign/transports/transporttest"
)

func message() transports.Message {
	return transports.Message{
		ObligationID: 41, Platform: "local", Channel: "any text, <&> as it stands", Thread: "<thread@example.com>",
		Subject: `a "subject" of =?utf-8?q?x?=`, Text: "Hello,\n\nthe price is 900.",
	}
}

func claimed(m transports.Message) transports.Message {
	m.DecisionID, m.Key = 7, "c0ffee"
	return m
}

// A scriptedFile is a disk that fails as it is told.
type scriptedFile struct {
	file
	writes   *atomic.Int64
	write    error
	writeOff int // octets that get through before write
	sync     error
}

func (f scriptedFile) Write(p []byte) (int, error) {
	if f.write != nil {
		n, err := f.file.Write(p[:f.writeOff])
		return n, errors.Join(err, f.write)
	}
	f.writes.Add(1)
	return f.file.Write(p)
}

func (f scriptedFile) Sync() error { return errors.Join(f.file.Sync(), f.sync) }

// withDisk makes a transport over a disk of that kind.
func withDisk(t *testing.T, dir string, disk scriptedFile) *Transport {
	t.Helper()
	tr, err := New(Config{Dir: dir, Now: func() time.Time { return time.Unix(1_750_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	tr.open = func(path string) (file, error) {
		f, err := openFile(path)
		disk := disk
		disk.file = f
		return disk, err
	}
	return tr
}

func TestTransport(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Message: message(),
		Start:   start,
		Skip: map[transporttest.Script]string{
			transporttest.RefuseConnect: "there is nobody to connect to",
			transporttest.Stall:         "the disk gives no answer later than the write; waiting for a turn is before the effect",
			transporttest.CutAnswer:     "a system call's answer is whole",
			transporttest.Garbage:       "a system call's answer is known",
		},
	})
}

func start(t *testing.T, script transporttest.Script) transporttest.Fixture {
	dir := filepath.Join(t.TempDir(), "outbox")
	disk := scriptedFile{writes: new(atomic.Int64)}
	switch script {
	case transporttest.RefusePrepare:
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	case transporttest.RefuseSend:
		disk.write = syscall.EROFS
	case transporttest.FailBefore:
		disk.write = syscall.ENOSPC
	case transporttest.FailAfter:
		disk.sync = syscall.EIO
	}
	return transporttest.Fixture{
		Transport: withDisk(t, dir, disk),
		Attempts:  func() int { return int(disk.writes.Load()) },
		Delivered: func() []transporttest.Delivered {
			var all []transporttest.Delivered
			for _, l := range readLines(t, dir) {
				all = append(all, transporttest.Delivered{Channel: l.Channel, Thread: l.Thread, Subject: l.Subject, Text: l.Text})
			}
			return all
		},
	}
}

// readLines reads the messages as another program would: whole lines that are
// JSON objects.
func readLines(t *testing.T, dir string) []line {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		t.Fatal(err)
	}
	var all []line
	for raw := range bytes.Lines(data) {
		var l line
		if bytes.HasSuffix(raw, []byte("\n")) && json.Unmarshal(raw, &l) == nil {
			all = append(all, l)
		}
	}
	return all
}
