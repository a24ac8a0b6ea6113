package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

func hooked(o *ledger.Options) { o.Hook = true }

// due is what is to be handed over now, as "agent kind/failures", in order.
func (d *desk) due(limit int) string {
	d.t.Helper()
	due, err := d.HookDue(d.t.Context(), limit)
	must(d.t, err)
	var out []string
	for _, f := range due {
		out = append(out, fmt.Sprintf("%s %s/%d", f.Agent, f.Kind, f.Failures))
	}
	return strings.Join(out, ", ")
}

// steered brings the desk's agent a follow-up.
func (d *desk) steered(filed ledger.Filed, note string) int64 {
	d.t.Helper()
	must(d.t, second(d.Steer(d.t.Context(), d.anna, filed.ObligationID, note)))
	return int64(d.count(`SELECT max(id) FROM followups`))
}

// fileFor files for a counterparty of the agent's own.
func (d *desk) fileFor(agent string) ledger.Filed {
	d.agent, d.party, d.channel = agent, "for "+agent, agent+"@acme.example"
	return d.file(d.filing("hello"))
}

func TestAFollowUpWaitsForTheHookUntilItIsTaken(t *testing.T) {
	d := newDesk(t, hooked)
	filed := d.file(filing("hello"))
	d.tick(time.Minute)
	id := d.steered(filed, "shorter")
	due, err := d.HookDue(t.Context(), 10)
	must(t, err)
	want := ledger.FollowUpDue{Agent: "quoter", FollowUp: ledger.FollowUp{ID: id, ObligationID: filed.ObligationID, Kind: "steered", CreatedTS: d.now.Unix()}}
	if len(due) != 1 || !strings.Contains(due[0].Body, "shorter") {
		t.Fatalf("due: %+v", due)
	}
	want.Body = due[0].Body
	if due[0] != want {
		t.Errorf("due: %+v, want %+v", due[0], want)
	}
	for range 2 {
		must(t, d.HookTaken(t.Context(), id))
		must(t, d.HookFailed(t.Context(), id, func(int) time.Duration { return 0 }, "a pass that comes late"))
	}
	if n := d.count(`SELECT count(*) FROM hook_queue`); n != 0 || d.due(10) != "" {
		t.Errorf("%d rows are left, due: %s", n, d.due(10))
	}
	inbox, err := d.Inbox(t.Context(), "quoter")
	must(t, err)
	if len(inbox) != 1 || inbox[0] != want.FollowUp {
		t.Errorf("inbox: %+v", inbox)
	}
}

func TestWithoutAHookNothingWaitsForIt(t *testing.T) {
	d := newDesk(t)
	d.steered(d.file(filing("hello")), "shorter")
	if n := d.count(`SELECT count(*) FROM hook_queue`); n != 0 || d.due(10) != "" {
		t.Errorf("%d rows, due: %s", n, d.due(10))
	}
}

func TestAFailedFollowUpIsLeftAloneForAWhile(t *testing.T) {
	d := newDesk(t, hooked)
	filed := d.file(filing("hello"))
	first := d.steered(filed, "one")
	var asked []int
	wait := func(failures int) time.Duration {
		asked = append(asked, failures)
		return time.Duration(failures) * time.Minute
	}
	must(t, d.HookFailed(t.Context(), first, wait, "status 503"))
	if n := d.count(`SELECT count(*) FROM hook_queue WHERE followup_id = $1 AND failures = 1 AND retry_us = $2 AND error = 'status 503'`,
		first, d.now.Add(time.Minute).UnixMicro()); n != 1 || d.due(10) != "" {
		t.Errorf("%d rows; due: %s", n, d.due(10))
	}
	d.tick(time.Minute - time.Microsecond)
	d.steered(filed, "two")
	if got := d.due(10); got != "quoter steered/0" {
		t.Errorf("due: %s", got)
	}
	d.tick(time.Microsecond)
	if got := d.due(10); got != "quoter steered/1, quoter steered/0" {
		t.Errorf("due: %s", got)
	}
	must(t, d.HookFailed(t.Context(), first, wait, "status 500"))
	d.tick(2 * time.Minute)
	if got := d.due(10); got != "quoter steered/2, quoter steered/0" || fmt.Sprint(asked) != "[1 2]" {
		t.Errorf("due: %s; asked for %v", got, asked)
	}
}

// A clock that ran wild when an attempt failed kept the follow-up back for years.
func TestABackOffOfYearsIsNotBelieved(t *testing.T) {
	d := newDesk(t, hooked)
	id := d.steered(d.file(filing("hello")), "one")
	d.tick(100_000 * time.Hour)
	must(t, d.HookFailed(t.Context(), id, func(int) time.Duration { return time.Minute }, "x"))
	d.tick(-100_000 * time.Hour)
	if got := d.due(10); got != "quoter steered/1" {
		t.Errorf("due: %s", got)
	}
}

// A clock that was put back kept what was new waiting until it had caught up.
func TestWhatNeverFailedIsDueAtOnce(t *testing.T) {
	d := newDesk(t, hooked)
	d.steered(d.file(filing("hello")), "one")
	d.tick(-time.Hour)
	if got := d.due(10); got != "quoter steered/0" {
		t.Errorf("due: %s", got)
	}
}

// An agent with a long queue that failed again and again kept the others' waiting behind it.
func TestAgentsTakeTurns(t *testing.T) {
	d := newDesk(t, hooked)
	busy := d.fileFor("busy")
	for range 5 {
		d.steered(busy, "again")
	}
	d.steered(d.fileFor("quiet"), "once")
	if got := d.due(3); got != "busy steered/0, quiet steered/0, busy steered/0" {
		t.Errorf("due: %s", got)
	}
}

func TestEveryKindOfFollowUpReachesTheHook(t *testing.T) {
	d := newDesk(t, hooked)
	v := d.approved("hello")
	c := d.claim(v)
	d.begin(c)
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	if got := d.due(10); got != "quoter approved/0, quoter sent/0" {
		t.Errorf("due: %s", got)
	}
	if queued, told := d.count(`SELECT count(*) FROM hook_queue`), d.count(`SELECT count(*) FROM followups`); queued != told {
		t.Errorf("%d wait for the hook, %d were written", queued, told)
	}
}
