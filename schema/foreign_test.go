package schema_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// foreignTables are the contract's six tables as another implementation might write them: no STRICT, no checks, a weak guard under a
// name of ours, and a trigger of its own.
const foreignTables = `
CREATE TABLE obligations (id INTEGER PRIMARY KEY AUTOINCREMENT, counterparty TEXT, source TEXT, channel TEXT, direction TEXT, status TEXT, summary TEXT, opened_ts INTEGER, last_touch_ts INTEGER, updated_at INTEGER);
CREATE TABLE obligation_drafts (obligation_id INTEGER, draft_text TEXT, context TEXT, origin_platform TEXT, origin_channel TEXT, origin_thread TEXT, origin_user TEXT, priority TEXT DEFAULT 'P2', draft_sha256 TEXT, created_ts INTEGER, updated_ts INTEGER, auto_send_after INTEGER, signal_obligation_id INTEGER);
CREATE TABLE obligation_decisions (id INTEGER, obligation_id INTEGER, decision TEXT, operator TEXT, decided_ts INTEGER, nonce TEXT, draft_updated_ts INTEGER);
CREATE TABLE obligation_approval_snapshots (decision_id INTEGER, obligation_id INTEGER, draft_epoch INTEGER, draft_text TEXT, draft_sha256 TEXT, origin_platform TEXT, origin_channel TEXT, origin_thread TEXT, kind TEXT);
CREATE TABLE obligation_delivery_claims (obligation_id INTEGER, decision_id INTEGER, token TEXT, state TEXT, created_ts INTEGER, updated_ts INTEGER, reconciliation_evidence TEXT);
CREATE TABLE obligation_deliveries (id INTEGER, obligation_id INTEGER, decision_id INTEGER, kind TEXT, coordinate TEXT, delivered_ts INTEGER);
CREATE TABLE crm_notes (id INTEGER PRIMARY KEY, obligation_id INTEGER, note TEXT);
INSERT INTO crm_notes VALUES (1, 2, 'an old customer');
CREATE INDEX obligations_waiting ON obligations (status);
CREATE TRIGGER guard_claims_delete BEFORE DELETE ON obligation_delivery_claims BEGIN SELECT 1; END;
CREATE TRIGGER "touch me" AFTER UPDATE ON obligations BEGIN SELECT 1; END;
`

// The obligations of the foreign ledger. Decisions have the obligation's number plus 100.
const (
	fOpen = iota + 1
	fDrafted
	fWrongHash
	fApproved
	fClaimed
	fDispatching
	fUnknown
	fSent
	fRejected
	fClosed
	fCancelled
	fUncleaned
)

var foreignStatus = map[int]string{fOpen: "open", fDrafted: "drafted", fWrongHash: "drafted", fApproved: "approved", fClaimed: "approved",
	fDispatching: "approved", fUnknown: "approved", fSent: "sent", fRejected: "rejected", fClosed: "closed", fCancelled: "drafted", fUncleaned: "drafted"}

var foreignClaim = map[int]string{fClaimed: "claimed", fDispatching: "dispatching", fUnknown: "unknown", fSent: "delivered", fCancelled: "cancelled"}

// foreignRows has an obligation in every state.
func foreignRows() string {
	var b strings.Builder
	for id := fOpen; id <= fUncleaned; id++ {
		status := foreignStatus[id]
		text := fmt.Sprintf("text %d", id)
		hash := sha256.Sum256([]byte(text))
		sum := hex.EncodeToString(hash[:])
		channel := fmt.Sprintf("%d@example.com", id)
		switch id {
		case fWrongHash:
			sum = strings.Repeat("0", 64)
		case fUncleaned:
			channel += "\r\nBcc: all@example.com"
		}
		fmt.Fprintf(&b, "INSERT INTO obligations VALUES (%d, 'c%d', 'smtp', '%s', 'we_owe_them', '%s', 'summary', 1000, 2000, 3000);\n", id, id, channel, status)
		if id == fOpen {
			continue
		}
		fmt.Fprintf(&b, "INSERT INTO obligation_drafts VALUES (%d, '%s', 'context', 'smtp', '%s', NULL, 'u', 'P1', '%s', 1000, 2000, NULL, %d);\n", id, text, channel, sum, fOpen)
		if status == "approved" || status == "sent" || id == fCancelled {
			fmt.Fprintf(&b, "INSERT INTO obligation_decisions VALUES (%d, %d, 'approve', 'zoe', 2000, 'n%d', 3000);\n", id+100, id, id)
			fmt.Fprintf(&b, "INSERT INTO obligation_approval_snapshots VALUES (%d, %d, 3000, '%s', '%s', 'smtp', '%s', NULL, 'draft_sent');\n", id+100, id, text, sum, channel)
		}
	}
	for id := fOpen; id <= fUncleaned; id++ {
		state := foreignClaim[id]
		if state == "" {
			continue
		}
		fmt.Fprintf(&b, "INSERT INTO obligation_delivery_claims VALUES (%d, %d, 't%d', '%s', 2000, 2000, NULL);\n", id, id+100, id, state)
	}
	fmt.Fprintf(&b, "INSERT INTO obligation_decisions VALUES (%d, %d, 'reject', 'zoe', 2000, 'n%d', 3000);\n", fRejected+100, fRejected, fRejected)
	fmt.Fprintf(&b, "INSERT INTO obligation_deliveries VALUES (1, %d, %d, 'draft_sent', '250 ok', 2000), (2, %d, %d, 'reject_notice', NULL, 2000), (3, %d, NULL, 'manual_notice', 'by hand', 2000);\n",
		fSent, fSent+100, fRejected, fRejected+100, fClosed)
	return b.String()
}

// foreign is a ledger of another implementation, changed by the statements.
func foreign(t *testing.T, changes ...string) life {
	t.Helper()
	return foreignWith(t, foreignTables, changes...)
}

func foreignWith(t *testing.T, ddl string, changes ...string) life {
	t.Helper()
	l := life{path: filepath.Join(t.TempDir(), "foreign?.db")}
	if err := os.WriteFile(l.path, sqliteFile(t, ddl+foreignRows()+strings.Join(changes, ";")), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}
