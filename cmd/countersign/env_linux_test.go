package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal: keys are typed on ours, the program's is programs.
type terminal struct{ ours, programs *os.File }

func newTerminal(t *testing.T) terminal {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	fd := int(ours.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	programs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { programs.Close() })
	return terminal{ours, programs}
}

// echoes tells if the terminal shows what is typed.
func (term terminal) echoes(t *testing.T) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(term.programs.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// startPrompt starts the program at term and returns once it waits for the token.
func startPrompt(t *testing.T, term terminal) (*exec.Cmd, *bytes.Buffer, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command("probe", "token")
	var stdout bytes.Buffer
	cmd.Env = append(os.Environ(), "GORACE="+noExitSleep, operatorTokenEnv+"=")
	cmd.Stdin, cmd.Stdout = term.programs, &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said := bufio.NewReader(stderr)
	if prompt, err := said.ReadString(' '); err != nil || prompt != "Operator " {
		t.Fatalf("%q, %v", prompt, err)
	}
	for term.echoes(t) {
		runtime.Gosched()
	}
	return cmd, &stdout, said
}

func TestTokenTypedAtTerminal(t *testing.T) {
	term := newTerminal(t)
	cmd, stdout, said := startPrompt(t, term)
	if _, err := term.ours.WriteString("secret\n"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(said)
	if err != nil || string(rest) != "token: \n" {
		t.Errorf("stderr %q, %v", rest, err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(stdout.String(), `"token":"secret"`) {
		t.Errorf("stdout %q, %v", stdout, err)
	}
	if !term.echoes(t) {
		t.Error("the terminal is left without echo")
	}
	// What the terminal showed is what can be read on our side: the line end at most, before this mark.
	if _, err := term.programs.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	shown, err := bufio.NewReader(term.ours).ReadString('d')
	if err != nil || strings.TrimSpace(shown) != "end" {
		t.Errorf("shown %q, %v", shown, err)
	}
}

// A signal while the program waits for the token ends it, and the terminal echoes again.
func TestPromptInterrupted(t *testing.T) {
	term := newTerminal(t)
	cmd, stdout, said := startPrompt(t, term)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(said)
	if err != nil || !strings.HasSuffix(string(rest), "\ncountersign: a signal ended it before it was done\n") {
		t.Errorf("stderr %q, %v", rest, err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitFailure || stdout.Len() > 0 {
		t.Errorf("exit %d, stdout %q", code, stdout)
	}
	if !term.echoes(t) {
		t.Error("the terminal is left without echo")
	}
}
