package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

// stepsOfAStory are the steps of the contract, each on what the earlier part of its entry prepared, with the audit rows that it writes:
// event, source and actor.
func stepsOfAStory() map[string]struct {
	prepare func(d *desk) any
	step    func(d *desk, on any) error
	writes  []string
} {
	type entry = struct {
		prepare func(d *desk) any
		step    func(d *desk, on any) error
		writes  []string
	}
	drafted := func(d *desk) any { return d.file(d.filing("one")) }
	approved := func(d *desk) any { return d.approved("one") }
	claimed := func(d *desk) any { return d.claim(d.approved("one")) }
	dispatching := func(d *desk) any { c := d.claim(d.approved("one")); d.begin(c); return c }
	unknown := func(d *desk) any { return d.unknown("one") }
	decide := func(verdict ledger.Verdict) func(d *desk, on any) error {
		return func(d *desk, on any) error {
			filed := on.(ledger.Filed)
			return second(d.Decide(d.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: verdict, Operator: d.anna, Reason: "r"}))
		}
	}
	revoke := func(reject bool) func(d *desk, on any) error {
		return func(d *desk, on any) error {
			return second(d.Revoke(d.t.Context(), ledger.Revocation{ObligationID: on.(ledger.Decided).ObligationID, Operator: d.anna, Reason: "r", Reject: reject}))
		}
	}
	return map[string]entry{
		"file": {func(d *desk) any { return d.clean(d.filing("one")) }, func(d *desk, on any) error {
			return second(d.File(d.t.Context(), on.(ledger.Draft), ledger.Gates{}))
		}, []string{"staged filing quoter"}},
		"refile": {func(d *desk) any { d.file(d.filing("one")); return d.clean(d.filing("two")) }, func(d *desk, on any) error {
			return second(d.File(d.t.Context(), on.(ledger.Draft), ledger.Gates{}))
		}, []string{"staged filing quoter"}},
		"approve":        {drafted, decide(ledger.Approve), []string{"approved approval anna"}},
		"reject":         {drafted, decide(ledger.Reject), []string{"rejected approval anna"}},
		"revoke":         {approved, revoke(false), []string{"revoked approval anna"}},
		"revoke, reject": {approved, revoke(true), []string{"revoked approval anna", "rejected approval anna"}},
		"steer": {drafted, func(d *desk, on any) error {
			return second(d.Steer(d.t.Context(), d.anna, on.(ledger.Filed).ObligationID, "shorter"))
		}, []string{"steered approval anna"}},
		"withdraw": {drafted, func(d *desk, on any) error {
			return second(d.Withdraw(d.t.Context(), "quoter", on.(ledger.Filed).ObligationID, on.(ledger.Filed).Epoch))
		}, []string{"withdrawn filing quoter"}},
		"close": {drafted, func(d *desk, on any) error {
			return second(d.CloseByHand(d.t.Context(), d.anna, on.(ledger.Filed).ObligationID, "r"))
		}, []string{"closed approval anna"}},
		"claim": {approved, func(d *desk, on any) error {
			return second(d.Claim(d.t.Context(), on.(ledger.Decided).DecisionID, "w1"))
		}, []string{"claimed delivery w1"}},
		"expire": {func(d *desk) any { v := d.approved("one"); d.tick(3 * time.Hour); return v }, func(d *desk, on any) error {
			err := second(d.Claim(d.t.Context(), on.(ledger.Decided).DecisionID, "w1"))
			if is[*ledger.GuardError](err) || !is[*ledger.ExpiredError](err) {
				return fmt.Errorf("not taken out: %w", err)
			}
			return nil
		}, []string{"expired approval countersign"}},
		"adopt": {claimed, func(d *desk, on any) error {
			return second(d.Adopt(d.t.Context(), on.(ledger.Claim).DecisionID, "w1", "w2"))
		}, []string{"adopted delivery w2"}},
		"cancel": {claimed, func(d *desk, on any) error { return d.Cancel(d.t.Context(), on.(ledger.Claim), "r") }, []string{"cancelled approval w1"}},
		"cancel by an operator": {claimed, func(d *desk, on any) error {
			return second(d.CancelByOperator(d.t.Context(), d.anna, on.(ledger.Claim).ObligationID, "r"))
		}, []string{"cancelled approval anna"}},
		"begin": {claimed, func(d *desk, on any) error { return second(d.BeginDispatch(d.t.Context(), on.(ledger.Claim))) }, []string{"dispatching delivery w1"}},
		"complete": {dispatching, func(d *desk, on any) error {
			return d.Complete(d.t.Context(), on.(ledger.Claim), ledger.Receipt{Coordinate: "c", Altered: true})
		}, []string{"delivered delivery w1"}},
		"mark unknown": {dispatching, func(d *desk, on any) error {
			return d.MarkUnknown(d.t.Context(), on.(ledger.Claim), ledger.Failure{Outcome: ledger.Refused, Stage: "rcpt", Code: "550"})
		}, []string{"unknown delivery w1"}},
		"mark dead": {dispatching, func(d *desk, on any) error {
			return d.MarkDead(d.t.Context(), on.(ledger.Claim).DecisionID, "w1", "w2")
		}, []string{"unknown delivery w2"}},
		"confirm a spooled receipt": {dispatching, func(d *desk, on any) error {
			c := on.(ledger.Claim)
			return d.ConfirmSpooled(d.t.Context(), c.DecisionID, "w2", ledger.Receipt{Coordinate: "c"}, func(token string) bool { return token == c.Token })
		}, []string{"delivered delivery w2"}},
		"confirm a spooled receipt of an unknown": {unknown, func(d *desk, on any) error {
			return d.ConfirmSpooled(d.t.Context(), on.(ledger.Decided).DecisionID, "w2", ledger.Receipt{Coordinate: "c"}, func(string) bool { return true })
		}, []string{"reconciled delivery w2"}},
		"reconcile": {unknown, func(d *desk, on any) error {
			return second(d.Reconcile(d.t.Context(), d.anna, on.(ledger.Decided).ObligationID, "c", "e"))
		}, []string{"reconciled delivery anna"}},
		"settle": {unknown, func(d *desk, on any) error {
			return second(d.Settle(d.t.Context(), d.anna, on.(ledger.Decided).ObligationID, "e"))
		}, []string{"settled delivery anna"}},
		"declare dead": {func(d *desk) any { return nil }, func(d *desk, on any) error {
			return d.DeclareDead(d.t.Context(), d.anna, "w1")
		}, []string{"declared_dead delivery anna"}},
	}
}

