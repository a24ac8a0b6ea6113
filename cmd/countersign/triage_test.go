package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"countersign/config"
	"countersign/ledger"
	"countersign/operator"
)

var update = flag.Bool("update", false, "write the recording of triage anew")

// typist types one key whenever the panel waits for one, and keeps what the screen showed then.
type typist struct {
	keys          []string
	before        map[int]func() // what happens elsewhere before the key of that index
	screen        bytes.Buffer
	frames        []string // frames[i] is what keys[i] answers
	width, height int
}

func (y *typist) Read(p []byte) (int, error) {
	_, frame, _ := strings.Cut(y.screen.String(), clearScreen)
	if at := strings.LastIndex(frame, clearScreen); at >= 0 {
		frame = frame[at+len(clearScreen):]
	}
	y.screen.Reset()
	i := len(y.frames)
	y.frames = append(y.frames, strings.ReplaceAll(frame, "\r\n", "\n"))
	if i >= len(y.keys) {
		return 0, io.EOF
	}
	if happens := y.before[i]; happens != nil {
		happens()
	}
	return copy(p, y.keys[i]), nil
}

func (y *typist) last() string { return y.frames[len(y.frames)-1] }

// operator is whose token the desk's variables have.
func (d *testDesk) operator() operator.Operator {
	d.t.Helper()
	c, err := config.Load(d.path("countersign.toml"))
	if err != nil {
		d.t.Fatal(err)
	}
	directory, err := operator.NewDirectory(c.Operators)
	if err != nil {
		d.t.Fatal(err)
	}
	who, err := directory.ByToken(d.variables[operatorTokenEnv])
	if err != nil {
		d.t.Fatal(err)
	}
	return who
}

// triage runs the panel with a typist at a terminal of that many lines.
func (d *testDesk) triage(y *typist) *panel {
	d.t.Helper()
	if y.width == 0 {
		y.width, y.height = 80, 40
	}
	p := &panel{ledger: d.ledger(), who: d.operator(), out: &y.screen, now: func() time.Time { return d.now },
		size: func() (int, int) { return y.width, y.height }, keys: newKeyboard(y, func() {})}
	if err := p.run(d.t.Context(), ledger.ListFilter{}); err != nil {
		d.t.Fatal(err)
	}
	return p
}

func (d *testDesk) shown(id int64) ledger.Shown {
	d.t.Helper()
	var o ledger.Shown
	d.json(&o, "show", fmt.Sprint(id))
	return o
}

func (d *testDesk) wantStatus(id int64, want ledger.Status, decisions int) ledger.Shown {
	d.t.Helper()
	o := d.shown(id)
	if o.Status != want || len(o.Decisions) != decisions {
		d.t.Errorf("obligation %d is %s with %d decisions, want %s with %d", id, o.Status, len(o.Decisions), want, decisions)
	}
	return o
}

func wantAll(t *testing.T, shown string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(shown, w) {
			t.Errorf("%q is missing in\n%s", w, shown)
		}
	}
}

// fourDrafts wait: P0, then the P2 in the order of their filing.
func fourDrafts(t *testing.T) *testDesk {
	d := newTestDesk(t)
	d.file("Dear Anna,\n\nthe invoice is 900 EUR.", "anna", "--agent", "billing", "--summary", "the invoice", "--context", "she asked for it")
	d.now = d.now.Add(time.Minute)
	d.file("Hello Ben", "ben", "--agent", "billing")
	d.now = d.now.Add(time.Minute)
	d.file("Hello Cy", "cy", "--agent", "sales")
	d.now = d.now.Add(time.Minute)
	d.file("The server is down.", "dora", "--agent", "ops", "--priority", "P0")
	return d
}

