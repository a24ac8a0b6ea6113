package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/transports"
)

// send prepares and sends one message with a session of its own.
func send(ctx context.Context, tr *Transport, m transports.Message) (transports.Receipt, error) {
	session, err := tr.Connect(ctx)
	if err != nil {
		return transports.Receipt{}, err
	}
	defer session.Close()
	unclaimed := m
	unclaimed.DecisionID, unclaimed.Key = 0, ""
	if err := session.Prepare(ctx, unclaimed); err != nil {
		return transports.Receipt{}, err
	}
	return session.Send(ctx, m)
}

func TestLineIsExact(t *testing.T) {
	dir := t.TempDir()
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	r, err := send(t.Context(), tr, claimed(message()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"obligation_id":41,"decision_id":7,"channel":"any text, <&> as it stands","thread":"<thread@example.com>",` +
		`"subject":"a \"subject\" of =?utf-8?q?x?=","text":"Hello,\n\nthe price is 900.","sent_ts":1750000000,"key":"c0ffee"}` + "\n"
	if string(got) != want {
		t.Errorf("the file has\n%s\nwant\n%s", got, want)
	}
	if r.Coordinate != FileName+":0" {
		t.Errorf("coordinate %q", r.Coordinate)
	}
}

func TestPermissions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	if _, err := send(t.Context(), tr, claimed(message())); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Dir(dir): 0o700, filepath.Join(dir, FileName): 0o600, filepath.Join(dir, lockName): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

// A writer that died in mid-line took the next message with it: the two ran
// together into one line that was no JSON.
func TestHalfWrittenLineSwallowsNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, FileName)
	const before = "{\"obligation_id\":1}\n{\"obligation_id\":2,\"te"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	r, err := send(t.Context(), tr, claimed(message()))
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(all), before+"\n{") {
		t.Errorf("what was there has changed: %q", all)
	}
	lines := readLines(t, dir)
	if len(lines) != 2 || lines[1].ObligationID != 41 {
		t.Fatalf("lines %+v", lines)
	}
	_, at, _ := strings.Cut(r.Coordinate, ":")
	offset, err := strconv.Atoi(at)
	if err != nil {
		t.Fatalf("coordinate %q: %v", r.Coordinate, err)
	}
	var found line
	if err := json.Unmarshal(all[offset:], &found); err != nil || found.ObligationID != 41 {
		t.Errorf("at the coordinate stands %q", all[offset:])
	}
}

func TestDiskFailures(t *testing.T) {
	for name, c := range map[string]struct {
		disk  scriptedFile
		want  transports.Outcome
		stage string
	}{
		"nothing written": {scriptedFile{write: syscall.ENOSPC}, transports.Refused, stageWrite},
		"partly written":  {scriptedFile{write: syscall.ENOSPC, writeOff: 10}, transports.Ambiguous, stageWrite},
		"not synced":      {scriptedFile{sync: syscall.EIO}, transports.Ambiguous, stageSync},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.disk.writes = new(atomic.Int64)
			_, err := send(t.Context(), withDisk(t, dir, c.disk), claimed(message()))
			if got := transports.Classify(err); got != c.want {
				t.Errorf("outcome %q, want %q: %v", got, c.want, err)
			}
			if got := stageOf(err); got != c.stage {
				t.Errorf("stage %q, want %q", got, c.stage)
			}
			healthy := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
			next := claimed(message())
			next.ObligationID = 42
			if _, err := send(t.Context(), healthy, next); err != nil {
				t.Fatal(err)
			}
			if lines := readLines(t, dir); lines[len(lines)-1].ObligationID != 42 {
				t.Errorf("the next message didn't arrive: %+v", lines)
			}
		})
	}
}

func stageOf(err error) string {
	var (
		r *transports.RefusedError
		a *transports.AmbiguousError
	)
	switch {
	case errors.As(err, &r):
		return r.Stage
	case errors.As(err, &a):
		return a.Stage
	}
	return ""
}

// What is found in the directory is never followed, waited for or written over.
func TestStrangeFiles(t *testing.T) {
	for _, name := range []string{FileName, lockName} {
		for kind, put := range map[string]func(path string) error{
			"link":      func(path string) error { return os.Symlink("/dev/null", path) },
			"loose end": func(path string) error { return os.Symlink(filepath.Join(filepath.Dir(path), "elsewhere"), path) },
			"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
			"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
				session := prepared(t, tr)
				if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				if err := put(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
				_, err := session.Send(t.Context(), claimed(message()))
				if transports.Classify(err) != transports.Refused {
					t.Errorf("Send: %v", err)
				}
				var p *transports.PrepareError
				if err := session.Prepare(t.Context(), message()); !errors.As(err, &p) {
					t.Errorf("Prepare: %v", err)
				}
				if _, err := os.Stat(filepath.Join(dir, "elsewhere")); err == nil {
					t.Error("a link was followed")
				}
			})
		}
	}
}

func prepared(t *testing.T, tr *Transport) transports.Session {
	t.Helper()
	session, err := tr.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if err := session.Prepare(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	return session
}

func TestNoSpace(t *testing.T) {
	err := checkSpace(t.TempDir(), 1<<62)
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

// Whoever doesn't get its turn in time has written nothing.
func TestWaitsForItsTurnAsLongAsItMay(t *testing.T) {
	dir := t.TempDir()
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	session := prepared(t, tr)
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
	if stage := stageOf(err); stage != stageLock && stage != transports.StageHandOver { // the second on a busy machine
		t.Errorf("stage %q", stage)
	}
	other.close()
	if lines := readLines(t, dir); len(lines) != 0 {
		t.Errorf("written: %+v", lines)
	}
	if _, err := send(t.Context(), tr, claimed(message())); err != nil {
		t.Errorf("after the lock was free: %v", err)
	}
}

func TestMovedAwayFileIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	tr := withDisk(t, dir, scriptedFile{writes: new(atomic.Int64)})
	for range 2 {
		r, err := send(t.Context(), tr, claimed(message()))
		if err != nil || r.Coordinate != FileName+":0" {
			t.Fatalf("%+v, %v", r, err)
		}
		if err := os.Rename(filepath.Join(dir, FileName), filepath.Join(dir, "taken")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("a transport without a directory")
	}
}

// envWriter makes the test binary one of several writers.
const envWriter = "COUNTERSIGN_TEST_LOCAL_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envWriter); dir != "" {
		if err := writeMany(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const perWriter = 20

// bigMessage is longer than any pipe or page buffer.
func bigMessage(i int) transports.Message {
	m := claimed(message())
	m.ObligationID = int64(os.Getpid())
	m.DecisionID = int64(i + 1)
	m.Text = strings.Repeat(fmt.Sprintf("%d of %d\n", i, os.Getpid()), 3000)
	return m
}

// writeMany waits for its input to end, so that all writers start together.
func writeMany(dir string) error {
	if _, err := bufio.NewReader(os.Stdin).ReadString(0); err == nil {
		return errors.New("input where none was expected")
	}
	tr, err := New(Config{Dir: dir})
	if err != nil {
		return err
	}
	for i := range perWriter {
		if _, err := send(context.Background(), tr, bigMessage(i)); err != nil {
			return err
		}
	}
	return nil
}

func TestProcessesNeverInterleave(t *testing.T) {
	const writers = 4
	dir := t.TempDir()
	gate, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer gate.Close()
	var running []*exec.Cmd
	for range writers {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), envWriter+"="+dir)
		c.Stdin, c.Stderr = gate, os.Stderr
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, c)
	}
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range running {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	checkWriters(t, readLines(t, dir), writers)
}

func checkWriters(t *testing.T, lines []line, writers int) {
	t.Helper()
	seen := make(map[[2]int64]bool)
	for _, l := range lines {
		want := strings.Repeat(fmt.Sprintf("%d of %d\n", l.DecisionID-1, l.ObligationID), 3000)
		if l.Text != want {
			t.Errorf("message %d of %d is not as it was sent", l.DecisionID, l.ObligationID)
		}
		seen[[2]int64{l.ObligationID, l.DecisionID}] = true
	}
	if len(lines) != writers*perWriter || len(seen) != len(lines) {
		t.Errorf("%d lines, %d different, want %d", len(lines), len(seen), writers*perWriter)
	}
}