func TestEveryStepWritesItsAuditRow(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	for name, entry := range stepsOfAStory() {
		d.party = name
		on := entry.prepare(d)
		before := len(d.audit(ledger.AuditFilter{}))
		d.tick(1234567 * time.Microsecond)
		must(t, entry.step(d, on))
		var written []string
		for _, e := range d.audit(ledger.AuditFilter{})[before:] {
			written = append(written, e.Event+" "+e.Source+" "+e.Actor)
			if e.AtUS != d.now.UnixMicro() {
				t.Errorf("%s: %s at %d, want %d", name, e.Event, e.AtUS, d.now.UnixMicro())
			}
			if e.ObligationID == nil && name != "declare dead" {
				t.Errorf("%s: %s names no obligation", name, e.Event)
			}
		}
		if !slices.Equal(written, entry.writes) {
			t.Errorf("%s wrote %q, want %q", name, written, entry.writes)
		}
	}
}

func (d *desk) audit(f ledger.AuditFilter) []ledger.AuditEntry {
	d.t.Helper()
	entries, err := d.Audit(d.t.Context(), f)
	must(d.t, err)
	return entries
}

// Step and audit row are one transaction: where the row can't be written, the step did not happen.
func TestNoStepHappensWithoutItsAuditRow(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	must(t, second(d.plain().Exec(`CREATE TABLE shut (why TEXT); CREATE TRIGGER no_audit BEFORE INSERT ON audit_log
		WHEN EXISTS (SELECT 1 FROM shut) BEGIN SELECT RAISE(ABORT, 'the log is shut'); END`)))
	for name, entry := range stepsOfAStory() {
		d.party = name
		on := entry.prepare(d)
		must(t, second(d.plain().Exec(`INSERT INTO shut VALUES ('a test')`)))
		before := d.everything()
		if err := entry.step(d, on); !is[*ledger.GuardError](err) {
			t.Errorf("%s: got %v", name, err)
		}
		if after := d.everything(); after != before {
			t.Errorf("%s: before\n%s\nafter\n%s", name, before, after)
		}
		must(t, second(d.plain().Exec(`DELETE FROM shut`)))
	}
}

