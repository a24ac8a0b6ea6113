package schema_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// attack is a statement that a guard has to abort.
type attack struct {
	trigger string // of guards.sql, without "guard_"
	says    string // the message of the one condition that must abort it
	sql     string
	first   string // lawful statements that prepare it, in the same transaction
}

const (
	newEpoch     = `UPDATE obligations SET updated_at = updated_at + 1 WHERE id = {drafted}`
	rawDecision  = `INSERT INTO obligation_decisions (id, obligation_id, decision, operator, decided_ts, nonce, draft_updated_ts) `
	rawSnapshot  = `INSERT OR REPLACE INTO obligation_approval_snapshots SELECT v.id, o.id, o.updated_at, d.draft_text, d.draft_sha256, d.origin_platform, d.origin_channel, d.origin_thread, 'draft_sent' FROM obligation_decisions v JOIN obligations o ON o.id = v.obligation_id JOIN obligation_drafts d ON d.obligation_id = o.id WHERE v.nonce = 'raw'`
	rawClaim     = `INSERT OR REPLACE INTO obligation_delivery_claims (obligation_id, decision_id, token, state, created_ts, updated_ts) `
	rawReceipt   = `INSERT OR REPLACE INTO obligation_deliveries (id, obligation_id, decision_id, kind, coordinate, delivered_ts) `
	rawFiling    = `INSERT OR REPLACE INTO filings SELECT * FROM temp.raw`
	rawAttempt   = `INSERT OR REPLACE INTO delivery_attempts (id, obligation_id, decision_id, worker, outcome, stage, code, detail, altered, recorded_us) VALUES `
	rawNotice    = `INSERT OR REPLACE INTO notices (id, obligation_id, kind, body, routed, reason, created_us) VALUES `
	rawFollowUp  = `INSERT OR REPLACE INTO followups (id, agent, obligation_id, kind, body, created_us) VALUES `
	rawAudit     = `INSERT OR REPLACE INTO audit_log (id, at_us, event, source, actor, detail) VALUES `
	rawVoided    = `INSERT OR REPLACE INTO voided_approvals (decision_id, obligation_id, kind, actor, reason, nonce, voided_us) VALUES `
	rawHolder    = `INSERT OR REPLACE INTO claim_holders (decision_id, obligation_id, worker, generation) VALUES `
	rawSettled   = `INSERT OR REPLACE INTO settlements (decision_id, obligation_id, operator, evidence, settled_us) VALUES `
	rawOpen      = `INSERT OR REPLACE INTO obligations (id, counterparty, source, channel, direction, status, opened_ts, last_touch_ts, updated_at) VALUES `
	decideRaw    = rawDecision + `VALUES (NULL, {drafted}, 'approve', 'eve', 1, 'raw', {drafted.epoch})`
	deliverAgain = ` WHERE decision_id = {dispatching.decision}`
)

func attacks() []attack {
	var all []attack
	for _, group := range [][]attack{onObligations, onDrafts, onFilings, onDecisions, onSnapshots, onClaims, onDeliveries, onSideTables, onSurface} {
		all = append(all, group...)
	}
	return all
}

