package ledger_test

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"hash"
	"net/url"
	"slices"
	"strings"

	"countersign/ledger"
)

// rawSide looks at the ledger's file with SQL of its own, as an auditor with another program would.
type rawSide struct {
	db                         *sql.DB
	states, broken, moved, log *sql.Stmt
	history                    map[string]*sql.Stmt
	sums                       map[string]prefix
	claims                     map[int64]rawClaim
	epochs                     map[int64]rawObligation
	audited                    int64
}

type prefix struct {
	rows int
	sum  string
}

type rawClaim struct{ state, token, evidence string }

type rawObligation struct {
	epoch  int64
	status string
}

// The state of a ledger, one line a fact.
const mStates = `
	SELECT 'obligation ' || id || ' ' || status || ' at ' || updated_at || ' ' || counterparty || ' ' || source || ' ' || channel FROM obligations
	UNION ALL SELECT 'draft ' || d.obligation_id || ' ' || d.draft_sha256 ||
		CASE o.status WHEN 'drafted' THEN ' until ' || coalesce(d.auto_send_after, 0) ELSE '' END
		FROM obligation_drafts d JOIN obligations o ON o.id = d.obligation_id
	UNION ALL SELECT 'filing ' || obligation_id || ' at ' || epoch || ' by ' || agent || ' ' || envelope_sha256 FROM filings
	UNION ALL SELECT 'decision ' || id || ' ' || decision || ' ' || obligation_id || ' by ' || operator || ' at ' || draft_updated_ts ||
		' on ' || decided_ts FROM obligation_decisions
	UNION ALL SELECT 'snapshot ' || decision_id || ' ' || draft_epoch || ' ' || draft_sha256 || ' ' || draft_text FROM obligation_approval_snapshots
	UNION ALL SELECT 'envelope ' || decision_id || ' ' || envelope_sha256 FROM approval_envelopes
	UNION ALL SELECT 'voided ' || decision_id || ' ' || kind || ' by ' || actor FROM voided_approvals
	UNION ALL SELECT 'claim ' || c.decision_id || ' ' || c.state || ' by ' || h.worker || ' in generation ' || h.generation ||
		CASE WHEN c.reconciliation_evidence IS NULL THEN '' ELSE ' with evidence' END
		FROM obligation_delivery_claims c JOIN claim_holders h ON h.decision_id = c.decision_id
	UNION ALL SELECT 'receipt ' || obligation_id || ' ' || coalesce(decision_id, 0) || ' ' || kind ||
		CASE kind WHEN 'draft_sent' THEN ' ' || coordinate ELSE '' END FROM obligation_deliveries
	UNION ALL SELECT 'settled ' || decision_id || ' by ' || operator FROM settlements
	UNION ALL SELECT 'attempt ' || decision_id || ' ' || outcome FROM delivery_attempts
	UNION ALL SELECT 'notice ' || obligation_id || ' ' || kind FROM notices
	UNION ALL SELECT 'told ' || agent || ' ' || obligation_id || ' ' || kind || CASE WHEN acked_us IS NULL THEN '' ELSE ' acked' END FROM followups`