// everything is the content of all tables.
func (d *desk) everything() string {
	d.t.Helper()
	db := d.plain()
	names, err := db.Query(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`)
	must(d.t, err)
	defer names.Close()
	var out strings.Builder
	for names.Next() {
		var name, columns, row string
		must(d.t, names.Scan(&name))
		must(d.t, db.QueryRow(`SELECT group_concat('quote("' || name || '")', '||'',''||') FROM pragma_table_info($1)`, name).Scan(&columns))
		rows, err := db.Query(`SELECT ` + columns + ` FROM ` + name + ` ORDER BY 1`)
		must(d.t, err)
		for rows.Next() {
			must(d.t, rows.Scan(&row))
			fmt.Fprintln(&out, name, row)
		}
		must(d.t, rows.Err())
		rows.Close()
	}
	must(d.t, names.Err())
	return out.String()
}

func TestARefusalIsRecordedAlthoughItsWorkWasRolledBack(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	before := len(d.audit(ledger.AuditFilter{}))
	for _, refused := range []struct {
		step                 string
		do                   func() error
		actor                string
		obligation, decision int64
	}{
		{"file", func() error { return second(d.File(t.Context(), d.clean(d.filing("two")), ledger.Gates{})) }, "quoter", 0, 0},
		{"approve", func() error {
			return second(d.Decide(t.Context(), ledger.Decision{ObligationID: v.ObligationID, Epoch: 1, Verdict: ledger.Approve, Operator: d.ben}))
		}, "ben", v.ObligationID, 0},
		{"reject", func() error {
			return second(d.Decide(t.Context(), ledger.Decision{ObligationID: 77, Epoch: 1, Verdict: ledger.Reject, Operator: d.ben, Reason: "r"}))
		}, "ben", 0, 0},
		{"claim", func() error { return second(d.Claim(t.Context(), v.DecisionID, "w2")) }, "w2", v.ObligationID, v.DecisionID},
		{"complete", func() error { return d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}) }, "w1", v.ObligationID, v.DecisionID},
		{"withdraw", func() error { return second(d.Withdraw(t.Context(), "thief", v.ObligationID, v.Epoch)) }, "thief", v.ObligationID, 0},
		{"acknowledge", func() error { return d.Acknowledge(t.Context(), "thief", []int64{1}) }, "thief", 0, 0},
		{"settle", func() error { return second(d.Settle(t.Context(), d.anna, v.ObligationID, "e")) }, "anna", v.ObligationID, 0},
	} {
		if refused.do() == nil {
			t.Fatalf("%s was not refused", refused.step)
		}
		entries := d.audit(ledger.AuditFilter{})
		e := entries[len(entries)-1]
		before++
		if len(entries) != before || e.Event != "refused" || e.Source != "refusal" || e.Actor != refused.actor || orZero(e.ObligationID) != refused.obligation ||
			orZero(e.DecisionID) != refused.decision || !strings.Contains(string(e.Detail), `"step":"`+refused.step+`"`) {
			t.Errorf("%s: %s by %s, obligation %d, decision %d: %s", refused.step, e.Event, e.Actor, orZero(e.ObligationID), orZero(e.DecisionID), e.Detail)
		}
	}
	if got := d.show(v.ObligationID); got.Claim.State != ledger.ClaimClaimed || got.Status != ledger.StatusApproved {
		t.Errorf("%+v", got.Listed)
	}
}

func orZero(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

// A worker comes every minute: the same refusal of the same approval is written down once, until something else happens to it.
func TestTheSameRefusalOfAPassIsKeptOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.unknown("one")
	claim := func() {
		for range 5 {
			d.tick(time.Minute)
			_, err := d.Claim(t.Context(), v.DecisionID, "w2")
			want[*ledger.HeldError](t, err)
		}
	}
	refusals := func() int { return d.count(`SELECT count(*) FROM audit_log WHERE event = 'refused'`) }
	claim()
	if n := refusals(); n != 1 {
		t.Errorf("%d refusals", n)
	}
	must(t, second(d.Settle(t.Context(), d.anna, v.ObligationID, "e")))
	claim()
	if n := refusals(); n != 2 {
		t.Errorf("%d refusals after a settlement", n)
	}
}

func TestTheAuditLogIsFiltered(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	d.tick(time.Hour)
	f := d.filing("two")
	f.Counterparty, f.Agent = "zenith", "other"
	d.file(f)
	must(t, d.RecordRefusal(t.Context(), "file", "third", 0, errors.New("no")))
	start := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		filter ledger.AuditFilter
		events string
	}{
		"all":             {ledger.AuditFilter{}, "staged approved staged refused"},
		"an obligation":   {ledger.AuditFilter{ObligationID: v.ObligationID}, "staged approved"},
		"an actor":        {ledger.AuditFilter{Actor: "anna"}, "approved"},
		"a counterparty":  {ledger.AuditFilter{Counterparty: "zenith"}, "staged"},
		"since":           {ledger.AuditFilter{Since: start.Add(time.Second)}, "staged refused"},
		"until":           {ledger.AuditFilter{Until: start}, "staged approved"},
		"the newest two":  {ledger.AuditFilter{Limit: 2}, "staged refused"},
		"several at once": {ledger.AuditFilter{Counterparty: "acme", Actor: "quoter", Since: start, Until: start, Limit: 9}, "staged"},
		"nobody":          {ledger.AuditFilter{Actor: "nobody"}, ""},
	} {
		var events []string
		for _, e := range d.audit(test.filter) {
			events = append(events, e.Event)
		}
		if got := strings.Join(events, " "); got != test.events {
			t.Errorf("%s: %q, want %q", name, got, test.events)
		}
	}
}
