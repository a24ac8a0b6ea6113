//go:build unix

package hook_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/command"
	"countersign/hook"
)

// program is a script that gets a directory of its own as its first argument.
func program(t *testing.T, lines ...string) (p hook.Program, dir string) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "program")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o700))
	return hook.Program{Command: command.Command{Path: path, Args: []string{dir}}}, dir
}

func TestAProgramGetsOneLineOfJSON(t *testing.T) {
	q := newQueue(t)
	q.tell("quoter", "shorter, \"please\" $HOME\n<b>")
	p, dir := program(t, `cat > "$1/input"`, `head -c 2000000 /dev/zero`)
	report := pass(t, hook.New(q, p))
	input, err := os.ReadFile(filepath.Join(dir, "input"))
	must(t, err)
	m := message(t, input)
	if strings.Count(string(input), "\n") != 1 || !strings.HasSuffix(string(input), "\n") {
		t.Errorf("not one line: %q", input)
	}
	inbox, err := q.Inbox(t.Context(), "quoter")
	must(t, err)
	f := inbox[0]
	if want := (hook.Message{ID: f.ID, Agent: "quoter", ObligationID: f.ObligationID, Kind: "steered", Body: f.Body, CreatedTS: 1_800_000_000, LedgerID: q.ID()}); m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
	if prefix := `{"id":1,"agent":"quoter","obligation_id":1,"kind":"steered","body":"`; !strings.HasPrefix(string(input), prefix) {
		t.Errorf("got %s", input)
	}
	if ids(report.Taken) != "1" || q.rows() != "" {
		t.Errorf("%+v; rows: %s", report, q.rows())
	}
}

func TestAProgramThatFailsGetsItAgain(t *testing.T) {
	t.Setenv("COUNTERSIGN_TEST_TOKEN", "hunter2")
	q := newQueue(t)
	q.tell("quoter", "shorter")
	p, _ := program(t, `test -e "$1/again" && exit 0`, `: > "$1/again"`, `echo "$COUNTERSIGN_TEST_TOKEN" | tee /dev/stderr`, `exit 3`)
	p.Command.Env = []string{"COUNTERSIGN_TEST_TOKEN"}
	report := pass(t, hook.New(q, p))
	if want := fmt.Sprintf("1 1 1m0s command %s ended with exit code 3", p.Command.Path); q.rows() != want || strings.Contains(fmt.Sprint(report), "hunter2") {
		t.Errorf("rows: %s, want %s; report %+v", q.rows(), want, report)
	}
	q.now = q.now.Add(1 << 40)
	if report := pass(t, hook.New(q, p)); ids(report.Taken) != "1" || q.rows() != "" {
		t.Errorf("%+v; rows: %s", report, q.rows())
	}
}

func TestAProgramThatMayNotRunPutsNothingOff(t *testing.T) {
	q := newQueue(t)
	q.tell("quoter", "shorter")
	p, _ := program(t, "exit 0")
	must(t, os.Chmod(p.Command.Path, 0o777))
	_, err := hook.New(q, p).Pass(t.Context())
	if !errors.As(err, new(*hook.NotReadyError)) || !errors.As(err, new(*command.NotStartedError)) || q.rows() != "1 0 now" {
		t.Errorf("%v; rows: %s", err, q.rows())
	}
}
