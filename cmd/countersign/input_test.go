package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// textOf runs "text" and returns what it did.
func textOf(t *testing.T, stdin io.Reader, args ...string) outcome {
	t.Helper()
	e := testEnv(append([]string{"text"}, args...)...)
	e.Stdin = stdin
	return runTest(t, e)
}

func writeFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	return path
}

func TestReadText(t *testing.T) {
	file := writeFile(t, "from a file\r\n", 0o600)
	for _, test := range []struct {
		name  string
		stdin string
		args  []string
		want  string
	}{
		{"standard input", "piped\n\n", nil, `"piped\n\n"`},
		{"standard input by name", "piped", []string{"--text-file", "-"}, `"piped"`},
		{"a file, byte for byte", "not this", []string{"--text-file", file}, `"from a file\r\n"`},
		{"exactly the limit", strings.Repeat("x", 20), nil, `"xxxxxxxxxxxxxxxxxxxx"`},
		{"nothing", "", nil, `""`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := textOf(t, strings.NewReader(test.stdin), test.args...)
			wantJSONEqual(t, got, `{"command":"text","args":[],"config":"","text":`+test.want+`}`)
		})
	}
}

// endless gives as many bytes as anybody wants, and counts them.
type endless struct{ given int }

func (e *endless) Read(p []byte) (int, error) {
	e.given += len(p)
	return len(p), nil
}

func TestReadTextRefuses(t *testing.T) {
	t.Run("too long", func(t *testing.T) {
		in := &endless{}
		got := textOf(t, in)
		if got.code != exitRefused || !strings.Contains(got.stderr, "standard input holds more than 20 bytes") {
			t.Errorf("exit %d, %q", got.code, got.stderr)
		}
		if in.given > 21 {
			t.Errorf("%d bytes were read", in.given)
		}
	})
	t.Run("a long file", func(t *testing.T) {
		path := writeFile(t, strings.Repeat("x", 21), 0o600)
		got := textOf(t, nil, "--text-file", path)
		if got.code != exitRefused || !strings.Contains(got.stderr, path) {
			t.Errorf("exit %d, %q", got.code, got.stderr)
		}
	})
	t.Run("a terminal", func(t *testing.T) {
		e := testEnv("text")
		e.StdinTTY = true
		got := runTest(t, e)
		wantUsageError(t, got)
		if !strings.Contains(got.stderr, "hint: pipe the text in") {
			t.Errorf("stderr %q", got.stderr)
		}
	})
	for _, path := range []string{"", t.TempDir() + "/none", t.TempDir()} {
		t.Run("the file "+filepath.Base(path), func(t *testing.T) {
			if got := textOf(t, strings.NewReader("x"), "--text-file", path); got.code == 0 || got.stdout != "" {
				t.Errorf("exit %d, %q", got.code, got.stdout)
			}
		})
	}
}

// A signal must end a command that waits for its input: main turns signals into a cancelled context.
func TestCancelledWhileReading(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	e := testEnv("text")
	e.Stdin = in
	a := newProbe(e)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	go func() { done <- a.run(ctx) }()
	if _, err := out.Write([]byte("begun")); err != nil { // returns when it was read
		t.Fatal(err)
	}
	cancel()
	if code := <-done; code != exitFailure {
		t.Errorf("exit %d", code)
	}
}

// A named pipe that nobody writes into used to hold the program where no signal ended it.
func TestCancelledWhileOpening(t *testing.T) {
	e := testEnv("text", "--text-file", pipe(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if code := newProbe(e).run(ctx); code != exitFailure {
		t.Errorf("exit %d", code)
	}
}

// pipe makes a named pipe, and lets go whoever waits at it when the test ends.
func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if end, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
			_ = end.Close()
		}
	})
	return path
}

func tokenOf(t *testing.T, e env, args ...string) outcome {
	t.Helper()
	e.Args = append(e.Args, append([]string{"token"}, args...)...)
	return runTest(t, e)
}

func TestOperatorToken(t *testing.T) {
	file := writeFile(t, "from-file\n", 0o600)
	variables := map[string]string{operatorTokenEnv: "from-env"}
	terminal := testEnv()
	terminal.StdinTTY = true
	terminal.ReadSecret = func(_ context.Context, prompt string) (string, error) { return "from " + prompt, nil }
	for _, test := range []struct {
		name string
		env  env
		args []string
		want string
	}{
		{"the file first", testEnv().withVariables(variables), []string{"--token-file", file}, "from-file"},
		{"then the environment", terminal.withVariables(variables), nil, "from-env"},
		{"then the person", terminal, nil, "from Operator token: "},
		{"only one line end goes", testEnv(), []string{"--token-file", writeFile(t, " a\n\r\n", 0o400)}, ` a\n`},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.env.Stdout, test.env.Stderr = testEnv().Stdout, testEnv().Stderr
			wantJSONEqual(t, tokenOf(t, test.env, test.args...), `{"command":"token","args":[],"config":"","token":"`+test.want+`"}`)
		})
	}
}

func TestNoOperatorToken(t *testing.T) {
	silent := testEnv()
	silent.StdinTTY = true
	silent.ReadSecret = func(context.Context, string) (string, error) { return "", nil }
	broken := silent
	broken.ReadSecret = func(context.Context, string) (string, error) { return "", errors.New("terminal gone") }
	tokenEnv := map[string]string{operatorTokenEnv: "from-env"}
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		env  env
		args []string
		code int
		want string
	}{
		{"nowhere", testEnv(), nil, exitUnauthorised, "hint: give the operator's token in --token-file FILE or $COUNTERSIGN_OPERATOR_TOKEN"},
		{"nothing typed", silent, nil, exitUnauthorised, "no operator token"},
		{"the terminal fails", broken, nil, exitFailure, "terminal gone"},
		// The environment doesn't stand in for a file that was named.
		{"no such file", testEnv().withVariables(tokenEnv), []string{"--token-file", dir + "/none"}, exitUnauthorised, "no such file"},
		{"a folder", testEnv(), []string{"--token-file", dir}, exitUnauthorised, "token file"},
		{"an empty file", testEnv(), []string{"--token-file", writeFile(t, "\n", 0o600)}, exitUnauthorised, "holds no token"},
		{"a huge file", testEnv(), []string{"--token-file", writeFile(t, strings.Repeat("x", 5000), 0o600)}, exitUnauthorised, "is larger than 4096 bytes"},
		// The program used to wait for somebody to write into it.
		{"a pipe", testEnv(), []string{"--token-file", pipe(t)}, exitUnauthorised, "is not a regular file"},
		{"a device", testEnv(), []string{"--token-file", "/dev/zero"}, exitUnauthorised, "is not a regular file"},
		{"readable by the group", testEnv(), []string{"--token-file", writeFile(t, "t", 0o640)}, exitUnauthorised, "may be read by others (mode 0640)"},
		{"readable by all", testEnv(), []string{"--token-file", writeFile(t, "t", 0o604)}, exitUnauthorised, "hint: chmod 600"},
		{"no name", testEnv(), []string{"--token-file", ""}, exitUsage, "--token-file is empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.env.Stdout, test.env.Stderr = testEnv().Stdout, testEnv().Stderr
			got := tokenOf(t, test.env, test.args...)
			if got.code != test.code || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
				t.Errorf("exit %d, %q, %q", got.code, got.stderr, got.stdout)
			}
		})
	}
}