func TestTriageOneKeyEach(t *testing.T) {
	d := fourDrafts(t)
	y := &typist{keys: []string{"a", "y", "r", "the amount is wrong\r", "s", "name the due date", "\x7f\x7f\x7f\x7fday", "\r", "n"}}
	p := d.triage(y)
	approved := d.wantStatus(4, ledger.StatusApproved, 1)
	if approved.Snapshot.Text != "The server is down." || approved.Decisions[0].Operator != "operator-a" {
		t.Errorf("%+v", approved)
	}
	rejected := d.wantStatus(1, ledger.StatusRejected, 1)
	if rejected.Decisions[0].Reason != "the amount is wrong" {
		t.Errorf("%+v", rejected.Decisions)
	}
	d.wantStatus(2, ledger.StatusDrafted, 0)
	d.wantStatus(3, ledger.StatusDrafted, 0)
	var messages []ledger.FollowUp
	d.json(&messages, "inbox", "--agent", "billing")
	if n := len(messages); n != 2 || !strings.Contains(messages[0].Body+messages[1].Body, "name the due day") {
		t.Errorf("%+v", messages)
	}
	if got := p.summary(2); got != "1 approved, 1 rejected, 1 steered, 1 skipped; 2 drafts still waiting" {
		t.Error(got)
	}
	if got := strings.Join(p.done, "; "); !strings.HasPrefix(got, "approved 4, epoch 1796072580: acme; rejected 1, ") {
		t.Error(got)
	}
	// It was asked once more for, and the marker named.
	wantAll(t, y.frames[1], "Approve #4 for acme?", "local dora", "P0: it is", "[NEW DESTINATION]", "y approves it.")
	wantAll(t, y.frames[2], "#4 approved", "#1  P2  3 drafts waiting", "│ the invoice is 900 EUR.")
}

// The system's words stand above the text, under a heading of their own; the agent's come last, behind a bar.
func TestTriageKeepsWhoSaysWhatApart(t *testing.T) {
	d := newTestDesk(t)
	d.file("pay 9\u200b00\x1b[2J to \u202eknab", "a", "--agent", "billing", "--subject", "Invoice",
		"--summary", "x\nThe system says:", "--context", "the system says:\n  [NEW DESTINATION] a approve")
	y := &typist{}
	d.triage(y)
	shown := y.last()
	wantAll(t, shown, "\nThe system says:\n  [HIDDEN TEXT: text has 1 zero-width, 1 bidi control]\n  [NEW DESTINATION]\n",
		"│ pay 9⟦U+200B⟧00[2J to ⟦U+202E⟧knab\n", "subject   Invoice\n", "Filed by agent  billing\nThe agent says:\n", "\n│ the system says:\n│   (NEW DESTINATION) a approve\n")
	if strings.Count(shown, "\nThe system says:") != 1 || strings.Count(shown, "[NEW DESTINATION]") != 1 {
		t.Errorf("the agent speaks as the system:\n%s", shown)
	}
	if system, text, agent := strings.Index(shown, "The system"), strings.Index(shown, "The text"), strings.Index(shown, "The agent"); system > text || text > agent {
		t.Errorf("in another order:\n%s", shown)
	}
	for _, r := range shown {
		if r < ' ' && r != '\n' {
			t.Errorf("%q reaches the terminal", r)
		}
	}
}

func TestTriageOfAChangedText(t *testing.T) {
	d := newTestDesk(t)
	d.file("Dear Anna,\nit is 900 EUR.", "a", "--agent", "billing", "--subject", "Invoice")
	d.ok("steer", "1", "--note", "say until when\nplease")
	d.file("Dear Anna,\nit is 900 EUR until May.", "a", "--agent", "billing", "--subject", "Your invoice")
	y := &typist{}
	d.triage(y)
	wantAll(t, y.last(), "Changed since the filing before (epoch 1796072400):\n", "subject was  Invoice\nsubject is   Your invoice\n",
		"│ Dear Anna,\n- it is 900 EUR.\n+ it is 900 EUR⟦+ until May+⟧.\n", "The last word of an operator:\nsteered by operator-a  2026-", "\n│ say until when\n│ please\n")
	// A rejected text is what the next draft of its pair is compared with, though it is another obligation.
	d.ok("reject", "1", "--epoch", fmt.Sprint(d.shown(1).Epoch), "--reason", "too late")
	d.file("Dear Anna,\nit is 800 EUR.", "a", "--agent", "billing", "--subject", "Your invoice")
	y = &typist{}
	d.triage(y)
	wantAll(t, y.last(), "Changed since obligation 1, which was rejected:\n", "⟦+800+⟧", "rejected by operator-a  2026-", "\n│ too late\n")
}

