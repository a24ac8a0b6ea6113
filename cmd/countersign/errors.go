package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/config"
	"countersign/plaintext"
)

// The exit codes. Scripts and cron lines rely on them; each says what the caller can do next.
const (
	exitFailure      = 1  // an unexpected failure, or a check that failed
	exitUsage        = 2  // the command line or the configuration is wrong, or there is no such obligation
	exitRefused      = 3  // the text or its destination was refused
	exitConflict     = 4  // somebody was faster: stale epoch, already decided, too late, conflicting idempotency key
	exitUnauthorised = 5  // not an operator, or the operator's own draft
	exitHeld         = 6  // an active claim holds the obligation
	exitUnknown      = 7  // this pass left something unknown; wins over exitTryLater
	exitTryLater     = 75 // EX_TEMPFAIL of sysexits.h: the ledger is busy, or nothing could be prepared
)

// The kinds of error that arise here. A kind is a stable name, finer than the exit code.
const (
	kindFailure       = "failure"
	kindInterrupted   = "interrupted"
	kindUsage         = "usage"
	kindTooLarge      = "too_large"
	kindNotAuthorised = "not_authorised"
	kindConfiguration = "configuration"
	kindTimeout       = "timeout"
	kindCheckFailed   = "check_failed"
	kindUnknown       = "unknown"
	kindNotPrepared   = "not_prepared"
)

// exitError is an error that knows how the program ends.
type exitError struct {
	code int
	kind string
	hint string // what to do next; may be ""
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// hinted sets the hint.
func (e *exitError) hinted(format string, args ...any) *exitError {
	e.hint = fmt.Sprintf(format, args...)
	return e
}

// exitf makes an error for exit code and kind.
func exitf(code int, kind, format string, args ...any) *exitError {
	return &exitError{code: code, kind: kind, err: fmt.Errorf(format, args...)}
}

// usagef makes an error of the command line.
func usagef(format string, args ...any) *exitError {
	return exitf(exitUsage, kindUsage, format, args...)
}

// bySignal says in plain words that a signal ended a command, where nothing else is wrong with it.
func bySignal(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) || explain(err).kind != kindInterrupted {
		return err
	}
	return exitf(exitFailure, kindInterrupted, "a signal ended it before it was done")
}

// report tells err on stderr, if there is one, and returns the exit code.
func (a *app) report(err error) int {
	if err == nil {
		return 0
	}
	e := explain(err)
	if a.out.json {
		line := struct {
			Error string `json:"error"`
			Code  int    `json:"code"`
			Hint  string `json:"hint"`
			Kind  string `json:"kind"`
		}{e.Error(), e.code, e.hint, e.kind}
		// Nothing is left to do about a stderr that takes nothing.
		_ = writeJSON(a.env.Stderr, line)
		return e.code
	}
	for _, line := range errorLines(err) {
		fmt.Fprintf(a.env.Stderr, "%s: %s\n", programName, plaintext.VisibleLine(line))
	}
	if e.hint != "" {
		fmt.Fprintf(a.env.Stderr, "hint: %s\n", plaintext.VisibleLine(e.hint))
	}
	return e.code
}

// errorLines takes apart what errors.Join joined. Line breaks of any other origin are part of a message that may not
// be ours, and must not look like a line of their own.
func errorLines(err error) []string {
	if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
		return configurationLines(invalid)
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var lines, texts []string
	for _, e := range joined.Unwrap() {
		lines = append(lines, errorLines(e)...)
		texts = append(texts, e.Error())
	}
	if err.Error() != strings.Join(texts, "\n") { // fmt.Errorf with several %w
		return []string{err.Error()}
	}
	return lines
}

// configurationLines are the problems of a configuration, each with its place, as a compiler would tell them.
func configurationLines(invalid *config.InvalidError) []string {
	lines := []string{"the configuration is not valid"}
	for _, p := range invalid.Problems {
		lines = append(lines, problemLine(invalid.Path, p))
	}
	return lines
}

func problemLine(path string, p config.Problem) string {
	line := path + ":"
	if p.Line > 0 {
		line += fmt.Sprintf("%d:", p.Line)
	}
	if p.Key != "" {
		line += " " + p.Key + ":"
	}
	return line + " " + p.Text
}