var onObligations = []attack{
	{"obligations_insert", "obligation id exists", rawOpen + `({sent}, 'x', 'smtp', 'x', 'none', 'open', 1, 1, 1)`, ""},
	{"obligations_insert", "obligation ids rise by one", rawOpen + `(9223372036854775807, 'x', 'smtp', 'x', 'none', 'open', 1, 1, 1)`, ""},
	{"obligations_insert", "obligation ids rise by one", rawOpen + `(900, 'x', 'smtp', 'x', 'none', 'open', 1, 1, 1)`, ""},
	{"obligations_insert", "an epoch is from 1 to 2^53 - 1", rawOpen + `(NULL, 'x', 'smtp', 'x', 'none', 'open', 1, 1, 9007199254740992)`, ""},
	{"obligations_insert", "an epoch is from 1 to 2^53 - 1", rawOpen + `(NULL, 'x', 'smtp', 'x', 'none', 'open', 1, 1, 0)`, ""},
	{"obligations_insert", "an obligation starts as open or drafted", rawOpen + `(NULL, 'x', 'smtp', 'x', 'we_owe_them', 'approved', 1, 1, 1)`, ""},
	{"obligations_insert", "unknown direction", rawOpen + `(NULL, 'x', 'smtp', 'x', 'both', 'open', 1, 1, 1)`, ""},
	{"obligations_insert", "another draft holds this counterparty and channel",
		rawOpen + `(NULL, 'drafted', 'smtp', 'drafted@example.com', 'we_owe_them', 'drafted', 1, 1, 1)`, ""},
	{"obligations_insert", "an active claim holds this counterparty and channel",
		rawOpen + `(NULL, 'claimed', 'smtp', 'claimed@example.com', 'we_owe_them', 'drafted', 1, 1, 1)`, ""},
	{"obligations_id", "ids are positive", rawOpen + `(-1, 'x', 'smtp', 'x', 'none', 'open', 1, 1, 1)`, ""},
	{"obligations_insert", "obligation ids rise by one", rawOpen + `(0, 'x', 'smtp', 'x', 'none', 'open', 1, 1, 1)`, ""},
	{"obligations_update", "an obligation keeps its id, counterparty and channel", `UPDATE OR REPLACE obligations SET id = {sent} WHERE id = {drafted}`, ""},
	{"obligations_update", "an obligation keeps its id, counterparty and channel", `UPDATE obligations SET rowid = 900 WHERE id = {drafted}`, ""},
	{"obligations_update", "an obligation keeps its id, counterparty and channel", `UPDATE obligations SET counterparty = 'x' WHERE id = {drafted}`, ""},
	{"obligations_update", "an obligation keeps its id, counterparty and channel", `UPDATE obligations SET channel = 'x' WHERE id = {approved}`, ""},
	{"obligations_update", "obligation is frozen by an active claim", `UPDATE obligations SET summary = 'x' WHERE id = {claimed}`, ""},
	{"obligations_update", "obligation is frozen by an active claim", `UPDATE obligations SET status = 'closed' WHERE id = {dispatching}`, ""},
	{"obligations_update", "obligation is frozen by an active claim", `UPDATE obligations SET status = 'drafted', updated_at = updated_at + 1 WHERE id = {unknown}`, ""},
	{"obligations_update", "obligation is frozen by an active claim", `UPDATE obligations SET status = 'closed' WHERE id = {settled}`, ""},
	{"obligations_update", "the epoch never goes back", `UPDATE obligations SET updated_at = updated_at - 1 WHERE id = {drafted}`, ""},
	{"obligations_update", "an epoch is from 1 to 2^53 - 1", `UPDATE obligations SET updated_at = 9223372036854775807 WHERE id = {drafted}`, ""},
	{"obligations_update", "an epoch is from 1 to 2^53 - 1", `UPDATE obligations SET updated_at = 9007199254740992 WHERE id = {drafted}`, ""},
	{"obligations_update", "unknown direction", `UPDATE obligations SET direction = 'x', updated_at = updated_at + 1 WHERE id = {drafted}`, ""},
	{"obligations_update", "a changed source or direction needs a new epoch", `UPDATE obligations SET source = 'slack' WHERE id = {drafted}`, ""},
	{"obligations_update", "a changed source or direction needs a new epoch", `UPDATE obligations SET direction = 'none' WHERE id = {approved}`, ""},
	{"obligations_update", "another draft holds this counterparty and channel",
		`UPDATE OR REPLACE obligations SET status = 'drafted', updated_at = updated_at + 1 WHERE id = {overtaken}`, ""},
	{"obligations_update", "no such change of status", `UPDATE obligations SET status = 'drafted', updated_at = updated_at + 1 WHERE id = {sent}`, ""},
	{"obligations_update", "no such change of status", `UPDATE obligations SET status = 'approved' WHERE id = {rejected}`, ""},
	{"obligations_update", "no such change of status", `UPDATE obligations SET status = 'anything' WHERE id = {approved}`, ""},
	{"obligations_update", "only a draft gets a new epoch", `UPDATE obligations SET updated_at = updated_at + 1 WHERE id = {approved}`, ""},
	{"obligations_update", "going back to drafted needs a new epoch", `UPDATE obligations SET status = 'drafted' WHERE id = {approved}`, ""},
	{"obligations_update", "approved needs a snapshot of this epoch and its envelope", `UPDATE obligations SET status = 'approved' WHERE id = {drafted}`, ""},
	{"obligations_update", "approved needs a snapshot of this epoch and its envelope", `UPDATE obligations SET status = 'approved' WHERE id = {revoked}`, ""},
	{"obligations_update", "rejected needs a reject decision on this epoch", `UPDATE obligations SET status = 'rejected' WHERE id = {drafted}`, decideRaw},
	{"obligations_update", "sent needs a receipt of a delivered claim", `UPDATE obligations SET status = 'sent' WHERE id = {approved}`, ""},
	{"obligations_delete", "obligations are never deleted", `DELETE FROM obligations WHERE id = {closed}`, ""},
}