// Nobody approves what was not shown: before the text's end was on the screen the key does nothing.
func TestTriageApprovesNothingUnread(t *testing.T) {
	d := newTestDesk(t)
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	d.file(text.String(), "a")
	y := &typist{width: 60, height: 20, keys: []string{"a", " ", "a", "k", "a", "g", "a", " ", " ", "G", "a", " ", "a", "y"}}
	d.triage(y)
	d.wantStatus(1, ledger.StatusApproved, 1)
	for i, key := range y.keys {
		if key == "a" && i < 12 && !strings.Contains(y.frames[i+1], "not approved: the text goes on below") {
			t.Errorf("key %d:\n%s", i, y.frames[i+1])
		}
	}
	for i, frame := range y.frames {
		if strings.Contains(frame, "a approve") != strings.Contains(strings.Join(y.frames[:i+1], ""), "│ line 60\n") && !strings.Contains(frame, "y approves") {
			t.Errorf("frame %d offers the wrong keys:\n%s", i, frame)
		}
	}
}

// A wider or narrower terminal breaks the lines elsewhere, and one that is too small shows nothing.
func TestTriageOnAnotherScreen(t *testing.T) {
	d := newTestDesk(t)
	d.file(strings.Repeat("many words ", 120)+"the end", "a")
	y := &typist{width: 60, height: 24, keys: []string{" ", "x", "a", "a", "a", "q"}}
	y.before = map[int]func(){
		1: func() { y.width = 50 },                // it was read to its end, but in other lines
		2: func() { y.width = 39 },                // then it is too narrow
		3: func() { y.width, y.height = 200, 9 },  // then too low
		4: func() { y.width, y.height = 100, 60 }, // and then all of it is on the screen
	}
	d.triage(y)
	d.wantStatus(1, ledger.StatusDrafted, 0)
	for i, want := range []bool{false, true, false, false, false, true} {
		if got := strings.Contains(y.frames[i], "a approve"); got != want {
			t.Errorf("frame %d offers to approve: %v\n%s", i, got, y.frames[i])
		}
	}
	wantAll(t, y.frames[3], "Too small: 40 columns")
	wantAll(t, y.frames[4], "Too small: 40 columns")
}

// A draft that was filed anew while it was read is shown again, and the key that was meant for the old text decides nothing.
func TestTriageOfASupersededDraft(t *testing.T) {
	d := newTestDesk(t)
	d.file("first text", "a")
	y := &typist{keys: []string{"a", "y", "s", "a note on the second\r", "r", "a reason for the third\r", "a", "y"}}
	y.before = map[int]func(){
		1: func() { d.file("second text", "a") },
		3: func() { d.file("third text", "a") },
		5: func() { d.file("fourth text", "a") },
	}
	d.triage(y)
	o := d.wantStatus(1, ledger.StatusApproved, 1)
	if o.Snapshot.Text != "fourth text" || o.Snapshot.Epoch != o.Epoch {
		t.Errorf("%+v", o.Snapshot)
	}
	for i, text := range map[int]string{2: "second", 4: "third", 6: "fourth"} {
		wantAll(t, y.frames[i], "superseded: #1 was filed anew while you read it", "│ "+text+" text\n")
	}
	var messages []ledger.FollowUp
	d.json(&messages, "inbox")
	if len(messages) != 1 || messages[0].Kind != "approved" {
		t.Errorf("%+v", messages)
	}
}

func TestTriageAfterOthersDecided(t *testing.T) {
	d := newTestDesk(t)
	first := d.file("one", "a")
	d.file("two", "b")
	d.file("three", "c")
	decide := func(f ledger.Filed) func() {
		return func() { d.ok("approve", fmt.Sprint(f.ObligationID), "--epoch", fmt.Sprint(f.Epoch)) }
	}
	second := ledger.Filed{ObligationID: 2, Epoch: d.shown(2).Epoch}
	y := &typist{keys: []string{"r", "no\r", "n"}}
	y.before = map[int]func(){1: func() { decide(first)(); decide(second)() }}
	p := d.triage(y)
	for id := range int64(2) {
		d.wantStatus(id+1, ledger.StatusApproved, 1)
	}
	wantAll(t, y.frames[2], "#2 is approved already, by operator-a", "│ three\n")
	if got := p.summary(1); got != "1 skipped, 2 decided by others; 1 draft still waiting" {
		t.Error(got)
	}
	if got := strings.Join(p.done, "; "); got != "#1 is approved already, by operator-a; #2 is approved already, by operator-a" {
		t.Error(got)
	}
}

