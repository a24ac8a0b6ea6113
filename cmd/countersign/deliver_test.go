package main

import (
	"bytes"
	"strings"
	"testing"

	"countersign/sweep"
)

// At a terminal one line tells how far a pass is, and is gone at its end; anywhere else nothing is written.
func TestProgressIsALineThatGoesAway(t *testing.T) {
	for _, test := range []struct {
		name       string
		tty, json  bool
		line, last string
	}{
		{"terminal", true, false, "delivered 1, refused 0, ambiguous 0, not prepared 0, skipped 1 …", "\r\x1b[K"},
		{"cron", false, false, "", ""},
		{"json", true, true, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stderr bytes.Buffer
			e := processEnv()
			e.Stderr, e.StderrTTY = &stderr, test.tty
			a := newApp(e)
			a.configure(test.json, false)
			var opts sweep.Options
			done := a.watch(&opts)
			if opts.Progress != nil {
				opts.Progress(sweep.Delivered, sweep.Item{})
				opts.Progress(sweep.Skipped, sweep.Item{})
			}
			done()
			if got := stderr.String(); !strings.Contains(got, test.line) || !strings.HasSuffix(got, test.last) || test.line == "" && got != "" {
				t.Errorf("stderr got %q", got)
			}
		})
	}
}
