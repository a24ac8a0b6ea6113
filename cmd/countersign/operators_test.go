package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"countersign/ledger"
	"countersign/schema"
	"countersign/sweep"
	"countersign/transports"
	"countersign/transports/local"
)

func TestListPage(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a", "--priority", "P3")
	d.now = d.now.Add(90 * time.Minute)
	d.file("zero\u200bwidth", strings.Repeat("long", 30), "--priority", "P0", "--summary", strings.Repeat("much to say ", 12))
	wantText(t, d.ok("list", "--priority", "P3"), `
ID  EPOCH       PRI  AGE  COUNTERPARTY  DESTINATION  SUMMARY
1   1796072400  P3   1h   acme          local a      draft for acme (sha 185f8db3)

Marked:
1  [NEW DESTINATION]

countersign show ID has the whole text; approve or reject it with its epoch
`)
	// On a terminal the table fits; what the system has to say is never cut.
	e := d.env("list").terminal(60)
	if code := run(t.Context(), e); code != 0 {
		t.Fatal("exit", code)
	}
	table, rest, _ := strings.Cut(stdoutOf(e), "\n\n")
	for line := range strings.Lines(table) {
		if width := runewidth.StringWidth(strings.TrimSuffix(line, "\n")); width > 60 {
			t.Errorf("%d columns: %s", width, line)
		}
	}
	if !strings.HasPrefix(rest, "Marked:\n2  [HIDDEN TEXT: text has 1 zero-width] [NEW DESTINATION]\n1  [NEW DESTINATION]\n") {
		t.Errorf("got\n%s", rest)
	}
	// Elsewhere nothing is cut.
	if got := d.ok("list"); !strings.Contains(got, "much to say much to say (sha") {
		t.Errorf("got\n%s", got)
	}
}

func TestAge(t *testing.T) {
	now := time.Unix(10_000_000, 0)
	for ago, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", time.Hour - time.Second: "59m", time.Hour: "1h", 47 * time.Hour: "47h", 48 * time.Hour: "2d",
	} {
		if got := age(now, now.Add(-ago).Unix()); got != want {
			t.Errorf("%s: %s, want %s", ago, got, want)
		}
	}
}

func TestDiffOfDestinationAndSubject(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a", "--subject", "-")
	second := d.file("Hello", "a", "--thread", "7")
	want := fmt.Sprintf(`
obligation 1: from epoch 1796072400 to epoch %d

thread was  -
thread is   7

subject was  -
subject is   -
`, second.Epoch)
	wantText(t, d.ok("diff", "1"), want)
	var found compared
	d.json(&found, "diff", "1")
	if len(found.Changes) != 2 || found.Changes[0].From != nil || *found.Changes[0].To != "7" || *found.Changes[1].From != "-" || found.Changes[1].To != nil {
		t.Errorf("%+v", found)
	}
	third := d.file("Hello", "a", "--thread", "7")
	wantText(t, d.ok("diff", "1"), fmt.Sprintf("obligation 1: from epoch %d to epoch %d\ndestination, subject and text are the same\n", second.Epoch, third.Epoch))

	// The epoch that counts is another one once an approval was taken back.
	d.ok("approve", "1", "--epoch", fmt.Sprint(third.Epoch))
	d.ok("revoke", "1", "--reason", "wait")
	d.json(&found, "diff", "1")
	if found.Epoch <= third.Epoch || found.ToEpoch != third.Epoch || len(found.Changes) > 0 {
		t.Errorf("%+v", found)
	}
	if got := d.ok("diff", "1"); !strings.HasSuffix(got, fmt.Sprintf("the epoch is %d now: an approval of this filing was taken back\n", found.Epoch)) {
		t.Errorf("got\n%s", got)
	}
}

// A decision's reason is somebody's text, like a draft.
func TestShowDecision(t *testing.T) {
	d := newTestDesk(t)
	filed := d.file("Hello", "a")
	d.ok("reject", "1", "--epoch", fmt.Sprint(filed.Epoch), "--reason", "no\x1b[2K\nstatus        approved")
	got := d.ok("show", "1")
	if !strings.Contains(got, `
Decision 1:
decision  reject
operator  operator-a
epoch     1796072400
decided   2026-11-30T22:00:00+01:00
reason    no⟦ESC⟧[2K⟦LF⟧status        approved
`) {
		t.Errorf("got\n%s", got)
	}
	if strings.ContainsRune(got, '\x1b') || strings.Contains(got, "to decide:") {
		t.Errorf("got\n%s", got)
	}
}