// What the ledger refuses is told in its words, and the draft stays.
func TestTriageTellsRefusals(t *testing.T) {
	d := newTestDesk(t)
	d.file("my own", "a", "--agent", "operator-a")
	y := &typist{keys: []string{"a", "y", "a", "n", "r", "\x1b", "s", "\x03", "r", "\r", " \r", "\x15no\r"}}
	d.triage(y)
	wantAll(t, y.frames[2], "operator-a filed obligation 1, and can't approve it; another operator has", "│ my own\n")
	for _, i := range []int{4, 6, 8} {
		wantAll(t, y.frames[i], "nothing was done", "│ my own\n")
	}
	// An empty reason is none: it is still asked for.
	wantAll(t, y.frames[10], "Reject #1. The agent is told why:")
	if o := d.wantStatus(1, ledger.StatusRejected, 1); o.Decisions[0].Reason != "no" {
		t.Errorf("%+v", o.Decisions)
	}
}

// Keys that were pasted, or typed ahead, used to decide on drafts that nobody had seen.
func TestTriageTakesNoPastedKeys(t *testing.T) {
	d := fourDrafts(t)
	y := &typist{keys: []string{"ay", "approve\r", "\x1ba", "\x1b[A", "\x1b[200~a\x1b[201~", "a", "nnn", "a", "y\ray", "q"}}
	d.triage(y)
	for id := range int64(4) {
		d.wantStatus(id+1, ledger.StatusDrafted, 0)
	}
}

func TestTriageForgetsWhatWasTypedAhead(t *testing.T) {
	d := fourDrafts(t)
	y := &typist{width: 80, height: 40, keys: []string{"n", "n", "a"}}
	forgotten := 0
	p := &panel{ledger: d.ledger(), who: d.operator(), out: &y.screen, now: func() time.Time { return d.now },
		size: func() (int, int) { return y.width, y.height }, keys: newKeyboard(y, func() { forgotten++ })}
	if err := p.run(t.Context(), ledger.ListFilter{}); err != nil {
		t.Fatal(err)
	}
	if forgotten != 4 { // before each of three drafts, and before it is asked once more
		t.Errorf("forgot %d times", forgotten)
	}
}