// mBroken has a row for each broken promise. Nothing in it knows the model.
const mBroken = `
	SELECT 'two active claims on obligation ' || obligation_id FROM obligation_delivery_claims
		WHERE state IN ('claimed', 'dispatching', 'unknown') GROUP BY obligation_id HAVING count(*) > 1
	UNION ALL SELECT 'decision ' || decision_id || ' began dispatch ' || count(*) || ' times' FROM audit_log
		WHERE event = 'dispatching' GROUP BY decision_id HAVING count(*) > 1
	UNION ALL SELECT 'a claim went on without its begin: decision ' || decision_id FROM obligation_delivery_claims c
		WHERE state IN ('dispatching', 'delivered', 'unknown')
			AND NOT EXISTS (SELECT 1 FROM audit_log a WHERE a.decision_id = c.decision_id AND a.event = 'dispatching')
	UNION ALL SELECT 'obligation ' || id || ' is ' || status || ', and receipt and claim say otherwise' FROM obligations o
		WHERE (status = 'sent') <> EXISTS (SELECT 1 FROM obligation_deliveries d WHERE d.obligation_id = o.id AND d.kind = 'draft_sent')
			OR (status = 'sent') <> EXISTS (SELECT 1 FROM obligation_delivery_claims c WHERE c.obligation_id = o.id AND c.state = 'delivered')
	UNION ALL SELECT 'two drafts of ' || counterparty || ' in ' || channel FROM obligations
		WHERE status = 'drafted' GROUP BY counterparty, channel HAVING count(*) > 1
	UNION ALL SELECT 'filing ' || b.id || ' did not advance the epoch' FROM filings a JOIN filings b ON b.obligation_id = a.obligation_id AND b.id > a.id
		WHERE b.epoch <= a.epoch
	UNION ALL SELECT 'taking back decision ' || v.decision_id || ' did not advance the epoch' FROM voided_approvals v
		JOIN obligation_decisions d ON d.id = v.decision_id JOIN obligations o ON o.id = d.obligation_id WHERE o.updated_at <= d.draft_updated_ts
	UNION ALL SELECT 'obligation ' || id || ' is a dead end: approved, and neither held nor claimable' FROM obligations o
		WHERE status = 'approved'
			AND NOT EXISTS (SELECT 1 FROM obligation_delivery_claims c WHERE c.obligation_id = o.id AND c.state IN ('claimed', 'dispatching', 'unknown'))
			AND NOT EXISTS (SELECT 1 FROM obligation_approval_snapshots s WHERE s.obligation_id = o.id AND s.draft_epoch = o.updated_at
				AND NOT EXISTS (SELECT 1 FROM voided_approvals v WHERE v.decision_id = s.decision_id)
				AND NOT EXISTS (SELECT 1 FROM obligation_delivery_claims c WHERE c.decision_id = s.decision_id))
	UNION ALL SELECT 'obligation ' || id || ' is held and ' || status FROM obligations o
		WHERE status <> 'approved' AND EXISTS (SELECT 1 FROM obligation_delivery_claims c
			WHERE c.obligation_id = o.id AND c.state IN ('claimed', 'dispatching', 'unknown'))
	UNION ALL SELECT 'a claim on a voided approval: decision ' || c.decision_id FROM obligation_delivery_claims c
		JOIN voided_approvals v ON v.decision_id = c.decision_id WHERE c.state <> 'cancelled'
	UNION ALL SELECT 'the audit log has a gap' WHERE (SELECT count(*) FROM audit_log) <> (SELECT coalesce(max(id), 0) FROM audit_log)`

const mMoved = `
	SELECT 'claim', decision_id, state, token, coalesce(reconciliation_evidence, ''), 0 FROM obligation_delivery_claims
	UNION ALL SELECT 'obligation', id, status, '', '', updated_at FROM obligations`

// histories never change: a later look begins with the earlier one. The first three are looked at after every step.
var histories = []string{"filings", "obligation_decisions", "obligation_approval_snapshots", "approval_envelopes", "decision_reasons",
	"voided_approvals", "obligation_deliveries", "settlements", "delivery_attempts", "notices", "audit_log"}

// plain is a connection with nothing set, as any other program would open it.
func (w *world) plain(mode string) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: w.path}).EscapedPath()+"?mode="+mode+"&_pragma=busy_timeout(5000)")
	w.must(err)
	db.SetMaxOpenConns(1)
	return db
}

// look compiles the statements of a raw side once: that is most of their cost.
func (w *world) look() *rawSide {
	db := w.plain("ro")
	prepare := func(query string) *sql.Stmt {
		s, err := db.Prepare(query)
		w.must(err)
		return s
	}
	r := &rawSide{db: db, states: prepare(mStates), broken: prepare(mBroken), moved: prepare(mMoved),
		log: prepare(`SELECT event || ' obligation ' || coalesce(obligation_id, 0) || ' decision ' || coalesce(decision_id, 0), id
			FROM audit_log WHERE id > $1 ORDER BY id`),
		history: map[string]*sql.Stmt{}, sums: map[string]prefix{}, claims: map[int64]rawClaim{}, epochs: map[int64]rawObligation{}}
	for _, table := range histories {
		r.history[table] = prepare(`SELECT * FROM ` + table + ` ORDER BY 1`)
	}
	return r
}

