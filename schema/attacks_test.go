package schema_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"modernc.org/sqlite"
)

var onClaims = []attack{
	{"claims_insert", "a claim starts as claimed, with a token", rawClaim + `VALUES ({approved}, {approved.decision}, 'raw', 'dispatching', 1, 1)`, ""},
	{"claims_insert", "a claim starts as claimed, with a token", rawClaim + `VALUES ({approved}, {approved.decision}, '', 'claimed', 1, 1)`, ""},
	{"claims_insert", "a claim starts as claimed, with a token", rawClaim + `VALUES ({approved}, {approved.decision}, 'raw', 'claimed', 2, 1)`, ""},
	{"claims_insert", "the decision has a claim", rawClaim + `VALUES ({sent}, {sent.decision}, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "the decision has a claim", rawClaim + `VALUES ({approved}, {unknown.decision}, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "the token has a claim",
		rawClaim + `SELECT {approved}, {approved.decision}, token, 'claimed', 1, 1 FROM obligation_delivery_claims WHERE decision_id = {unknown.decision}`, ""},
	{"claims_insert", "obligation is frozen by an active claim", rawClaim + `VALUES ({settled}, 900, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "the decision has a receipt", rawClaim + `VALUES ({closedApproved}, {closedApproved.decision}, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "the approval was taken out of circulation", rawClaim + `VALUES ({revoked}, {revoked.decision}, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "a claim needs an approved snapshot that equals the current draft", rawClaim + `VALUES ({drafted}, 900, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "the decision has a receipt", rawClaim + `VALUES ({rejected}, {rejected.decision}, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "a claim needs an approved snapshot that equals the current draft", rawClaim + `VALUES ({drafted}, {approved.decision}, 'raw', 'claimed', 1, 1)`, ""},
	{"claims_insert", "a claim needs an approved snapshot that equals the current draft", rawClaim + `VALUES ({approved}, {approved.decision}, 'raw', 'claimed', 1, 1)`,
		`UPDATE obligations SET status = 'drafted', updated_at = updated_at + 1 WHERE id = {approved}`},
	{"claims_update", "a claim keeps its identity", `UPDATE OR REPLACE obligation_delivery_claims SET token = (SELECT token FROM obligation_delivery_claims WHERE decision_id = {unknown.decision}) WHERE decision_id = {claimed.decision}`, ""},
	{"claims_update", "a claim keeps its identity", `UPDATE OR REPLACE obligation_delivery_claims SET obligation_id = {unknown}, decision_id = {unknown.decision} WHERE decision_id = {claimed.decision}`, ""},
	{"claims_update", "a claim keeps its identity", `UPDATE obligation_delivery_claims SET created_ts = 1 WHERE decision_id = {claimed.decision}`, ""},
	{"claims_update", "a claim's clock never runs back", `UPDATE obligation_delivery_claims SET state = 'cancelled', updated_ts = updated_ts - 1 WHERE decision_id = {claimed.decision}`, ""},
	{"claims_update", "no such change of a claim's state", `UPDATE obligation_delivery_claims SET state = 'cancelled' WHERE decision_id = {unknown.decision}`, ""},
	{"claims_update", "no such change of a claim's state", `UPDATE obligation_delivery_claims SET state = 'cancelled' WHERE decision_id = {dispatching.decision}`, ""},
	{"claims_update", "no such change of a claim's state", `UPDATE obligation_delivery_claims SET state = 'claimed' WHERE decision_id = {settled.decision}`, ""},
	{"claims_update", "no such change of a claim's state", `UPDATE obligation_delivery_claims SET state = 'dispatching' WHERE decision_id = {sent.decision}`, ""},
	{"claims_update", "no such change of a claim's state", `UPDATE obligation_delivery_claims SET state = 'delivered' WHERE decision_id = {claimed.decision}`, ""},
	{"claims_update", "no such change of a claim's state", `UPDATE obligation_delivery_claims SET reconciliation_evidence = 'x' WHERE decision_id = {sent.decision}`, ""},
	{"claims_update", "delivered needs a receipt", `UPDATE obligation_delivery_claims SET state = 'delivered'` + deliverAgain, ""},
	{"claims_update", "an unknown claim is delivered only with evidence, and only there evidence is written",
		`UPDATE obligation_delivery_claims SET state = 'delivered' WHERE decision_id = {unknown.decision}`,
		rawReceipt + `VALUES (NULL, {unknown}, {unknown.decision}, 'draft_sent', 'x', 1)`},
	{"claims_update", "an unknown claim is delivered only with evidence, and only there evidence is written",
		`UPDATE obligation_delivery_claims SET state = 'unknown', reconciliation_evidence = 'x'` + deliverAgain, ""},
	{"claims_delete", "claims are never deleted", `DELETE FROM obligation_delivery_claims WHERE decision_id = {unknown.decision}`, ""},
}

var onDeliveries = []attack{
	{"deliveries_insert", "receipt exists", rawReceipt + `VALUES (1, {drafted}, NULL, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_insert", "receipt exists", rawReceipt + `VALUES (NULL, {sent}, {sent.decision}, 'draft_sent', 'x', 1)`, ""},
	{"deliveries_insert", "receipt exists", rawReceipt + `VALUES (NULL, {closed}, NULL, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_insert", "receipt ids rise by one", rawReceipt + `VALUES (900, {drafted}, NULL, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_insert", "unknown kind of receipt", rawReceipt + `VALUES (NULL, {drafted}, NULL, 'postcard', 'x', 1)`, ""},
	{"deliveries_insert", "a receipt for a sent draft needs its coordinate and a dispatching or unknown claim", rawReceipt + `VALUES (NULL, {claimed}, {claimed.decision}, 'draft_sent', 'x', 1)`, ""},
	{"deliveries_insert", "a receipt for a sent draft needs its coordinate and a dispatching or unknown claim", rawReceipt + `VALUES (NULL, {approved}, {approved.decision}, 'draft_sent', 'x', 1)`, ""},
	{"deliveries_insert", "a receipt for a sent draft needs its coordinate and a dispatching or unknown claim", rawReceipt + `VALUES (NULL, {dispatching}, {dispatching.decision}, 'draft_sent', ' ', 1)`, ""},
	{"deliveries_insert", "a receipt for a sent draft needs its coordinate and a dispatching or unknown claim", rawReceipt + `VALUES (NULL, {drafted}, NULL, 'draft_sent', 'x', 1)`, ""},
	{"deliveries_insert", "a claimed decision has no other receipt than draft_sent", rawReceipt + `VALUES (NULL, {unknown}, {unknown.decision}, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_insert", "obligation is frozen by an active claim", rawReceipt + `VALUES (NULL, {unknown}, NULL, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_insert", "a rejection's receipt needs the rejection", rawReceipt + `VALUES (NULL, {approved}, {approved.decision}, 'reject_notice', 'x', 1)`, ""},
	{"deliveries_insert", "a receipt needs its obligation, and a decision on it", rawReceipt + `VALUES (NULL, 900, NULL, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_insert", "a receipt needs its obligation, and a decision on it", rawReceipt + `VALUES (NULL, {drafted}, {approved.decision}, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_id", "ids are positive", rawReceipt + `VALUES (-1, {drafted}, NULL, 'manual_notice', 'x', 1)`, ""},
	{"deliveries_update", "receipts never change", `UPDATE OR REPLACE obligation_deliveries SET coordinate = 'x' WHERE decision_id = {sent.decision}`, ""},
	{"deliveries_delete", "receipts are never deleted", `DELETE FROM obligation_deliveries WHERE decision_id = {sent.decision}`, ""},
}

var onSideTables = []attack{
	{"reasons_insert", "reason exists", `INSERT OR REPLACE INTO decision_reasons VALUES ({rejected.decision}, 'x')`, ""},
	{"reasons_insert", "a reason needs its decision", `INSERT INTO decision_reasons VALUES (NULL, 'x')`, ""},
	{"reasons_update", "reasons are append-only", `UPDATE decision_reasons SET reason = 'x'`, ""},
	{"reasons_delete", "reasons are append-only", `DELETE FROM decision_reasons`, ""},
	{"voided_insert", "approval is out of circulation already", rawVoided + `({revoked.decision}, {revoked}, 'expired', 'x', 'x', NULL, 1)`, ""},
	{"voided_insert", "approval is out of circulation already", rawVoided + `({approved.decision}, {approved}, 'revoked', 'x', 'x', 'revocation', 1)`, ""},
	{"voided_insert", "only an approval is taken out of circulation", rawVoided + `({rejected.decision}, {rejected}, 'revoked', 'x', 'x', NULL, 1)`, ""},
	{"voided_insert", "only an approval is taken out of circulation", rawVoided + `(900, {drafted}, 'revoked', 'x', 'x', NULL, 1)`, ""},
	{"voided_insert", "an approval in dispatch can't be taken back", rawVoided + `({dispatching.decision}, {dispatching}, 'revoked', 'x', 'x', NULL, 1)`, ""},
	{"voided_insert", "an approval in dispatch can't be taken back", rawVoided + `({sent.decision}, {sent}, 'revoked', 'x', 'x', NULL, 1)`, ""},
	{"voided_update", "voided approvals are append-only", `UPDATE voided_approvals SET nonce = NULL`, ""},
	{"voided_delete", "voided approvals are append-only", `DELETE FROM voided_approvals`, ""},
	{"holders_insert", "the claim has a holder", rawHolder + `({claimed.decision}, {claimed}, 'thief', 1)`, ""},
	{"holders_insert", "a holder starts with generation 1 and its fresh claim", rawHolder + `({approved.decision}, {approved}, 'thief', 1)`, ""},
	{"holders_update", "a holder keeps its claim", `UPDATE OR REPLACE claim_holders SET decision_id = {unknown.decision} WHERE decision_id = {claimed.decision}`, ""},
	{"holders_update", "a take-over raises the generation by one", `UPDATE claim_holders SET worker = 'thief' WHERE decision_id = {claimed.decision}`, ""},
	{"holders_update", "a take-over raises the generation by one", `UPDATE claim_holders SET generation = 7 WHERE decision_id = {claimed.decision}`, ""},
	{"holders_update", "a take-over raises the generation by one", `UPDATE claim_holders SET generation = 0 WHERE decision_id = {claimed.decision}`, ""},
	{"holders_update", "a dispatch begins once", `UPDATE claim_holders SET begun_us = begun_us + 1 WHERE decision_id = {dispatching.decision}`, ""},
	{"holders_update", "only a dispatching claim has begun", `UPDATE claim_holders SET begun_us = 1 WHERE decision_id = {claimed.decision}`, ""},
	{"holders_update", "only a dispatching claim has begun", `UPDATE claim_holders SET generation = generation + 1, worker = 'thief', begun_us = 1 WHERE decision_id = {claimed.decision}`, ""},
	{"holders_delete", "holders are never deleted", `DELETE FROM claim_holders WHERE decision_id = {claimed.decision}`, ""},
	{"attempts_insert", "attempt exists", rawAttempt + `(1, {sent}, {sent.decision}, 'x', 'refused', 'x', 'x', 'x', 0, 1)`, ""},
	{"attempts_insert", "attempt ids rise by one", rawAttempt + `(900, {sent}, {sent.decision}, 'x', 'refused', 'x', 'x', 'x', 0, 1)`, ""},
	{"attempts_insert", "an attempt needs its claim", rawAttempt + `(NULL, {approved}, {approved.decision}, 'x', 'refused', 'x', 'x', 'x', 0, 1)`, ""},
	{"attempts_id", "ids are positive", rawAttempt + `(-1, {sent}, {sent.decision}, 'x', 'refused', 'x', 'x', 'x', 0, 1)`, ""},
	{"attempts_update", "attempts are append-only", `UPDATE delivery_attempts SET outcome = 'confirmed'`, ""},
	{"attempts_delete", "attempts are append-only", `DELETE FROM delivery_attempts`, ""},
	{"settlements_insert", "settled already", rawSettled + `({settled.decision}, {settled}, 'eve', 'x', 1)`, ""},
	{"settlements_insert", "only an unknown claim is settled, by an operator with evidence", rawSettled + `({dispatching.decision}, {dispatching}, 'eve', 'x', 1)`, ""},
	{"settlements_insert", "only an unknown claim is settled, by an operator with evidence", rawSettled + `({unknown.decision}, {unknown}, ' ', 'x', 1)`, ""},
	{"settlements_insert", "only an unknown claim is settled, by an operator with evidence", rawSettled + `({unknown.decision}, {unknown}, 'eve', ' ', 1)`, ""},
	{"settlements_update", "settlements are append-only", `UPDATE settlements SET evidence = 'x'`, ""},
	{"settlements_delete", "settlements are append-only", `DELETE FROM settlements`, ""},
	{"notices_insert", "notice exists", rawNotice + `(1, {sent}, 'x', 'x', 'retained', 'x', 1)`, ""},
	{"notices_insert", "notice ids rise by one", rawNotice + `(900, {sent}, 'x', 'x', 'retained', 'x', 1)`, ""},
	{"notices_insert", "a notice needs its obligation", rawNotice + `(NULL, 900, 'x', 'x', 'retained', 'x', 1)`, ""},
	{"notices_id", "ids are positive", rawNotice + `(-1, {sent}, 'x', 'x', 'retained', 'x', 1)`, ""},
	{"notices_update", "notices never change", `UPDATE notices SET body = 'x'`, ""},
	{"notices_delete", "notices are never lost", `DELETE FROM notices`, ""},
	{"followups_insert", "follow-up exists", rawFollowUp + `(1, 'x', {sent}, 'sent', 'x', 1)`, ""},
	{"followups_insert", "follow-up ids rise by one", rawFollowUp + `(900, 'x', {sent}, 'sent', 'x', 1)`, ""},
	{"followups_insert", "a follow-up needs its obligation", rawFollowUp + `(NULL, 'x', 900, 'sent', 'x', 1)`, ""},
	{"followups_id", "ids are positive", rawFollowUp + `(-1, 'x', {sent}, 'sent', 'x', 1)`, ""},
	{"followups_update", "a follow-up is only acknowledged, once", `UPDATE followups SET body = 'x', acked_us = 1 WHERE acked_us IS NULL`, ""},
	{"followups_update", "a follow-up is only acknowledged, once", `UPDATE followups SET acked_us = NULL WHERE acked_us IS NOT NULL`, ""},
	{"followups_delete", "follow-ups are never lost", `DELETE FROM followups`, ""},
	{"counterparties_insert", "counterparty is known", `INSERT OR REPLACE INTO counterparties VALUES ('sent', 'x', 'x', 1)`, ""},
	{"counterparties_update", "counterparties are append-only", `UPDATE counterparties SET skeleton = 'x'`, ""},
	{"counterparties_delete", "counterparties are append-only", `DELETE FROM counterparties`, ""},
	{"meta_insert", "the ledger's own facts never change", `INSERT OR REPLACE INTO ledger_meta VALUES ('ledger_id', 'x')`, ""},
	{"meta_update", "the ledger's own facts never change", `UPDATE ledger_meta SET value = 'x'`, ""},
	{"meta_delete", "the ledger's own facts never change", `DELETE FROM ledger_meta`, ""},
	{"audit_insert", "audit row exists", rawAudit + `(1, 1, 'x', 'x', 'x', '{}')`, ""},
	{"audit_insert", "audit rows are appended in order", rawAudit + `(900, 1, 'x', 'x', 'x', '{}')`, ""},
	{"audit_insert", "the detail of an audit row is a JSON object", rawAudit + `(NULL, 1, 'x', 'x', 'x', 'no JSON')`, ""},
	{"audit_insert", "the detail of an audit row is a JSON object", rawAudit + `(NULL, 1, 'x', 'x', 'x', '[1]')`, ""},
	{"audit_id", "ids are positive", rawAudit + `(-1, 1, 'x', 'x', 'x', '{}')`, ""},
	{"audit_update", "the audit log is append-only", `UPDATE audit_log SET actor = 'x' WHERE id = 1`, ""},
	{"audit_delete", "the audit log is append-only", `DELETE FROM audit_log WHERE id = (SELECT max(id) FROM audit_log)`, ""},
}

// assault fails unless exactly the named condition aborts the attack. Whatever an attack without preparation does to the ledger stays, for
// the caller to find; one with it is looked at here, and rolled back.
func (l life) assault(t *testing.T, conn *sql.Conn, a attack) {
	t.Helper()
	exec := func(statement string) error {
		_, err := conn.ExecContext(t.Context(), l.fill(statement))
		return err
	}
	if a.first == "" {
		a.judge(t, exec(a.sql))
		return
	}
	for _, statement := range append([]string{"BEGIN IMMEDIATE"}, strings.Split(a.first, ";")...) {
		if err := exec(statement); err != nil {
			t.Fatalf("%s: preparing %s: %v", a.trigger, statement, err)
		}
	}
	defer exec("ROLLBACK")
	before := dump(t, conn)
	a.judge(t, exec(a.sql))
	if after := dump(t, conn); after != before {
		t.Errorf("%s changed the ledger:\n%s", a.sql, firstDifference(before, after))
	}
}

func (a attack) judge(t *testing.T, err error) {
	t.Helper()
	var refused *sqlite.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Error(), "guard: "+a.says+" ") {
		t.Errorf("guard_%s should say %q of %s\n\tgot %v", a.trigger, a.says, a.sql, err)
	}
}

// dump is the whole content of every table, one row a line.
func dump(t *testing.T, conn *sql.Conn) string {
	t.Helper()
	var out strings.Builder
	for _, table := range tables(t, conn) {
		for _, row := range rowsOf(t, conn, table) {
			fmt.Fprintf(&out, "%s %#v\n", table, row)
		}
	}
	return out.String()
}

func tables(t *testing.T, conn *sql.Conn) []string {
	t.Helper()
	var names []string
	for _, row := range query(t, conn, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`) {
		names = append(names, row[0].(string))
	}
	return names
}

func rowsOf(t *testing.T, conn *sql.Conn, table string) [][]any {
	t.Helper()
	return query(t, conn, `SELECT * FROM `+table+` ORDER BY 1, 2`)
}

func query(t *testing.T, conn *sql.Conn, text string, args ...any) [][]any {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), text, args...)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out [][]any
	for rows.Next() {
		row := make([]any, len(columns))
		targets := make([]any, len(columns))
		for i := range row {
			targets[i] = &row[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		out = append(out, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func firstDifference(a, b string) string {
	left, right := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range left {
		if i >= len(right) || left[i] != right[i] {
			return fmt.Sprintf("\tbefore %s\n\tafter  %s", left[i], strings.Join(right[min(i, len(right)-1):min(i+1, len(right))], ""))
		}
	}
	return "\trows were added"
}
