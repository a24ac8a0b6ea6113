package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// env is the world outside of the program. Everything that a command reads or writes comes from here, so that a test
// can be a whole process without being one.
type env struct {
	Args   []string // the program's name first, as in os.Args
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	Now    func() time.Time // its location is the zone in which people are shown times
	After  func(time.Duration) <-chan time.Time

	StdinTTY  bool
	StderrTTY bool
	Width     int // columns of the terminal on stdout; 0 where stdout is none

	// ReadSecret prompts on stderr and reads a line from the terminal on stdin without echo. Only for StdinTTY.
	ReadSecret func(ctx context.Context, prompt string) (string, error)

	// OpenTerminal takes the terminal on stdin and stdout for single keys, until its Close. Only where both are one.
	OpenTerminal func() (*screen, error)
}

// processEnv is the env of this process.
func processEnv() env {
	e := env{
		Args:       os.Args,
		Stdin:      os.Stdin,
		Stdout:     os.Stdout,
		Stderr:     os.Stderr,
		Getenv:     os.Getenv,
		Now:        time.Now,
		After:      time.After,
		StdinTTY:   term.IsTerminal(int(os.Stdin.Fd())),
		StderrTTY:  term.IsTerminal(int(os.Stderr.Fd())),
		ReadSecret: readSecret,

		OpenTerminal: openTerminal,
	}
	if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		e.Width = width
	}
	return e
}

// readSecret reads one line without echo. Signals are handled elsewhere (main), so a cancelled context must give the
// terminal its echo back by itself: term.ReadPassword only does so when it returns.
func readSecret(ctx context.Context, prompt string) (string, error) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprint(os.Stderr, prompt)
	secret, err := await(ctx, func() ([]byte, error) { return term.ReadPassword(fd) })
	fmt.Fprintln(os.Stderr)
	if ctx.Err() != nil {
		_ = term.Restore(fd, before)
	}
	return string(secret), err
}

// await runs read, which knows no context, and gives up waiting for it when ctx ends. A read that is given up goes on
// until the process ends, which is what a cancelled command does next.
func await(ctx context.Context, read func() ([]byte, error)) ([]byte, error) {
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		data, err := read()
		done <- result{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
