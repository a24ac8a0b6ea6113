package sweep

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/ledger"
)

func newPlace(t *testing.T) workplace {
	t.Helper()
	w := workplaceOf(filepath.Join(t.TempDir(), "ledger.db"))
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	return w
}

func mustRegister(t *testing.T, w workplace) *worker {
	t.Helper()
	made, err := w.register()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func expectAlive(t *testing.T, w workplace, name string, want bool) {
	t.Helper()
	if got, err := w.alive(name); got != want || err != nil {
		t.Errorf("alive(%q) = %v, %v, want %v", name, got, err, want)
	}
}

func TestAWorkerLivesAsLongAsItsLock(t *testing.T) {
	w := newPlace(t)
	one, two := mustRegister(t, w), mustRegister(t, w)
	if one.name == two.name || !workerName.MatchString(one.name) {
		t.Errorf("names %q and %q", one.name, two.name)
	}
	note, err := readNote(w.workerFile(one.name))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, note, one.name, "pid=", "host=")
	expectAlive(t, w, one.name, true)
	if err := one.close(); err != nil {
		t.Fatal(err)
	}
	expectAlive(t, w, one.name, false)
	expectAlive(t, w, two.name, true)

	two.lock.release() // as the kernel does at the end of its process: the file stays
	expectAlive(t, w, two.name, false)
	if err := w.buryDead(); err != nil {
		t.Fatal(err)
	}
	if names, _ := list(w.workers()); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

func TestNamesThatAreNoWorkersNeverReachTheDisk(t *testing.T) {
	w := newPlace(t)
	outside := filepath.Join(w.root, "x.lock")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "unknown", "../x", "w-0123456789AB", "w-0123456789ab/..", "w-0123456789ab\n"} {
		expectAlive(t, w, name, false)
		var none *NoWorkerError
		if err := w.takeOver(name); !errors.As(err, &none) {
			t.Errorf("takeOver(%q): %v", name, err)
		}
	}
	if _, err := os.Lstat(outside); err != nil {
		t.Error(err)
	}
}

func TestWhoAsksDoesNotDisturbTheLiving(t *testing.T) {
	w := newPlace(t)
	living := mustRegister(t, w)
	dead := mustRegister(t, w)
	dead.lock.release()
	var wrong atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if alive, err := w.alive(living.name); !alive || err != nil {
					wrong.Add(1)
				}
				if alive, err := w.alive(dead.name); alive || err != nil {
					wrong.Add(1)
				}
			}
		})
	}
	all.Wait()
	if wrong.Load() != 0 {
		t.Errorf("%d wrong answers", wrong.Load())
	}
	if err := living.check(); err != nil {
		t.Error(err)
	}
}