var onDrafts = []attack{
	{"drafts_insert", "the obligation has a draft",
		`INSERT OR REPLACE INTO obligation_drafts SELECT * FROM obligation_drafts WHERE obligation_id = {drafted}`, ""},
	{"drafts_insert", "obligation is frozen by an active claim",
		`INSERT OR REPLACE INTO obligation_drafts SELECT * FROM obligation_drafts WHERE obligation_id = {unknown}`, ""},
	{"drafts_insert", "a draft needs its drafted obligation, of the same source and channel, and its filing",
		`INSERT INTO obligation_drafts SELECT (SELECT max(id) FROM obligations), draft_text, context, origin_platform, origin_channel, origin_thread, origin_user, priority, draft_sha256, created_ts, updated_ts, auto_send_after, NULL FROM obligation_drafts WHERE obligation_id = {drafted}`,
		rawOpen + `(NULL, 'x', 'smtp', 'drafted@example.com', 'we_owe_them', 'drafted', 1, 1, 1)`},
	{"drafts_update", "a draft keeps its obligation", `UPDATE OR REPLACE obligation_drafts SET obligation_id = {approved} WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "obligation is frozen by an active claim", `UPDATE obligation_drafts SET context = 'x' WHERE obligation_id = {claimed}`, ""},
	{"drafts_update", "a draft changes only while it is drafted", `UPDATE obligation_drafts SET draft_text = 'x' WHERE obligation_id = {approved}`, ""},
	{"drafts_update", "a draft changes only while it is drafted", `UPDATE obligation_drafts SET auto_send_after = NULL WHERE obligation_id = {rejected}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET draft_text = 'x' WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET draft_sha256 = upper(draft_sha256) WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET origin_platform = 'x' WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET origin_channel = 'x' WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET origin_thread = NULL WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET origin_user = 'x' WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET context = 'approved by the board' WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET priority = 'P3' WHERE obligation_id = {drafted}`, ""},
	{"drafts_update", "a draft changes only to its newest filing", `UPDATE obligation_drafts SET auto_send_after = 1 WHERE obligation_id = {drafted}`, ""},
	{"drafts_delete", "drafts are never deleted", `DELETE FROM obligation_drafts WHERE obligation_id = {closed}`, ""},
}

var onFilings = []attack{
	{"filings_insert", "filing exists", rawFiling, newEpoch + raw("drafted", "id = 1")},
	{"filings_insert", "filing exists", rawFiling, newEpoch + raw("drafted", "epoch = epoch - 1")},
	{"filings_insert", "filing exists", rawFiling, newEpoch + raw("drafted", "agent = 'quoter', idempotency_key = 'key of sent'")},
	{"filings_insert", "filing ids rise by one", rawFiling, newEpoch + raw("drafted", "id = 900")},
	{"filings_insert", "markers are a JSON array, a result is a JSON object", rawFiling, newEpoch + raw("drafted", "markers = 'none'")},
	{"filings_insert", "markers are a JSON array, a result is a JSON object", rawFiling, newEpoch + raw("drafted", "markers = 'null'")},
	{"filings_insert", "markers are a JSON array, a result is a JSON object", rawFiling, newEpoch + raw("drafted", "result = ''")},
	{"filings_insert", "markers are a JSON array, a result is a JSON object", rawFiling, newEpoch + raw("drafted", "result = '[]'")},
	{"filings_insert", "a filing needs its drafted obligation at the same epoch", rawFiling, "SELECT 1" + raw("drafted", "")},
	{"filings_insert", "a filing needs its drafted obligation at the same epoch", rawFiling, "SELECT 1" + raw("approved", "")},
	{"filings_insert", "a filing needs its drafted obligation at the same epoch", rawFiling, newEpoch + raw("drafted", "counterparty = 'x'")},
	{"filings_insert", "a filing needs its drafted obligation at the same epoch", rawFiling, newEpoch + raw("drafted", "channel = 'x'")},
	{"filings_insert", "hashes are 64 lower-case hex digits", rawFiling, newEpoch + raw("drafted", "text_sha256 = upper(text_sha256)")},
	{"filings_insert", "hashes are 64 lower-case hex digits", rawFiling, newEpoch + raw("drafted", "envelope_sha256 = 'abc'")},
	{"filings_insert", "an active claim holds this counterparty and channel", rawFiling,
		`UPDATE obligations SET updated_at = updated_at + 1 WHERE id = {newerBesideClaim}` + raw("newerBesideClaim", "")},
	{"filings_id", "ids are positive", rawFiling, newEpoch + raw("drafted", "id = -1")},
	{"filings_update", "filings are append-only", `UPDATE filings SET text = 'x' WHERE obligation_id = {sent}`, ""},
	{"filings_delete", "filings are append-only", `DELETE FROM filings WHERE obligation_id = {sent}`, ""},
}

// raw prepares a filing like the obligation's, for the next epoch, in a temporary table: whatever columns filings has.
func raw(name, change string) string {
	if change != "" {
		change = "; UPDATE temp.raw SET " + change
	}
	return "; CREATE TEMP TABLE raw AS SELECT * FROM filings WHERE obligation_id = {" + name +
		"}; UPDATE temp.raw SET id = NULL, epoch = epoch + 1, agent = 'raw', idempotency_key = NULL" + change
}

var onDecisions = []attack{
	{"decisions_insert", "decision exists", strings.Replace(decideRaw, "(NULL", "({sent.decision}", 1), ""},
	{"decisions_insert", "decision exists", strings.Replace(strings.Replace(decideRaw, "'raw'", "'nonce of {sent}'", 1), "INSERT", "INSERT OR REPLACE", 1), ""},
	{"decisions_insert", "decision ids rise by one", strings.Replace(decideRaw, "(NULL", "(900", 1), ""},
	{"decisions_insert", "a decision is approve or reject, by an operator, with a nonce", strings.Replace(decideRaw, "'approve'", "'allow'", 1), ""},
	{"decisions_insert", "a decision is approve or reject, by an operator, with a nonce", strings.Replace(decideRaw, "'eve'", "' '", 1), ""},
	{"decisions_insert", "a decision is approve or reject, by an operator, with a nonce", strings.Replace(decideRaw, "'raw'", "''", 1), ""},
	{"decisions_insert", "obligation is frozen by an active claim", strings.ReplaceAll(decideRaw, "{drafted", "{unknown"), ""},
	{"decisions_insert", "a decision needs a draft of ours at this epoch", strings.Replace(decideRaw, "{drafted.epoch}", "{drafted.epoch} - 1", 1), ""},
	{"decisions_insert", "a decision needs a draft of ours at this epoch", strings.ReplaceAll(decideRaw, "{drafted", "{approved"), ""},
	{"decisions_id", "ids are positive", strings.Replace(decideRaw, "(NULL", "(-1", 1), ""},
	{"decisions_update", "decisions are append-only", `UPDATE OR REPLACE obligation_decisions SET decision = 'approve' WHERE id = {rejected.decision}`, ""},
	{"decisions_delete", "decisions are append-only", `DELETE FROM obligation_decisions WHERE id = {rejected.decision}`, ""},
}

var onSnapshots = []attack{
	{"snapshots_insert", "snapshot exists", `INSERT OR REPLACE INTO obligation_approval_snapshots SELECT * FROM obligation_approval_snapshots WHERE decision_id = {approved.decision}`, ""},
	{"snapshots_insert", "a snapshot is of kind draft_sent", strings.Replace(rawSnapshot, "'draft_sent'", "'other'", 1), decideRaw},
	{"snapshots_insert", "hashes are 64 lower-case hex digits", strings.Replace(rawSnapshot, "d.draft_sha256", "upper(d.draft_sha256)", 1), decideRaw},
	{"snapshots_insert", "a snapshot equals the current authorised draft in every field", strings.Replace(rawSnapshot, "d.draft_text", "'x'", 1), decideRaw},
	{"snapshots_insert", "a snapshot equals the current authorised draft in every field", strings.Replace(rawSnapshot, "d.origin_thread", "NULL", 1), decideRaw},
	{"snapshots_insert", "a snapshot equals the current authorised draft in every field", strings.Replace(rawSnapshot, "d.origin_channel", "'x'", 1), decideRaw},
	{"snapshots_insert", "a snapshot equals the current authorised draft in every field", strings.Replace(rawSnapshot, "d.origin_platform", "'x'", 1), decideRaw},
	{"snapshots_insert", "a snapshot equals the current authorised draft in every field", strings.Replace(rawSnapshot, "o.updated_at", "o.updated_at - 1", 1), decideRaw},
	{"snapshots_insert", "a snapshot equals the current authorised draft in every field", rawSnapshot, strings.Replace(decideRaw, "'approve'", "'reject'", 1)},
	{"snapshots_update", "snapshots never change", `UPDATE obligation_approval_snapshots SET draft_text = 'x' WHERE decision_id = {approved.decision}`, ""},
	{"snapshots_delete", "snapshots are never deleted", `DELETE FROM obligation_approval_snapshots WHERE decision_id = {approved.decision}`, ""},
	{"envelopes_insert", "envelope exists", `INSERT OR REPLACE INTO approval_envelopes SELECT * FROM approval_envelopes WHERE decision_id = {approved.decision}`, ""},
	{"envelopes_insert", "an envelope equals its snapshot and the newest filing",
		`INSERT INTO approval_envelopes SELECT v.id, f.obligation_id, f.id, f.counterparty, f.platform, f.channel, f.thread, 'another subject', f.text_sha256, f.envelope_sha256, f.markers, 1 FROM filings f JOIN obligation_decisions v ON v.obligation_id = f.obligation_id WHERE v.nonce = 'raw'`,
		decideRaw + ";" + rawSnapshot},
	{"envelopes_insert", "markers are a JSON array",
		`INSERT INTO approval_envelopes SELECT v.id, f.obligation_id, f.id, f.counterparty, f.platform, f.channel, f.thread, f.subject, f.text_sha256, f.envelope_sha256, '{}', 1 FROM filings f JOIN obligation_decisions v ON v.obligation_id = f.obligation_id WHERE v.nonce = 'raw'`,
		decideRaw + ";" + rawSnapshot},
	{"envelopes_update", "approved envelopes never change", `UPDATE approval_envelopes SET subject = 'x' WHERE decision_id = {approved.decision}`, ""},
	{"envelopes_delete", "approved envelopes are never deleted", `DELETE FROM approval_envelopes WHERE decision_id = {approved.decision}`, ""},
}

var raises = regexp.MustCompile(`RAISE\(ABORT, 'guard: ((?:[^']|'')*)'\)`)

