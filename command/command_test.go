//go:build unix

package command_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/command"
)

// script writes a program for /bin/sh.
func script(t *testing.T, lines ...string) command.Command {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return command.Command{Path: path}
}

func run(t *testing.T, c command.Command, stdin string) command.Result {
	t.Helper()
	out, err := c.Run(t.Context(), []byte(stdin))
	if err != nil {
		t.Fatalf("%v; stderr %q", err, out.Stderr)
	}
	return out
}

// want fails the test when err is not a T, and returns it as that.
func want[T error](t *testing.T, err error) T {
	t.Helper()
	target, ok := errors.AsType[T](err)
	if !ok {
		t.Fatalf("got error %v, want a %T", err, target)
	}
	return target
}

// witness is a pipe by which a process can be seen to be gone: whoever opened it for writing has ended when it ends.
type witness struct {
	path       string
	read, held *os.File
}

func newWitness(t *testing.T) witness {
	t.Helper()
	w := witness{path: filepath.Join(t.TempDir(), "witness")}
	if err := syscall.Mkfifo(w.path, 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.read, err = os.OpenFile(w.path, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.read.Close() })
	if w.held, err = os.OpenFile(w.path, os.O_WRONLY|syscall.O_NONBLOCK, 0); err != nil { // or the pipe would be at its end before it is used
		t.Fatal(err)
	}
	t.Cleanup(func() { w.held.Close() })
	return w
}

// gone waits until nobody holds the pipe any more.
func (w witness) gone(t *testing.T) {
	t.Helper()
	w.held.Close()
	if err := w.read.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(w.read); err != nil {
		t.Fatal("somebody is still there: ", err)
	}
}

