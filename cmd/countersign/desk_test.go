package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

// testDesk is a new configuration with its ledger, and a clock that stands until a test moves it.
type testDesk struct {
	t         *testing.T
	dir       string
	now       time.Time
	variables map[string]string
	// waiting is called when a command waits that long.
	waiting func(time.Duration)
}

func newTestDesk(t *testing.T) *testDesk {
	t.Helper()
	d := &testDesk{t: t, dir: t.TempDir(), now: time.Unix(1_796_072_400, 0).In(time.FixedZone("", 60*60))}
	d.variables = map[string]string{"COUNTERSIGN_CONFIG": d.path("countersign.toml")}
	d.waiting = func(pause time.Duration) { d.now = d.now.Add(pause) }
	d.ok("init")
	d.variables[operatorTokenEnv] = strings.TrimSpace(d.read("operator-a.token"))
	return d
}

func (d *testDesk) path(name string) string { return filepath.Join(d.dir, name) }

func (d *testDesk) read(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(d.path(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

func (d *testDesk) env(args ...string) env {
	e := testEnv(args...).withVariables(d.variables)
	e.Now = func() time.Time { return d.now }
	e.After = func(pause time.Duration) <-chan time.Time {
		d.waiting(pause)
		done := make(chan time.Time, 1)
		done <- d.now
		return done
	}
	return e
}

func (d *testDesk) run(args ...string) outcome {
	d.t.Helper()
	return runProgram(d.t, d.env(args...))
}

// ok runs what must succeed, and returns what it printed.
func (d *testDesk) ok(args ...string) string {
	d.t.Helper()
	got := d.run(args...)
	if got.code != 0 || got.stderr != "" {
		d.t.Fatalf("%v: exit %d, %s", args, got.code, got.stderr)
	}
	return got.stdout
}

// json runs what must succeed, with --json, and reads what it printed.
func (d *testDesk) json(into any, args ...string) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.ok(append(args, "--json")...)), into); err != nil {
		d.t.Fatalf("%v: %v", args, err)
	}
}

func (d *testDesk) file(text, channel string, more ...string) ledger.Filed {
	d.t.Helper()
	e := d.env(append([]string{"file", "--json", "--counterparty", "acme", "--platform", "local", "--channel", channel}, more...)...)
	e.Stdin = strings.NewReader(text)
	got := runProgram(d.t, e)
	var filed ledger.Filed
	if err := json.Unmarshal([]byte(got.stdout), &filed); err != nil || got.code != 0 {
		d.t.Fatalf("exit %d, %s, %v", got.code, got.stderr, err)
	}
	return filed
}

// ledger opens the desk's ledger, beside the program.
func (d *testDesk) ledger() *ledger.Ledger {
	d.t.Helper()
	l, err := ledger.Open(d.t.Context(), d.path("countersign.db"), ledger.Options{Now: func() time.Time { return d.now }})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			d.t.Error(err)
		}
	})
	return l
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.TrimPrefix(want, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// terminal is e with a terminal of that many columns on stdout.
func (e env) terminal(width int) env {
	e.Width = width
	return e
}

func stdoutOf(e env) string { return e.Stdout.(*bytes.Buffer).String() }