// A stopped worker holds its lock, so that nothing is taken from it, until an operator says that it won't go on.
func TestTakeOver(t *testing.T) {
	d := newTestDesk(t)
	filed := d.file("Hello", "a")
	d.ok("approve", "1", "--epoch", fmt.Sprint(filed.Epoch))
	l := d.ledger()
	outbox, err := local.New(local.Config{Dir: d.path("outbox")})
	if err != nil {
		t.Fatal(err)
	}
	worker := sweep.New(l, sweep.Fixed(map[string]transports.Transport{"local": outbox}))
	stopped, goOn, ended := make(chan string), make(chan struct{}), make(chan error)
	go func() {
		_, err := worker.Deliver(t.Context(), sweep.Options{Step: func(s sweep.Step, _ sweep.Item) {
			if s == sweep.AfterClaim {
				held, err := l.Claims(t.Context())
				if err != nil || len(held) != 1 {
					panic(fmt.Sprint(held, err))
				}
				stopped <- held[0].Worker
				<-goOn
			}
		}})
		ended <- err
	}()
	name := <-stopped
	var found sweep.Recovered
	d.json(&found, "recover")
	if len(found.Adoptable) != 0 {
		t.Errorf("%+v", found)
	}
	d.json(&found, "recover", "--take-over", name)
	if len(found.Adoptable) != 1 {
		t.Errorf("%+v", found)
	}
	if got := d.run("recover", "--take-over", name); got.code != exitUsage || !strings.Contains(got.stderr, "there is no worker") {
		t.Errorf("%+v", got)
	}
	close(goOn)
	if err := <-ended; err == nil {
		t.Error("the stopped worker went on")
	}
	if _, err := os.Stat(filepath.Join(d.dir, "outbox", "messages.jsonl")); err == nil {
		t.Error("the stopped worker has sent")
	}
	if got := d.ok("audit", "log", "--actor", "operator-a"); !strings.Contains(got, "declared_dead") {
		t.Errorf("got\n%s", got)
	}
}

func TestOutcomeOfAPass(t *testing.T) {
	one := []sweep.Item{{ObligationID: 1}}
	busy := fmt.Errorf("deliver: %w", ledger.ErrBusy)
	for _, test := range []struct {
		name   string
		report sweep.Report
		err    error
		want   int
	}{
		{"nothing to do", sweep.Report{}, nil, 0},
		{"all delivered", sweep.Report{Delivered: one}, nil, 0},
		{"another worker has it", sweep.Report{Skipped: one}, nil, 0},
		{"refused", sweep.Report{Refused: one, Delivered: one}, nil, exitUnknown},
		{"ambiguous", sweep.Report{Ambiguous: one}, nil, exitUnknown},
		{"nothing could be prepared", sweep.Report{NotPrepared: one, Skipped: one}, nil, exitTryLater},
		{"something was delivered", sweep.Report{NotPrepared: one, Delivered: one}, nil, 0},
		{"busy", sweep.Report{Delivered: one}, busy, exitTryLater},
		{"unknown wins over not prepared", sweep.Report{NotPrepared: one, Ambiguous: one}, nil, exitUnknown},
		{"unknown wins over busy", sweep.Report{Ambiguous: one}, busy, exitUnknown},
		{"unknown wins over a full disk", sweep.Report{Ambiguous: one}, &ledger.FullError{}, exitUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := testEnv()
			if got := newApp(e).report(outcomeOf(test.report, test.err)); got != test.want {
				t.Errorf("exit %d, want %d", got, test.want)
			}
		})
	}
}

// A pass under cron has something to say only where something is wrong.
func TestWhatAPassSays(t *testing.T) {
	report := sweep.Report{
		Delivered:   []sweep.Item{{ObligationID: 1, DecisionID: 2, Platform: "smtp", Channel: "a@example.com", Coordinate: "250 ok", Altered: true}},
		Skipped:     []sweep.Item{{ObligationID: 3, DecisionID: 4, Platform: "smtp", Channel: "b@example.com", Error: "another worker has it"}},
		NotPrepared: []sweep.Item{{ObligationID: 5, DecisionID: 6, Platform: "smtp", Channel: "c@example.com", Error: "450 \x1b[2Klater"}},
		Ambiguous:   []sweep.Item{{Error: "spooled receipt x is not believed"}},
		Interrupted: true,
	}
	trouble := `
ambiguous: spooled receipt x is not believed
not prepared: obligation 5, decision 6, smtp c@example.com: 450 ⟦ESC⟧[2Klater
`
	all := `
delivered: obligation 1, decision 2, smtp a@example.com, as 250 ok, altered by the provider
skipped: obligation 3, decision 4, smtp b@example.com: another worker has it` + trouble +
		"delivered 1, refused 0, ambiguous 1, not prepared 1, skipped 1; ended early, what is left waits for the next pass\n"
	for _, test := range []struct {
		name  string
		width int
		want  string
	}{{"cron", 0, trouble}, {"terminal", 80, all}} {
		t.Run(test.name, func(t *testing.T) {
			e := testEnv("tell").terminal(test.width)
			if err := newApp(e).tellDelivered(false, false, report); err != nil {
				t.Fatal(err)
			}
			wantText(t, stdoutOf(e), test.want)
		})
	}
	e := testEnv("tell")
	if err := newApp(e).tellDelivered(false, false, sweep.Report{Delivered: report.Delivered, Skipped: report.Skipped}); err != nil || stdoutOf(e) != "" {
		t.Errorf("%q, %v", stdoutOf(e), err)
	}
}