// heard waits until a process says something, which tells that it runs.
func (w witness) heard(t *testing.T) {
	t.Helper()
	if err := w.read.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(w.read, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestInputOutputAndArguments(t *testing.T) {
	c := script(t, `printf '%s|' "$@"`, `cat`, `echo to stderr >&2`, `pwd`)
	c.Args = []string{"$HOME", "a b", "*", "; exit 9", "`id`", ""}
	input := "line\x00\xff\n"
	out := run(t, c, input)
	if want := "$HOME|a b|*|; exit 9|`id`||" + input + "/\n"; string(out.Stdout) != want || string(out.Stderr) != "to stderr\n" {
		t.Errorf("stdout %q, want %q; stderr %q", out.Stdout, want, out.Stderr)
	}
	if out.ExitCode != 0 || out.Truncated {
		t.Errorf("%+v", out)
	}
	c.Dir = t.TempDir()
	real, err := filepath.EvalSymlinks(c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if out := run(t, c, ""); !strings.HasSuffix(string(out.Stdout), real+"\n") {
		t.Errorf("it runs in %q, want %s", out.Stdout, real)
	}
}

func TestTheEnvironmentIsEmptyButForTheListedNames(t *testing.T) {
	t.Setenv("COUNTERSIGN_OPERATOR_TOKEN", "secret")
	t.Setenv("COUNTERSIGN_TEST_PASSED", "a=b\n$HOME")
	os.Unsetenv("COUNTERSIGN_TEST_UNSET")
	c := command.Command{Path: "/usr/bin/env"}
	if out := run(t, c, ""); len(out.Stdout) != 0 {
		t.Errorf("the environment is %q", out.Stdout)
	}
	c.Env = []string{"COUNTERSIGN_TEST_PASSED", "COUNTERSIGN_TEST_UNSET"}
	if out := run(t, c, ""); string(out.Stdout) != "COUNTERSIGN_TEST_PASSED=a=b\n$HOME\n" {
		t.Errorf("the environment is %q", out.Stdout)
	}
}

func TestAProgramThatDoesNotReadItsInputIsNoError(t *testing.T) {
	run(t, script(t, "exec <&-", "exit 0"), strings.Repeat("x", 10<<20))
}

func TestInputAndOutputFlowAtTheSameTime(t *testing.T) {
	c := script(t, "cat")
	c.MaxOutput = 10 << 20
	input := bytes.Repeat([]byte("0123456789abcdef"), 10<<16)
	out, err := c.Run(t.Context(), input)
	if err != nil || !bytes.Equal(out.Stdout, input) || out.Truncated {
		t.Errorf("%d bytes came back of %d, truncated %v, %v", len(out.Stdout), len(input), out.Truncated, err)
	}
}

// The rest is read all the same: a program must not die of a broken pipe in the middle of its work.
func TestOutputIsCapped(t *testing.T) {
	c := script(t, `head -c 10485760 /dev/zero | tr '\0' x`, `echo done >&2`)
	c.MaxOutput = 1000
	out, err := c.Run(t.Context(), nil)
	tooMuch := want[*command.TooMuchOutputError](t, err)
	if tooMuch.Limit != 1000 || tooMuch.Path != c.Path || string(out.Stdout) != strings.Repeat("x", 1000) {
		t.Errorf("%+v, %d bytes kept", tooMuch, len(out.Stdout))
	}
	if !out.Truncated || string(out.Stderr) != "done\n" || out.ExitCode != 0 {
		t.Errorf("truncated %v, stderr %q, exit code %d", out.Truncated, out.Stderr, out.ExitCode)
	}
	c.MaxOutput = 10 << 20
	if out := run(t, c, ""); len(out.Stdout) != 10<<20 || out.Truncated {
		t.Errorf("exactly the limit: %d bytes, truncated %v", len(out.Stdout), out.Truncated)
	}
	c = script(t, `head -c 2000 /dev/zero >&2`)
	c.MaxOutput = 1999
	if out := run(t, c, ""); len(out.Stderr) != 1999 || !out.Truncated {
		t.Errorf("stderr alone: %d bytes, truncated %v", len(out.Stderr), out.Truncated)
	}
	c = script(t, `head -c 2000 /dev/zero`, `exit 3`)
	c.MaxOutput = 1
	if out, err := c.Run(t.Context(), nil); want[*command.ExitError](t, err).Code != 3 || !out.Truncated {
		t.Errorf("%+v", out)
	}
}

func TestExitCodes(t *testing.T) {
	c := script(t, "echo said; echo why >&2; exit 7")
	out, err := c.Run(t.Context(), nil)
	if e := want[*command.ExitError](t, err); e.Code != 7 || e.Signal != nil || e.Path != c.Path {
		t.Errorf("%+v", e)
	}
	if out.ExitCode != 7 || string(out.Stdout) != "said\n" || string(out.Stderr) != "why\n" {
		t.Errorf("%+v", out)
	}
	out, err = script(t, "kill -9 $$").Run(t.Context(), nil)
	if e := want[*command.ExitError](t, err); e.Code != -1 || e.Signal != syscall.SIGKILL || out.ExitCode != -1 {
		t.Errorf("%+v, %+v", e, out)
	}
}

func TestATimeOutEndsTheWholeGroup(t *testing.T) {
	for name, ignore := range map[string]string{"on SIGTERM": "", "although it ignores SIGTERM": "trap '' TERM"} {
		t.Run(name, func(t *testing.T) {
			w := newWitness(t)
			c := script(t, ignore, `exec 3>"$1"`, `sleep 1000 &`, `echo begun`, `wait; sleep 1000`)
			c.Args, c.Timeout = []string{w.path}, 100*time.Millisecond
			out, err := c.Run(t.Context(), nil)
			if e := want[*command.TimeoutError](t, err); e.Path != c.Path || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%+v", e)
			}
			if out.ExitCode != -1 || string(out.Stdout) != "begun\n" && string(out.Stdout) != "" { // a slow machine may not get that far
				t.Errorf("%+v", out)
			}
			w.gone(t)
		})
	}
}

func TestTheCallersContextEndsIt(t *testing.T) {
	for name, of := range map[string]struct {
		end  func(context.Context) (context.Context, context.CancelFunc)
		want error
	}{
		"deadline": {func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 100*time.Millisecond)
		}, context.DeadlineExceeded},
		"cancelled": {context.WithCancel, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWitness(t)
			c := script(t, `exec 3>"$1"`, `printf x >&3`, `sleep 1000`)
			c.Args = []string{w.path}
			ctx, cancel := of.end(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := c.Run(ctx, nil)
				done <- err
			}()
			if name == "cancelled" {
				w.heard(t)
				cancel()
			}
			if err := <-done; !errors.Is(err, of.want) || name == "deadline" != errors.As(err, new(*command.TimeoutError)) {
				t.Errorf("got %v", err)
			}
			if name == "cancelled" {
				w.gone(t)
			}
		})
	}
}