// lines runs a query of one column.
func (w *world) lines(s *sql.Stmt) (out []string) {
	rows, err := s.Query()
	w.must(err)
	defer rows.Close()
	for rows.Next() {
		var line string
		w.must(rows.Scan(&line))
		out = append(out, line)
	}
	w.must(rows.Err())
	return out
}

// states compares every fact of the ledger with the model.
func (w *world) states(m *model) error {
	got, want := w.lines(w.raw.states), m.lines()
	slices.Sort(got)
	slices.Sort(want)
	if slices.Equal(got, want) {
		return nil
	}
	var diff []string
	for _, line := range want {
		if i := slices.Index(got, line); i >= 0 {
			got = slices.Delete(got, i, i+1)
		} else {
			diff = append(diff, "want "+line)
		}
	}
	for _, line := range got {
		diff = append(diff, "got  "+line)
	}
	return fmt.Errorf("the ledger is not where the contract puts it:\n%s", strings.Join(diff, "\n"))
}

// sound checks the promises that stand without a model.
func (w *world) sound(tables []string) {
	if broken := w.lines(w.raw.broken); broken != nil {
		w.t.Fatalf("broken: %s", strings.Join(broken, "\n"))
	}
	w.movedLawfully()
	for _, table := range tables {
		w.onlyGrown(table)
	}
}

// movedLawfully compares claims and epochs with the last look.
func (w *world) movedLawfully() {
	rows, err := w.raw.moved.Query()
	w.must(err)
	defer rows.Close()
	seen := map[int64]bool{}
	for rows.Next() {
		var what, state, token, evidence string
		var id, epoch int64
		w.must(rows.Scan(&what, &id, &state, &token, &evidence, &epoch))
		if what == "claim" {
			seen[id] = true
			w.claimMoved(id, rawClaim{state, token, evidence})
		} else {
			w.obligationMoved(id, rawObligation{epoch, state})
		}
	}
	w.must(rows.Err())
	for id := range w.raw.claims {
		if !seen[id] {
			w.t.Fatalf("the claim of decision %d is gone", id)
		}
	}
}

func (w *world) claimMoved(id int64, now rawClaim) {
	old, known := w.raw.claims[id]
	w.raw.claims[id] = now
	switch {
	case !known:
	case old.token != now.token:
		w.t.Fatalf("the claim of decision %d has another token", id)
	case old.state == now.state && old.evidence == now.evidence:
	case old.state == "unknown" && (now.state != "delivered" || now.evidence == ""):
		w.t.Fatalf("an unknown claim became %s, on the evidence %q", now.state, now.evidence)
	case old.state == "delivered" || old.state == "cancelled":
		w.t.Fatalf("the claim of decision %d was %s, and changed to %+v", id, old.state, now)
	}
}

func (w *world) obligationMoved(id int64, now rawObligation) {
	old, known := w.raw.epochs[id]
	w.raw.epochs[id] = now
	final := old.status == string(ledger.StatusSent) || old.status == string(ledger.StatusClosed)
	back := old.status == string(ledger.StatusApproved) && now.status != old.status && now.status != string(ledger.StatusSent)
	if known && (now.epoch < old.epoch || final && now != old || back && now.epoch == old.epoch) {
		w.t.Fatalf("obligation %d went from %+v to %+v", id, old, now)
	}
}

