package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/schema"
)

// The agent is the flag's, else the environment's, else "cli".
func TestWhoFiles(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a")
	d.variables[agentEnv] = "from-env"
	d.file("Hello", "b")
	d.file("Hello", "c", "--agent", "from-flag")
	var list []ledger.Listed
	d.json(&list, "list")
	var got []string
	for _, o := range list {
		got = append(got, o.Agent)
	}
	if want := []string{"cli", "from-env", "from-flag"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	d.json(&list, "list", "--agent", "from-env")
	if len(list) != 1 || list[0].ObligationID != 2 {
		t.Errorf("got %+v", list)
	}
}

func TestFiledPage(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a")
	e := d.env("file", "--counterparty", "acme", "--platform", "local", "--channel", "a", "--priority", "P0")
	e.Stdin = strings.NewReader("Hello\x07\n")
	got := runProgram(t, e)
	wantText(t, got.stdout, `
obligation 1 is filed again; the draft before it is superseded
epoch        1796072401
status       drafted
priority     P0
text sha256  185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969
envelope     a0d7c1b4281d9aebab086decac23fffc45780749f2f03766c37afcf5d2b9f3b9
marks        [NEW DESTINATION]
notice       retained: no internal destination is configured
cleaning changed what came in; countersign show 1 has it as it is stored
warning: no baseline checker is configured: nothing was compared with the record of signed contracts
`)
}

func TestTimes(t *testing.T) {
	d := newTestDesk(t)
	for value, want := range map[string]int64{
		"1796072400": 1_796_072_400, "2026-11-30T21:00:00Z": 1_796_072_400, "2026-11-30T22:00:00+01:00": 1_796_072_400,
		"2026-11-30": 1_795_993_200, // midnight where the reader is
	} {
		if got := d.run("audit", "log", "--since", value, "--until", fmt.Sprint(want)); got.code != 0 {
			t.Errorf("%s: exit %d, %s", value, got.code, got.stderr)
		}
	}
	for _, value := range []string{"", "0", "-5", "yesterday", "2026-13-01", "2026-11-30 21:00", "1e9"} {
		if got := d.run("audit", "log", "--since", value); got.code != exitUsage || !strings.Contains(got.stderr, "--since needs a time such as") {
			t.Errorf("%q: exit %d, %s", value, got.code, got.stderr)
		}
	}
}

func TestAuditFilters(t *testing.T) {
	d := newTestDesk(t)
	begin := d.now
	for i, channel := range []string{"a", "b", "c"} {
		d.now = begin.Add(time.Duration(i) * 70 * time.Minute)
		d.file("Hello", channel, "--agent", "agent-"+channel)
	}
	for _, test := range []struct {
		args string
		want string
	}{
		{"", "1 2 3"},
		{"--id 2", "2"},
		{"--actor agent-c", "3"},
		{"--counterparty acme --limit 2", "2 3"},
		{"--counterparty nobody", ""},
		{"--since " + begin.Add(time.Minute).Format(time.RFC3339), "2 3"},
		{"--until " + fmt.Sprint(begin.Add(time.Minute).Unix()), "1"},
		{"--since 2026-11-30 --until 2026-12-01", "1 2"},
	} {
		var entries []ledger.AuditEntry
		d.json(&entries, append([]string{"audit", "log"}, strings.Fields(test.args)...)...)
		var got []string
		for _, e := range entries {
			got = append(got, fmt.Sprint(*e.ObligationID))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %v, want %s", test.args, got, test.want)
		}
	}
	wantText(t, d.ok("audit", "log", "--id", "99"), "no row matches\n")
}

func TestDetailText(t *testing.T) {
	hash := strings.Repeat("0123456789abcdef", 4)
	for raw, want := range map[string]string{
		`{"epoch":1796072400,"draft_sha256":"` + hash + `","reason":"too early"}`: "reason=too early draft_sha256=01234567 epoch=1796072400",
		`{"forced":false,"markers":[],"evidence":"","worker":"w"}`:                "worker=w",
		`{"markers":["[NEW DESTINATION]"],"n":null,"list":"[]"}`:                  `markers=["[NEW DESTINATION]"]`,
		`{}`:       "",
		`not JSON`: "not JSON",
	} {
		if got := detailText(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}

// A wait only looks, and ends when what it waits for has come, or its time is over.
func TestWait(t *testing.T) {
	d := newTestDesk(t)
	filed := d.file("Hello", "a")
	begin := d.now

	got := d.run("wait", "1", "--timeout", "10s", "--json")
	var w waited
	if err := json.Unmarshal([]byte(got.stdout), &w); err != nil || got.code != exitTryLater || w.Done || w.Status != ledger.StatusDrafted {
		t.Errorf("%+v, %+v, %v", got, w, err)
	}
	if waited := d.now.Sub(begin); waited != 10*time.Second {
		t.Errorf("waited %s", waited)
	}
	if !strings.Contains(got.stderr, `"kind":"timeout"`) {
		t.Errorf("stderr %s", got.stderr)
	}

	pauses := 0
	d.waiting = func(pause time.Duration) {
		d.now = d.now.Add(pause)
		if pauses++; pauses == 3 {
			d.ok("approve", "1", "--epoch", fmt.Sprint(filed.Epoch))
		}
	}
	d.json(&w, "wait", "1", "--until", "decided")
	if !w.Done || w.Status != ledger.StatusApproved || pauses != 3 {
		t.Errorf("%+v after %d", w, pauses)
	}
	// Approved is not done.
	if got := d.run("wait", "1", "--timeout", "0s"); got.code != exitTryLater || !strings.HasPrefix(got.stdout, "obligation  1\nstatus      approved\n") {
		t.Errorf("%+v", got)
	}
	for _, args := range [][]string{{"--until", "sent"}, {"--timeout", "-1s"}} {
		wantUsageError(t, d.run(append([]string{"wait", "1"}, args...)...))
	}
}

func TestInboxWaits(t *testing.T) {
	d := newTestDesk(t)
	filed := d.file("Hello", "a", "--agent", "billing")
	wantText(t, d.ok("inbox", "--agent", "billing"), "nothing new for agent billing\n")
	begin := d.now
	wantText(t, d.ok("inbox", "--agent", "billing", "--wait", "3s", "--json"), "[]\n")
	if waited := d.now.Sub(begin); waited != 3*time.Second {
		t.Errorf("waited %s", waited)
	}
	d.waiting = func(time.Duration) {
		d.ok("reject", "1", "--epoch", fmt.Sprint(filed.Epoch), "--reason", "no\n\x1b[2Kmore")
	}
	wantText(t, d.ok("inbox", "--agent", "billing", "--wait", "1m"), `
message 1: obligation 1, rejected, 2026-11-30T22:00:03+01:00
│ Rejected by operator-a: no
│ ⟦ESC⟧[2Kmore

read: countersign inbox --agent billing --ack 1
`)
}

// Another process writes and writes: the command gives up after the busy time-out, and nothing is changed.
func TestBusy(t *testing.T) {
	d := newTestDesk(t)
	filed := d.file("Hello", "a")
	config := strings.Replace(d.read("countersign.toml"), `#busy_timeout = "5s"`, `busy_timeout = "50ms"`, 1)
	d.variables["COUNTERSIGN_CONFIG"] = writeFile(t, strings.Replace(config, `"countersign.db"`, fmt.Sprintf("%q", d.path("countersign.db")), 1), 0o600)
	writer, err := schema.Connect(d.path("countersign.db"), schema.Write, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	tx, err := writer.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := d.run("approve", "1", "--epoch", fmt.Sprint(filed.Epoch), "--json")
	if got.code != exitTryLater || !strings.Contains(got.stderr, `"kind":"busy"`) || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	// Who only looks waits for nobody.
	d.ok("list")
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	d.ok("approve", "1", "--epoch", fmt.Sprint(filed.Epoch))
}

// A signal ends a wait at once.
func TestWaitIsInterrupted(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a")
	ctx, cancel := context.WithCancel(t.Context())
	e := d.env("wait", "1")
	e.After = func(time.Duration) <-chan time.Time { cancel(); return nil }
	if code := run(ctx, e); code != exitFailure || stdoutOf(e) != "" {
		t.Errorf("exit %d, %q", code, stdoutOf(e))
	}
}