// conditions maps each trigger of guards.sql to the messages of its conditions.
func conditions(t *testing.T) map[string][]string {
	text, err := os.ReadFile("sqlite/guards.sql")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, chunk := range strings.Split(string(text), "CREATE TRIGGER guard_")[1:] {
		name, body, _ := strings.Cut(chunk, " ")
		for _, m := range raises.FindAllStringSubmatch(body, -1) {
			out[name] = append(out[name], strings.ReplaceAll(m[1], "''", "'"))
		}
	}
	return out
}

// Every condition of every guard is the one that aborts some attack: a guard that nothing exercises is a guess.
func TestEveryGuardAborts(t *testing.T) {
	missing := map[string]bool{}
	for trigger, messages := range conditions(t) {
		for _, message := range messages {
			missing[trigger+": "+message] = true
		}
	}
	l := lived(t)
	for i, pragma := range []string{"PRAGMA ignore_check_constraints = ON", "PRAGMA ignore_check_constraints = OFF"} {
		conn := l.plain(t, pragma)
		before := dump(t, conn)
		for n, a := range attacks() {
			if i == 1 && n%4 > 0 {
				continue // checks on top of the guards can only refuse more: a sample will do
			}
			l.assault(t, conn, a)
			delete(missing, a.trigger+": "+a.says)
		}
		if after := dump(t, conn); after != before {
			t.Errorf("an attack changed the ledger:\n%s", firstDifference(before, after))
		}
	}
	for key := range missing {
		t.Errorf("no attack is aborted by guard_%s", key)
	}
}