// Registering used to be the weak moment: the file is there, and not locked yet.
func TestRegisteringWhileOthersBuryTheDead(t *testing.T) {
	w := newPlace(t)
	done := make(chan struct{})
	var burying, registering sync.WaitGroup
	for range 2 {
		burying.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					if err := w.buryDead(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	for range 4 {
		registering.Go(func() {
			for range 100 {
				made, err := w.register()
				if err != nil {
					t.Error(err)
					return
				}
				if alive, err := w.alive(made.name); !alive || err != nil {
					t.Errorf("a registered worker is not alive: %v", err)
				}
				if err := errors.Join(made.check(), made.close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	registering.Wait()
	close(done)
	burying.Wait()
}

func TestOneWorkerADestination(t *testing.T) {
	w := newPlace(t)
	d := ledger.Destination{Platform: "fake", Channel: "a"}
	var inside, entered atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			me, err := w.register()
			if err != nil {
				t.Error(err)
				return
			}
			defer me.close()
			for range 200 {
				lock, err := me.enter(d)
				var other *occupied
				if errors.As(err, &other) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 || !lock.mine() {
					t.Error("two workers are on one destination")
				}
				entered.Add(1)
				inside.Add(-1)
				if err := lock.remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if entered.Load() == 0 {
		t.Error("nobody ever got in")
	}
	if names, _ := list(w.destinations()); len(names) != 0 {
		t.Errorf("files left behind: %v", names)
	}
}

func TestDestinationsDoNotShareALock(t *testing.T) {
	w := newPlace(t)
	files := map[string]bool{}
	for _, d := range []ledger.Destination{{Platform: "a", Channel: "b:c"}, {Platform: "a:b", Channel: "c"}, {Platform: "ab", Channel: "c"}, {Platform: "a", Channel: "bc"}} {
		files[w.destinationFile(d)] = true
	}
	if len(files) != 4 {
		t.Errorf("%d files for 4 destinations", len(files))
	}
}

func TestALockFileOfADeadWorkerIsTakenOver(t *testing.T) {
	w := newPlace(t)
	d := ledger.Destination{Platform: "fake", Channel: "a"}
	dead := mustRegister(t, w)
	lock, err := dead.enter(d)
	if err != nil {
		t.Fatal(err)
	}
	lock.release()
	me := mustRegister(t, w)
	if lock, err = me.enter(d); err != nil {
		t.Fatal(err)
	}
	if note, _ := readNote(lock.path); strings.TrimSpace(note) != me.name {
		t.Errorf("the lock names %q", note)
	}
}

func TestTakeOverFreesWorkerAndDestinations(t *testing.T) {
	w := newPlace(t)
	asleep, me := mustRegister(t, w), mustRegister(t, w)
	var locks []*lockFile
	for _, channel := range []string{"a", "b"} {
		lock, err := asleep.enter(ledger.Destination{Platform: "fake", Channel: channel})
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, lock)
	}
	other, err := me.enter(ledger.Destination{Platform: "fake", Channel: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.takeOver(asleep.name); err != nil {
		t.Fatal(err)
	}
	expectAlive(t, w, asleep.name, false)
	mine, err := me.enter(ledger.Destination{Platform: "fake", Channel: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(asleep.check(), ErrTakenOver) || locks[0].mine() || locks[1].mine() {
		t.Error("the sleeper still believes in its locks")
	}
	for _, lock := range locks { // it wakes, and tidies up what it takes for its own
		if err := lock.remove(); err != nil {
			t.Error(err)
		}
	}
	if err := asleep.close(); err != nil {
		t.Error(err)
	}
	if !mine.mine() || !other.mine() || me.check() != nil {
		t.Error("the sleeper removed what is others'")
	}
	var none *NoWorkerError
	if err := w.takeOver(asleep.name); !errors.As(err, &none) {
		t.Errorf("a second take-over: %v", err)
	}
}

func TestPlaceIsPrivateAndFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	w := workplaceOf(filepath.Join(dir, "ledger.db"))
	me := mustRegister(t, w)
	lock, err := me.enter(ledger.Destination{Platform: "fake", Channel: "a"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := me.reserve(new(atomic.Int64))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		w.root: 0o700, w.workers(): 0o700, w.destinations(): 0o700, w.spool(): 0o700,
		me.lock.path: 0o600, lock.path: 0o600, s.lock.path: 0o600,
	} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	target := filepath.Join(dir, "target")
	link := w.destinationFile(ledger.Destination{Platform: "fake", Channel: "linked"})
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if _, err := me.enter(ledger.Destination{Platform: "fake", Channel: "linked"}); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link was followed: %v", err)
	}
	if _, err := os.Lstat(target); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link's target was made: %v", err)
	}

	other := workplaceOf(filepath.Join(dir, "other.db"))
	if err := os.Symlink(w.root, other.root); err != nil {
		t.Fatal(err)
	}
	if _, err := other.register(); err == nil {
		t.Error("a linked directory was used")
	}
	open := workplaceOf(filepath.Join(dir, "open.db"))
	if err := errors.Join(os.Mkdir(open.root, 0o700), os.Chmod(open.root, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := open.register(); err == nil {
		t.Error("a directory that others can write to was used")
	}
}
