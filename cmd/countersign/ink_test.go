package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
)

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

// onTerminal runs a command with a terminal of that width on stdout.
func (d *testDesk) onTerminal(width int, variables map[string]string, args ...string) string {
	d.t.Helper()
	e := d.env(args...).terminal(width)
	own := e.Getenv
	e.Getenv = func(name string) string {
		if value, ok := variables[name]; ok {
			return value
		}
		return own(name)
	}
	if code := run(d.t.Context(), e); code != 0 {
		d.t.Fatalf("%v: exit %d", args, code)
	}
	return stdoutOf(e)
}

// Colour says nothing that the words don't: without it the page is the same.
func TestColours(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", strings.Repeat("channel", 10), "--priority", "P0")
	filed := d.file("Hello", "b")
	d.ok("approve", "2", "--epoch", fmt.Sprint(filed.Epoch))
	d.ok("deliver")
	xterm := map[string]string{"TERM": "xterm-256color"}
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"list"}, []string{"  \x1b[1;31mP0\x1b[0m   0s", "1  \x1b[1;35m[NEW DESTINATION]\x1b[0m\n"}},
		{[]string{"list", "--status", "all"}, []string{"  \x1b[1;31mP0\x1b[0m   \x1b[33mdrafted\x1b[0m  ", "  P2   \x1b[32msent\x1b[0m     "}},
		{[]string{"show", "1"}, []string{"status        \x1b[33mdrafted\x1b[0m\n", "priority      \x1b[1;31mP0\x1b[0m\n", "marks         \x1b[1;35m[NEW DESTINATION]\x1b[0m\n"}},
		{[]string{"show", "2"}, []string{"status        \x1b[32msent\x1b[0m\n", "state    \x1b[32mdelivered\x1b[0m\n"}},
	} {
		painted := d.onTerminal(70, xterm, test.args...)
		wantAll(t, painted, test.want...)
		plain := d.onTerminal(70, nil, test.args...)
		if sgr.ReplaceAllString(painted, "") != plain {
			t.Errorf("%v: without its colours it is\n%s\nnot\n%s", test.args, sgr.ReplaceAllString(painted, ""), plain)
		}
		if table, _, _ := strings.Cut(plain, "\n\n"); test.args[0] == "list" {
			for line := range strings.Lines(table) {
				if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w > 70 {
					t.Errorf("%d columns: %s", w, line)
				}
			}
		}
	}
}

func TestNoColours(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a", "--priority", "P0")
	for name, variables := range map[string]map[string]string{
		"NO_COLOR":               {"TERM": "xterm", "NO_COLOR": "1"},
		"a terminal without any": {"TERM": "dumb"},
		"of no kind":             {"TERM": ""},
	} {
		if got := d.onTerminal(80, variables, "list"); strings.ContainsRune(got, '\x1b') {
			t.Errorf("%s: %q", name, got)
		}
	}
	xterm := map[string]string{"TERM": "xterm", "NO_COLOR": ""}
	if got := d.onTerminal(0, xterm, "list"); strings.ContainsRune(got, '\x1b') { // a pipe
		t.Errorf("%q", got)
	}
	if got := d.onTerminal(80, xterm, "list", "--json"); strings.ContainsRune(got, '\x1b') {
		t.Errorf("%q", got)
	}
	if got := d.onTerminal(80, xterm, "list"); !strings.ContainsRune(got, '\x1b') {
		t.Errorf("an empty NO_COLOR is none: %q", got)
	}
}

// What somebody filed can't paint itself like a marker of the system.
func TestNoColourOfTheirOwn(t *testing.T) {
	d := newTestDesk(t)
	d.file("\x1b[1;35m[NEW DESTINATION]\x1b[0m", "a", "--summary", "[NEW DESTINATION]", "--context", "\u009b1;35mx")
	got := d.onTerminal(80, map[string]string{"TERM": "xterm"}, "show", "1")
	if n := strings.Count(got, "\x1b[1;35m"); n != 1 {
		t.Errorf("%d markers in\n%s", n, got)
	}
}
