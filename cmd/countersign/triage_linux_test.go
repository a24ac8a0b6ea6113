package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"countersign/ledger"
)

// until reads what the terminal shows, up to words.
func (term terminal) until(t *testing.T, words string) string {
	t.Helper()
	var shown []byte
	for !bytes.Contains(shown, []byte(words)) {
		var part [4096]byte
		n, err := term.ours.Read(part[:])
		if err != nil {
			t.Fatalf("%v; shown %q", err, shown)
		}
		shown = append(shown, part[:n]...)
	}
	return string(shown)
}

func (term terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := term.ours.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// startTriage starts triage at term, as a process.
func (d *testDesk) startTriage(term terminal) *exec.Cmd {
	d.t.Helper()
	if err := unix.IoctlSetWinsize(int(term.ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 80}); err != nil {
		d.t.Fatal(err)
	}
	cmd := exec.Command("countersign", "triage")
	cmd.Env = append(os.Environ(), "GORACE="+noExitSleep, "TERM=xterm", "NO_COLOR=", "COLUMNS=", "COUNTERSIGN_CONFIG="+d.path("countersign.toml"),
		operatorTokenEnv+"="+d.variables[operatorTokenEnv])
	cmd.Stdin, cmd.Stdout, cmd.Stderr = term.programs, term.programs, os.Stderr
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

func TestTriageAtATerminal(t *testing.T) {
	d := fourDrafts(t)
	term := newTerminal(t)
	cmd := d.startTriage(term)
	wantAll(t, term.until(t, "q quit  ?"), otherScreen, "│ The server is down.", "\x1b[1;31mP0\x1b[0m")
	term.press(t, "a")
	term.until(t, "y approves it.")
	term.press(t, "y")
	term.until(t, "#1  P2")
	term.press(t, "r")
	term.until(t, "> ")
	term.press(t, "zu spät, bitte\r")
	term.until(t, "#2  P2")
	term.press(t, "\x03")
	wantAll(t, term.until(t, "still waiting\r\n"), firstScreen, "approved 4, epoch ", "1 approved, 1 rejected; 2 drafts still waiting")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !term.echoes(t) {
		t.Error("the terminal is left without echo")
	}
	d.wantStatus(4, ledger.StatusApproved, 1)
	if o := d.wantStatus(1, ledger.StatusRejected, 1); o.Decisions[0].Reason != "zu spät, bitte" {
		t.Errorf("%+v", o.Decisions)
	}
}

// A key that was pressed before a draft was on the screen is not for it.
func TestTriageAtATerminalForgetsKeys(t *testing.T) {
	d := fourDrafts(t)
	term := newTerminal(t)
	term.press(t, "r") // the program has not begun
	cmd := d.startTriage(term)
	if shown := term.until(t, "q quit  ?"); strings.Contains(shown, "told why") {
		t.Errorf("shown %q", shown)
	}
	term.press(t, "q")
	term.until(t, "nothing decided; 4 drafts still waiting")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A signal, such as that of a terminal that was closed, leaves a terminal that echoes, and what was decided.
func TestTriageInterrupted(t *testing.T) {
	d := fourDrafts(t)
	term := newTerminal(t)
	cmd := d.startTriage(term)
	term.until(t, "q quit  ?")
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantAll(t, term.until(t, "4 drafts still waiting"), firstScreen)
	if err := cmd.Wait(); err == nil {
		t.Error("exit 0")
	}
	if !term.echoes(t) {
		t.Error("the terminal is left without echo")
	}
}
