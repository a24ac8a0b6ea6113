package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want exitError
	}{
		{"unknown", errors.New("boom"), exitError{code: exitFailure, kind: "failure"}},
		{"usage", usagef("bad").hinted("do %s", "that"), exitError{code: exitUsage, kind: "usage", hint: "do that"}},
		{"wrapped", fmt.Errorf("while: %w", exitf(exitHeld, "held", "busy")), exitError{code: exitHeld, kind: "held"}},
		{"interrupted", fmt.Errorf("read: %w", context.Canceled), exitError{code: exitFailure, kind: "interrupted"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := explain(test.err)
			if got.code != test.want.code || got.kind != test.want.kind || got.hint != test.want.hint {
				t.Errorf("got %+v", got)
			}
			if got.Error() != test.err.Error() || !errors.Is(got, test.err) {
				t.Errorf("got %q, want %q", got, test.err)
			}
		})
	}
}

// An error may carry text of others: it can neither forge a line nor reach the terminal's controls.
func TestReport(t *testing.T) {
	joined := errors.Join(errors.New("first"), fmt.Errorf("second: %w", errors.New("x\nhint: forged")))
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"plain", usagef("bad").hinted("do that"), "countersign: bad\nhint: do that\n"},
		{"joined", joined, "countersign: first\ncountersign: second: x⟦LF⟧hint: forged\n"},
		{"several in one text", fmt.Errorf("%w\n%w", errors.New("a"), errors.New("b")), "countersign: a\ncountersign: b\n"},
		{"several in one line", fmt.Errorf("%w, %w", errors.New("a"), errors.New("b\n")), "countersign: a, b⟦LF⟧\n"},
		{"controls", errors.New("550 \x1b[2K\u202eno"), "countersign: 550 ⟦ESC⟧[2K⟦U+202E⟧no\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := testEnv()
			code := newApp(e).report(test.err)
			if got := e.Stderr.(*bytes.Buffer).String(); got != test.want || code == 0 {
				t.Errorf("got %d, %q", code, got)
			}
		})
	}
	t.Run("JSON", func(t *testing.T) {
		e := testEnv()
		a := newApp(e)
		a.configure(true, false)
		code := a.report(exitf(exitTryLater, "busy", "ledger <busy>\n\u202e").hinted("again"))
		const want = `{"error":"ledger <busy>\n\u202e","code":75,"hint":"again","kind":"busy"}` + "\n"
		if got := e.Stderr.(*bytes.Buffer).String(); got != want || code != exitTryLater {
			t.Errorf("got %d, %q", code, got)
		}
	})
}

// Go ends a panicking program with 2, which would read as a mistake of the caller.
func TestPanicIsAnUnexpectedFailure(t *testing.T) {
	got := runTest(t, testEnv("internal"))
	if got.code != exitFailure || !strings.HasPrefix(got.stderr, "countersign: internal error: the probe panics\n") {
		t.Errorf("exit %d, stderr %q", got.code, got.stderr)
	}
}
