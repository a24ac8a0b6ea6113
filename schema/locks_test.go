package schema_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"countersign/ledger"
	"countersign/schema"

	"modernc.org/sqlite"
)

// Some tests need another process: the test binary runs itself again, with the role in childRole and the ledger in childPath.
const (
	childRole = "COUNTERSIGN_TEST_ROLE"
	childPath = "COUNTERSIGN_TEST_LEDGER"
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(childRole); role {
	case "":
		if _, err := sqlite.OFDLocking(true); err != nil && !errors.Is(err, sqlite.ErrOFDLockingUnavailable) { // some tests start with a raw connection
			exit(err)
		}
		os.Exit(m.Run())
	case "shell":
		exit(beShell(os.Getenv(childPath)))
	case "two ledgers":
		exit(openTwo(os.Getenv(childPath)))
	}
	exit(errors.New("no such role"))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(t *testing.T, role, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path)
	return cmd
}

// beShell does what somebody at the sqlite3 shell does, once for each line of its input: connect, look, and leave. Leaving is the
// dangerous part: whoever believes to be the last one there moves the write-ahead log into the file and removes it.
func beShell(path string) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=rw&_pragma=busy_timeout(5000)")
		if err != nil {
			return err
		}
		var n int
		if err := db.QueryRow(`SELECT count(*) FROM filings`).Scan(&n); err != nil {
			return err
		}
		if err := db.Close(); err != nil {
			return err
		}
		fmt.Println(n)
	}
	return in.Err()
}

// A lock lost: closing any descriptor of the file used to drop the process's locks on it, another program then took itself for the last
// one there, and steps that had been committed disappeared with the write-ahead log.
func TestNoCommittedStepDisappearsWhenTheFileIsOpenedBesideIt(t *testing.T) {
	const steps = 20
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := ledger.Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), path, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ask := startShell(t, path)
	stop := meddle(t, path)
	for i := range steps {
		fileAs(t, l, fmt.Sprintf("c%d", i))
		if seen := ask(); seen != fmt.Sprint(i+1) {
			t.Errorf("after step %d another process sees %s filings", i+1, seen)
		}
	}
	stop()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l, err = ledger.Open(t.Context(), path, ledger.Options{}); err != nil {
		t.Fatal(err)
	}
	waiting, err := l.Waiting(t.Context(), ledger.ListFilter{})
	if err != nil || len(waiting) != steps {
		t.Errorf("%d of %d steps are left, %v", len(waiting), steps, err)
	}
	if checked, err := l.Check(t.Context()); err != nil || !checked.OK {
		t.Errorf("%v %v", checked.Problems, err)
	}
}

// startShell returns a function that lets another process connect, count the filings, and leave.
func startShell(t *testing.T, path string) (ask func() string) {
	t.Helper()
	shell := child(t, "shell", path)
	in, err := shell.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := shell.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); shell.Wait() })
	answers := bufio.NewScanner(out)
	return func() string {
		io.WriteString(in, "look\n")
		if !answers.Scan() {
			t.Fatal("the other process ended")
		}
		return answers.Text()
	}
}

// meddle opens and closes the ledger's files in this process, again and again, until stop.
func meddle(t *testing.T, path string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			for _, name := range []string{path, path + "-wal", path + "-shm"} {
				if file, err := os.Open(name); err == nil {
					io.CopyN(io.Discard, file, 100)
					file.Close()
				}
			}
		}
	})
	return func() { cancel(); done.Wait() }
}

func fileAs(t *testing.T, l *ledger.Ledger, counterparty string) {
	t.Helper()
	draft, err := ledger.Clean(ledger.Filing{Counterparty: counterparty, Platform: "smtp", Channel: "a@b.example", Text: "hello", Agent: "quoter"}, ledger.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.File(t.Context(), draft, ledger.Gates{}); err != nil {
		t.Fatal(err)
	}
}

// The sqlite3 shell itself, where there is one.
func TestTheSQLiteShellWorksBesideTheLedger(t *testing.T) {
	shell, err := exec.LookPath("sqlite3")
	if err != nil {
		t.Skip("no sqlite3 here")
	}
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := ledger.Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), path, ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	stop := meddle(t, path)
	defer stop()
	for i := range 10 {
		fileAs(t, l, fmt.Sprintf("c%d", i))
		out, err := exec.CommandContext(t.Context(), shell, "-cmd", ".timeout 5000", path, "SELECT count(*) FROM filings").Output()
		if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(i+1) {
			t.Errorf("after step %d the shell says %q, %v", i+1, out, err)
		}
	}
}

// A foreign ledger whose tables are still in its write-ahead log is known for what it is; and to read them takes locks, so that the
// kind of locks has to be chosen before: else no ledger could be opened after.
func TestALedgerOpensAfterALookAtAForeignOneInUse(t *testing.T) {
	foreign := life{path: filepath.Join(t.TempDir(), "foreign.db")}
	if err := os.WriteFile(foreign.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	foreign.plain(t, `PRAGMA journal_mode = WAL`, foreignTables)
	if out, err := child(t, "two ledgers", foreign.path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func openTwo(foreign string) error {
	_, err := ledger.Open(context.Background(), foreign, ledger.Options{})
	var upgrade *schema.UpgradeError
	if !errors.As(err, &upgrade) {
		return fmt.Errorf("the foreign ledger: %w", err)
	}
	own := foreign + ".own"
	if err := ledger.Create(context.Background(), own); err != nil {
		return err
	}
	l, err := ledger.Open(context.Background(), own, ledger.Options{})
	if err != nil {
		return err
	}
	return l.Close()
}