// onlyGrown checks that what was there before is still there, byte for byte and in its place.
func (w *world) onlyGrown(table string) {
	rows, err := w.raw.history[table].Query()
	w.must(err)
	defer rows.Close()
	old, sum, n := w.raw.sums[table], sha256.New(), 0
	columns, err := rows.Columns()
	w.must(err)
	for ; rows.Next(); n++ {
		if n == old.rows {
			w.sameBeginning(table, old, sum)
		}
		hashRow(w, rows, len(columns), sum)
	}
	w.must(rows.Err())
	if n <= old.rows {
		w.sameBeginning(table, old, sum)
	}
	w.raw.sums[table] = prefix{n, fmt.Sprintf("%x", sum.Sum(nil))}
}

func (w *world) sameBeginning(table string, old prefix, now hash.Hash) {
	if sum := fmt.Sprintf("%x", now.Sum(nil)); old.rows > 0 && sum != old.sum {
		w.t.Fatalf("%s: the first %d rows changed", table, old.rows)
	}
}

func hashRow(w *world, rows *sql.Rows, columns int, sum hash.Hash) {
	row := make([]any, columns)
	for i := range row {
		row[i] = new(sql.RawBytes)
	}
	w.must(rows.Scan(row...))
	for _, column := range row {
		raw := *column.(*sql.RawBytes)
		fmt.Fprintf(sum, "%t %q,", raw == nil, raw)
	}
}

// audit checks that the log got what the model says, and then at most the refusal: required is whether it must be there.
func (w *world) audit(events []string, refused, required bool) {
	rows, err := w.raw.log.Query(w.raw.audited)
	w.must(err)
	defer rows.Close()
	var got []string
	for rows.Next() {
		var line string
		w.must(rows.Scan(&line, &w.raw.audited))
		got = append(got, line)
	}
	w.must(rows.Err())
	if last := len(got) - 1; refused && last >= 0 && strings.HasPrefix(got[last], "refused ") {
		got = got[:last]
	} else if required {
		w.t.Fatalf("the refusal is not in the audit log, which got %q", got)
	}
	if !slices.Equal(got, events) {
		w.t.Fatalf("the audit log got %q, want %q", got, events)
	}
}

func num(id int64) string { return fmt.Sprint(id) }

// lines are the model's facts, worded like the query's.
func (m *model) lines() (out []string) {
	line := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, o := range m.obligations {
		line("obligation %d %s at %d %s %s %s", o.id, o.status, o.epoch, o.counterparty, o.platform, o.channel)
		for _, f := range o.filings {
			line("filing %d at %d by %s %s", o.id, f.epoch, f.Agent, f.envelope)
		}
		if f := o.newest(); o.status == ledger.StatusDrafted {
			line("draft %d %s until %d", o.id, f.hash, o.deadline)
		} else if f.hash != "" {
			line("draft %d %s", o.id, f.hash)
		}
		out = append(out, o.byHand...)
	}
	for _, d := range m.decisions {
		out = append(out, d.lines()...)
	}
	for _, n := range m.notices {
		line("notice %s", n)
	}
	for _, f := range m.told {
		acked := ""
		if f.acked {
			acked = " acked"
		}
		line("told %s %d %s%s", f.agent, f.obligation, f.kind, acked)
	}
	return append(out, m.attempts...)
}

func (d *mDecision) lines() (out []string) {
	line := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	line("decision %d %s %d by %s at %d on %d", d.id, d.verdict, d.obligation, d.operator, d.epoch, d.at.Unix())
	if d.verdict == ledger.Approve {
		line("snapshot %d %d %s %s", d.id, d.epoch, d.filing.hash, d.filing.Text)
		line("envelope %d %s", d.id, d.filing.envelope)
	}
	if d.voided != nil {
		line("voided %d %s by %s", d.id, d.voided.kind, d.voided.actor)
	}
	c := d.claim
	if c == nil {
		return out
	}
	evidence := ""
	if c.evidence {
		evidence = " with evidence"
	}
	line("claim %d %s by %s in generation %d%s", d.id, c.state, c.worker, c.generation, evidence)
	if c.state == ledger.ClaimDelivered {
		line("receipt %d %d draft_sent %s", d.obligation, d.id, c.coordinate)
	}
	if c.settledBy != "" {
		line("settled %d by %s", d.id, c.settledBy)
	}
	return out
}