// However it is left, what was decided stays decided, and nothing else is.
func TestTriageEnds(t *testing.T) {
	for name, keys := range map[string][]string{"q": {"a", "y", "q"}, "Ctrl-C": {"a", "y", "\x03"}, "a closed terminal": {"a", "y"}} {
		t.Run(name, func(t *testing.T) {
			d := fourDrafts(t)
			p := d.triage(&typist{keys: keys})
			d.wantStatus(4, ledger.StatusApproved, 1)
			for id := range int64(3) {
				d.wantStatus(id+1, ledger.StatusDrafted, 0)
			}
			if got := p.summary(3); got != "1 approved; 3 drafts still waiting" {
				t.Error(got)
			}
		})
	}
	// A signal ends it while it waits for a key.
	d := fourDrafts(t)
	ctx, cancel := context.WithCancel(t.Context())
	hangs, end := io.Pipe()
	defer end.Close()
	p := &panel{ledger: d.ledger(), who: d.operator(), out: io.Discard, now: func() time.Time { return d.now },
		size: func() (int, int) { cancel(); return 80, 40 }, keys: newKeyboard(hangs, func() {})}
	if err := p.run(ctx, ledger.ListFilter{}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// What is filed meanwhile comes at the end; what was skipped comes once.
func TestTriageOfNewDrafts(t *testing.T) {
	d := newTestDesk(t)
	d.file("one", "a")
	y := &typist{keys: []string{"n", "?", "x", " "}}
	y.before = map[int]func(){0: func() { d.file("two", "b", "--priority", "P0") }}
	d.triage(y)
	if len(y.frames) != 4 {
		t.Errorf("%d screens", len(y.frames))
	}
	wantAll(t, y.frames[1], "│ two\n", "n next")
	wantAll(t, y.frames[2], "a      approve exactly this text", "Any key goes on.")
}

// Whatever a draft holds, the screen holds it: no line is wider, and there are no more lines than it has.
func TestTriageFitsTheScreen(t *testing.T) {
	d := newTestDesk(t)
	long := strings.Repeat("日本 wörds 👩‍👧 שלום ", 40)
	d.file(long+"\n\n\t"+strings.Repeat("x", 500), "a"+strings.Repeat("b", 400), "--subject", strings.Repeat("subject ", 30),
		"--summary", strings.Repeat("summary ", 20), "--context", long, "--thread", strings.Repeat("t", 300))
	for _, size := range [][2]int{{minWidth, minHeight}, {80, 24}, {132, 50}} {
		y := &typist{width: size[0], height: size[1]}
		for range 80 {
			y.keys = append(y.keys, "j", keyPageDownSequence)
		}
		y.keys = append(y.keys, "a", "x", "r", strings.Repeat("reason ", 100), "\x1b", "?", "x", "x", "q")
		d.triage(y)
		for i, frame := range y.frames {
			lines := strings.Split(frame, "\n")
			if len(lines) > size[1] {
				t.Fatalf("%v: frame %d has %d lines", size, i, len(lines))
			}
			for _, line := range lines {
				if w := runewidth.StringWidth(line); w > size[0] {
					t.Fatalf("%v: frame %d: %d columns: %s", size, i, w, line)
				}
			}
		}
	}
}

const keyPageDownSequence = "\x1b[6~"

func TestTriageInColour(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a", "--priority", "P0")
	y := &typist{width: 80, height: 40}
	p := &panel{ledger: d.ledger(), who: d.operator(), out: &y.screen, now: func() time.Time { return d.now }, paint: true,
		size: func() (int, int) { return y.width, y.height }, keys: newKeyboard(y, func() {})}
	if err := p.run(t.Context(), ledger.ListFilter{}); err != nil {
		t.Fatal(err)
	}
	wantAll(t, y.last(), "priority  \x1b[1;31mP0\x1b[0m\n", "\n  \x1b[1;35m[NEW DESTINATION]\x1b[0m\n", "\n\x1b[7m#1  P0  1 draft waiting")
}

// blankRows are the rows of a screen that a short draft leaves free.
var blankRows = regexp.MustCompile(`\n{3,}`)

// The recording is part of the documentation. It is written anew with -update.
func TestTriageRecording(t *testing.T) {
	const path = "../../docs/triage.txt"
	d := newTestDesk(t)
	d.file("Dear Anna,\n\nthe invoice of November is 900 EUR.\n\nBest regards", "anna@example.com", "--agent", "billing", "--subject", "Invoice 42",
		"--summary", "invoice of November", "--context", "Anna asked for it on Monday.")
	d.ok("steer", "1", "--note", "name the due date")
	d.now = d.now.Add(10 * time.Minute)
	d.file("Dear Anna,\n\nthe invoice of November is 900 EUR, due on 15 December.\n\nBest regards", "anna@example.com", "--agent", "billing",
		"--subject", "Invoice 42", "--summary", "invoice of November", "--context", "Anna asked for it on Monday.")
	d.file("We transfer the money to\nIBAN XX00 \u202e4321 today.", "bank", "--agent", "treasury", "--priority", "P1", "--summary", "transfer")
	d.now = d.now.Add(5 * time.Minute)
	y := &typist{width: 78, height: 34, keys: []string{"r", "the account number is turned around\r", "a", "y"}}
	p := d.triage(y)
	var out strings.Builder
	out.WriteString("$ countersign triage --token-file operator-a.token\n")
	for i, frame := range y.frames {
		rule := strings.Repeat("─", y.width) + "\n"
		out.WriteString(rule)
		for line := range strings.SplitSeq(blankRows.ReplaceAllString(frame, "\n\n"), "\n") {
			out.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		out.WriteString(rule)
		if i < len(y.keys) {
			fmt.Fprintf(&out, "\nkey: %s\n\n", strings.ReplaceAll(y.keys[i], "\r", " ⏎"))
		}
	}
	out.WriteString(strings.Join(append(slices.Clone(p.done), p.summary(0)), "\n") + "\n")
	if *update {
		if err := os.WriteFile(path, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("docs/triage.txt shows something else (go test -run %s -update writes it anew):\n%s", t.Name(), out.String())
	}
}
