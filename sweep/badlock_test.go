package sweep

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/ledger"
)

// planted are what somebody may put where a destination's lock file belongs.
func planted(t *testing.T) map[string]func(path string) error {
	return map[string]func(path string) error{
		"a symbolic link": func(path string) error { return os.Symlink(filepath.Join(t.TempDir(), "target"), path) },
		"a directory":     func(path string) error { return os.Mkdir(path, 0o700) },
		"a named pipe":    func(path string) error { return unix.Mkfifo(path, 0o600) },
		"no file": func(path string) error { // a socket; its name is made elsewhere, since it may be no longer than 107 octets
			short, err := os.MkdirTemp("", "s")
			if err != nil {
				return err
			}
			t.Cleanup(func() { os.RemoveAll(short) })
			listener, err := net.Listen("unix", filepath.Join(short, "s"))
			if err != nil {
				return err
			}
			t.Cleanup(func() { listener.Close() })
			return os.Rename(filepath.Join(short, "s"), path)
		},
	}
}

// One such thing used to end the whole pass, so that nothing was delivered anywhere.
func TestWhatIsNoLockFileStopsOnlyItsDestination(t *testing.T) {
	for kind, plant := range planted(t) {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t)
			bad, good := b.approve("bad", "one"), b.approve("good", "two")
			b.deliver(Options{Platform: "none"}) // makes the directories
			path := b.place.destinationFile(ledger.Destination{Platform: "fake", Channel: "bad"})
			if err := plant(path); err != nil {
				t.Fatal(err)
			}
			report := b.deliver(Options{})
			b.expectItems("not prepared", report.NotPrepared, bad)
			contains(t, report.NotPrepared[0].Error, path+" is "+kind, "remove it")
			b.expectItems("delivered", report.Delivered, good)
			b.expectWire(good)
			if err := os.Remove(path); err != nil {
				t.Fatalf("it was touched: %v", err)
			}
			b.expectItems("delivered", b.deliver(Options{}).Delivered, bad)
		})
	}
}

// A pipe that somebody holds open for writing used to be waited for, by everybody who read the notes.
func TestNotesAreNotReadFromAPipe(t *testing.T) {
	w := newPlace(t)
	me := mustRegister(t, w)
	path := w.destinationFile(ledger.Destination{Platform: "fake", Channel: "a"})
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if err := unix.Flock(int(pipe.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := me.enter(ledger.Destination{Platform: "fake", Channel: "a"}); err == nil {
		t.Error("a pipe was taken for a lock file")
	}
	if err := w.takeOver(me.name); err != nil {
		t.Error(err)
	}
}
