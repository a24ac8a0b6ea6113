package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
)

// testPage lays out a page of that width and returns its text.
func testPage(width int, people func(p *page)) string {
	var buf bytes.Buffer
	o := output{w: &buf, width: width, zone: time.FixedZone("", -5*60*60)}
	if err := o.show(nil, people); err != nil {
		panic(err) // a bytes.Buffer takes everything
	}
	return buf.String()
}

func TestJSONKeepsTextAndHidesNothing(t *testing.T) {
	for _, text := range []string{
		"AT&T: 5 < 6 > 4", "é\u0301", "line\nline\ttab", "שלום عربي 👩‍👩‍👧", "\u202egnp.exe", "a\u200bb", "\u009b31m", "\x1b[2K", "\U000e0041",
		"\u2028", "\x7f", "\u00a0\u3000", `quote " and \`,
	} {
		var buf bytes.Buffer
		if err := writeJSON(&buf, map[string]string{"text": text}); err != nil {
			t.Fatal(err)
		}
		for _, r := range strings.TrimSuffix(buf.String(), "\n") {
			if strings.ContainsRune("\u202e\u200b\u009b\x1b\x7f\u2028\U000e0041\u00a0", r) {
				t.Errorf("%q holds %U as it is", buf.String(), r)
			}
		}
		var back map[string]string
		if err := json.Unmarshal(buf.Bytes(), &back); err != nil || back["text"] != text {
			t.Errorf("%q came back as %q, %v", text, back["text"], err)
		}
	}
	var buf bytes.Buffer
	if err := writeJSON(&buf, "<a href='?x&y'>é</a>"); err != nil || buf.String() != "\"<a href='?x&y'>é</a>\"\n" {
		t.Errorf("%q, %v", buf.String(), err)
	}
}

// brokenWriter takes nothing.
type brokenWriter struct{}

var errBroken = errors.New("disk full")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestResultThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"completion", "bash"}, {"--generate-bash-completion"}, {"help"}} {
		e := testEnv(args...)
		e.Stdout = brokenWriter{}
		if code := run(t.Context(), e); code != exitFailure {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}

func TestTerminalWidth(t *testing.T) {
	for _, test := range []struct {
		columns  string
		terminal int
		want     int
	}{
		{"", 0, defaultWidth}, {"", 132, 132}, {"80", 132, 80}, {"0", 132, 132}, {"x", 0, defaultWidth}, {"5", 0, minWidth},
	} {
		e := testEnv().withVariables(map[string]string{"COLUMNS": test.columns})
		e.Width = test.terminal
		if got := terminalWidth(e); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

func TestTable(t *testing.T) {
	columns := []column{{title: "ID"}, {title: "COUNTERPARTY", cut: true}, {title: "SUMMARY", cut: true}, {title: "EPOCH"}}
	rows := [][]string{
		{"1", "acme", "short", "1700000000"},
		{"12345", "日本の会社", "a summary that is far too long for the terminal that it is shown on", "1700000000"},
		{"7", "bad\x1b[2Kname", "two\nlines", "1700000001"},
	}
	got := testPage(60, func(p *page) { p.table(columns, rows) })
	want := strings.TrimPrefix(`
ID     COUNTERPARTY     SUMMARY                   EPOCH
1      acme             short                     1700000000
12345  日本の会社       a summary that is far t…  1700000000
7      bad⟦ESC⟧[2Kname  two⟦LF⟧lines              1700000001
`, "\n")
	for line := range strings.Lines(got) {
		if w := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); w > 60 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What an operator copies is never cut, however narrow the terminal is.
func TestTableKeepsWhatMayNotBeCut(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	got := testPage(minWidth, func(p *page) {
		p.table([]column{{title: "SHA-256"}, {title: "NOTE", cut: true}}, [][]string{{hash, "a long note to go with it"}})
	})
	if !strings.Contains(got, hash) || !strings.Contains(got, "a long …") {
		t.Errorf("got\n%s", got)
	}
}

func TestFieldsAndLines(t *testing.T) {
	got := testPage(40, func(p *page) {
		p.line("obligation %d, %s", 7, "a\u202eb")
		p.blank()
		p.fields(field{"status", "drafted"}, field{"counterparty", strings.Repeat("x", 60)}, field{"filed", p.time(1700000000)},
			field{"note", "one\ntwo"})
	})
	want := `obligation 7, a⟦U+202E⟧b

status        drafted
counterparty  ` + strings.Repeat("x", 60) + `
filed         2023-11-14T17:13:20-05:00
note          one⟦LF⟧two
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// No line of a draft may look like one of the program's own, and nothing of it is left out.
func TestQuote(t *testing.T) {
	got := testPage(minWidth, func(p *page) {
		p.quote("Hello,\n\nstatus        approved\na\tb\n" + strings.Repeat("0123456789", 8) + "\n\x1b[8mhidden")
	})
	want := `│ Hello,
│ 
│ status        approved
│ a       b
│ 01234567890123456789012345678901234567
┆ 89012345678901234567890123456789012345
┆ 6789
│ ⟦ESC⟧[8mhidden
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExpandTabs(t *testing.T) {
	for in, want := range map[string]string{
		"":              "",
		"\t":            "        ",
		"a\tb":          "a       b",
		"1234567\t8\t9": "1234567 8       9",
		"12345678\t9":   "12345678        9",
		"日本\tx":         "日本    x",
	} {
		if got := expandTabs(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestLogger(t *testing.T) {
	for _, test := range []struct {
		name                 string
		asJSON, verbose, tty bool
		has, hasNot          string
	}{
		{"warnings only", false, false, false, "level=WARN msg=careful why=now", "level=INFO"},
		{"a cron mail tells the time", false, false, false, "time=", "level=INFO"},
		{"a person knows it", false, false, true, "level=WARN", "time="},
		{"verbose", false, true, true, "level=INFO msg=working", "time="},
		{"JSON", true, true, true, `"level":"INFO","msg":"working"`, "level="},
	} {
		t.Run(test.name, func(t *testing.T) {
			var buf bytes.Buffer
			e := testEnv()
			e.Stderr, e.StderrTTY = &buf, test.tty
			log := newLogger(e, test.asJSON, test.verbose)
			log.Info("working")
			log.Warn("careful", slog.String("why", "now"))
			if got := buf.String(); !strings.Contains(got, test.has) || strings.Contains(got, test.hasNot) {
				t.Errorf("got %s", got)
			}
		})
	}
}