// A program that ends, and leaves another one behind that holds its output, kept Run waiting for as long as that one liked.
func TestWhatAProgramLeavesInItsGroupEndsWithIt(t *testing.T) {
	w := newWitness(t)
	c := script(t, `exec 3>"$1"`, `sleep 1000 &`, `echo done`)
	c.Args = []string{w.path}
	begun := time.Now()
	if out := run(t, c, ""); string(out.Stdout) != "done\n" {
		t.Errorf("stdout %q", out.Stdout)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	w.gone(t)
}

func TestOneThatLeavesTheGroupDoesNotHoldUsUp(t *testing.T) {
	setsid := "/usr/bin/setsid"
	if _, err := os.Stat(setsid); err != nil {
		t.Skip("there is no ", setsid)
	}
	// It is out of reach until it sees that its parent's output is closed.
	c := script(t, setsid+` sh -c 'sleep 0.1; while echo x; do sleep 0.1; done' 2>&1 &`, `echo done`)
	c.Env = []string{"PATH"}
	begun := time.Now()
	out := run(t, c, strings.Repeat("x", 1<<20))
	if took := time.Since(begun); !strings.HasPrefix(string(out.Stdout), "done\n") || took > 20*time.Second {
		t.Errorf("stdout %.20q after %v", out.Stdout, took)
	}
}

func TestWhatMayNotBeRun(t *testing.T) {
	good := script(t, "echo ran")
	mode := func(m os.FileMode) command.Command {
		c := script(t, "echo ran")
		if err := os.Chmod(c.Path, m); err != nil {
			t.Fatal(err)
		}
		return c
	}
	with := func(change func(*command.Command)) command.Command {
		c := good
		change(&c)
		return c
	}
	for name, of := range map[string]struct {
		c    command.Command
		want string
	}{
		"a bare name":        {command.Command{Path: "env"}, "not absolute"},
		"nothing":            {command.Command{}, "not absolute"},
		"missing":            {command.Command{Path: good.Path + "x"}, "no such file"},
		"a directory":        {command.Command{Path: filepath.Dir(good.Path)}, "not a regular file"},
		"not executable":     {mode(0o600), "not executable; chmod +x"},
		"the group's":        {mode(0o770), "others than its owner may change it"},
		"everybody's":        {mode(0o707), "others than its owner may change it"},
		"a variable's value": {with(func(c *command.Command) { c.Env = []string{"TOKEN=hunter2"} }), "names such as PATH"},
		"a NUL":              {with(func(c *command.Command) { c.Args = []string{"a\x00b"} }), "NUL"},
		"a relative place":   {with(func(c *command.Command) { c.Dir = "tmp" }), "directory is not absolute"},
		"no such place":      {with(func(c *command.Command) { c.Dir = "/no/such/place" }), "no such file"},
		"a negative limit":   {with(func(c *command.Command) { c.Timeout = -1 }), "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := of.c.Run(t.Context(), nil)
			e := want[*command.NotStartedError](t, err)
			if !strings.Contains(err.Error(), of.want) || e.Path != of.c.Path || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %q, want one with %q", err, of.want)
			}
			if out.ExitCode != -1 || out.Stdout != nil {
				t.Errorf("it ran: %+v", out)
			}
		})
	}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	if err := os.Symlink(good.Path, good.Path+"-link"); err != nil {
		t.Fatal(err)
	}
	run(t, command.Command{Path: good.Path + "-link"}, "")
}

func TestAFileThatIsNoProgramIsNotGivenToAShell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("echo ran\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := command.Command{Path: path}.Run(t.Context(), nil)
	want[*command.NotStartedError](t, err)
	if !errors.Is(err, syscall.ENOEXEC) || len(out.Stdout) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestNothingStartsAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	marker := filepath.Join(t.TempDir(), "ran")
	c := script(t, `: > "$1"`)
	c.Args = []string{marker}
	_, err := c.Run(ctx, nil)
	want[*command.NotStartedError](t, err)
	if _, statErr := os.Stat(marker); !errors.Is(err, context.Canceled) || statErr == nil {
		t.Errorf("%v; the program ran: %v", err, statErr == nil)
	}
}

func TestErrorsRepeatNoArgumentsAndNoOutput(t *testing.T) {
	t.Setenv("COUNTERSIGN_TEST_SECRET", "hunter2")
	c := script(t, `echo "$COUNTERSIGN_TEST_SECRET"; echo "$1 $COUNTERSIGN_TEST_SECRET" >&2`, `exit $2`)
	c.Env, c.MaxOutput = []string{"COUNTERSIGN_TEST_SECRET"}, 1
	for _, code := range []string{"0", "1"} {
		c.Args = []string{"hunter2", code}
		if _, err := c.Run(t.Context(), []byte("hunter2")); err == nil || strings.Contains(fmt.Sprintf("%v %+v", err, err), "hunter2") {
			t.Errorf("exit %s gives %v", code, err)
		}
	}
}

func TestOneCommandRunsManyTimesAtOnce(t *testing.T) {
	c := script(t, "cat")
	results := make(chan string)
	var all []string
	for i := range 8 {
		go func() {
			out, err := c.Run(t.Context(), fmt.Append(nil, i))
			results <- fmt.Sprint(string(out.Stdout), err)
		}()
	}
	for range 8 {
		all = append(all, <-results)
	}
	slices.Sort(all)
	if got := strings.Join(all, " "); got != "0<nil> 1<nil> 2<nil> 3<nil> 4<nil> 5<nil> 6<nil> 7<nil>" {
		t.Errorf("got %s", got)
	}
}
