package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"countersign/config"
)

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
		{"a configuration", &config.InvalidError{Path: "/x.toml", Problems: []config.Problem{
			{Line: 3, Key: "deliver.hold", Text: "must be \n"}, {Text: "is empty"}}},
			"countersign: the configuration is not valid\ncountersign: /x.toml:3: deliver.hold: must be ⟦LF⟧\ncountersign: /x.toml: is empty\n" +
				"hint: countersign config check tells the same, and what is unwise\n"},
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