func TestClaimsPage(t *testing.T) {
	now := time.Unix(1_796_072_400, 0)
	held := []ledger.HeldClaim{{
		ObligationID: 431, DecisionID: 9, State: ledger.ClaimUnknown, Outcome: ledger.Refused, Stage: "rcpt", Detail: "550 \x1b[2Kno\nsuch user", Worker: "w-0123456789ab",
		Key: "0123456789abcdef0123456789abcdef", UpdatedTS: now.Add(-time.Hour).Unix(),
	}}
	got := testPage(defaultWidth, func(p *page) { showClaims(p, held, now) })
	wantText(t, got, `
ID   STATE    OUTCOME  SETTLED  AGE  WORKER          KEY
431  unknown  refused  no       1h   w-0123456789ab  0123456789abcdef0123456789abcdef

Details:
431  rcpt: 550 ⟦ESC⟧[2Kno⟦LF⟧such user

Find out whether what is unknown arrived, then
it did:      countersign reconcile ID --coordinate WHERE --evidence TEXT
it did not:  countersign settle ID --evidence TEXT
`)
	held[0].Settled = true
	if got := testPage(defaultWidth, func(p *page) { showClaims(p, held, now) }); strings.Contains(got, "Find out") {
		t.Errorf("got\n%s", got)
	}
}

// The guards of a ledger that somebody tampered with are missed before it is used, and db check tells which.
func TestCheckOfATamperedLedger(t *testing.T) {
	d := newTestDesk(t)
	d.file("Hello", "a")
	db, err := schema.Connect(d.path("countersign.db"), schema.Write, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "DROP TRIGGER guard_obligations_insert"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	got := d.run("db", "check", "--json")
	var found ledger.Checked
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil || got.code != exitFailure || found.OK || len(found.Problems) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.Contains(got.stderr, `"kind":"check_failed"`) {
		t.Errorf("stderr %s", got.stderr)
	}
	if got := d.run("list"); got.code != exitFailure || !strings.Contains(got.stderr, "guard") {
		t.Errorf("%+v", got)
	}
	if got := d.run("db", "upgrade"); got.code != 0 || !strings.Contains(got.stdout, "guards restored\n  trigger guard_obligations_insert, missing\n") ||
		!strings.Contains(got.stdout, "what it was before is in ") {
		t.Errorf("%+v", got)
	}
	if got := d.run("db", "check"); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

// Whoever reads along, in a log or in the ledger's files, doesn't learn the token, right or wrong.
func TestTokenIsNeverTold(t *testing.T) {
	d := newTestDesk(t)
	right := d.variables[operatorTokenEnv]
	const wrong = "cs_op_a-token-of-another-desk"
	var said strings.Builder
	filed := d.file("Hello", "a")
	for _, token := range []string{wrong, right} {
		d.variables[operatorTokenEnv] = token
		for _, args := range [][]string{
			{"steer", "1", "--note", "x", "-v"}, {"approve", "1", "--epoch", fmt.Sprint(filed.Epoch), "-v", "--json"},
			{"revoke", "1", "--reason", "x"}, {"recover", "--take-over", "w-000000000000", "-v"}, {"show", "1", "--json"}, {"audit", "log", "--json"},
		} {
			got := d.run(args...)
			said.WriteString(got.stdout + got.stderr)
		}
	}
	files, err := filepath.Glob(d.path("*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() || strings.HasSuffix(file, ".token") {
			continue
		}
		said.WriteString(d.read(filepath.Base(file)))
	}
	for _, token := range []string{wrong, right, strings.TrimPrefix(right, "cs_op_")} {
		if strings.Contains(said.String(), token) {
			t.Errorf("%q was told", token)
		}
	}
}
