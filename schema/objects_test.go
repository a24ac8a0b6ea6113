package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/ledger"
	"countersign/schema"
)

// open opens the ledger as any user of it does, and closes it again.
func (l life) open(t *testing.T) error {
	t.Helper()
	opened, err := ledger.Open(t.Context(), l.path, ledger.Options{})
	if err == nil {
		opened.Close()
	}
	return err
}

// refused fails the test unless opening says that the object is in the state.
func (l life) refused(t *testing.T, object, state string) {
	t.Helper()
	guard := want[*schema.GuardError](t, l.open(t))
	if guard.Path != l.path || guard.Object != object || guard.Problem != state {
		t.Errorf("%s %s: open says %v", object, state, guard)
	}
}

func TestALedgerThatHasLivedOpens(t *testing.T) {
	if err := lived(t).open(t); err != nil {
		t.Fatal(err)
	}
}

// TestCheckMissesAnyObject tries all of them; these are one of each kind, through the front door.
func TestAMissingObjectIsRefused(t *testing.T) {
	for _, object := range []string{"trigger guard_claims_delete", "index claims_one_active", "table prepare_backoff"} {
		l := lived(t)
		l.plain(t, "DROP "+object).Close()
		l.refused(t, object, "missing")
	}
}

func TestAnyAlteredObjectIsRefused(t *testing.T) {
	for object, change := range map[string]string{
		"trigger guard_claims_delete": `DROP TRIGGER guard_claims_delete;
			CREATE TRIGGER guard_claims_delete BEFORE DELETE ON obligation_delivery_claims BEGIN SELECT 1; END`,
		"trigger guard_audit_update": `DROP TRIGGER guard_audit_update;
			CREATE TRIGGER guard_audit_update BEFORE UPDATE OF actor ON audit_log BEGIN SELECT RAISE(ABORT, 'guard: the audit log is append-only'); END`,
		"trigger guard_filings_delete": `DROP TRIGGER guard_filings_delete;
			CREATE TRIGGER guard_filings_delete BEFORE DELETE ON filings WHEN OLD.id > 5 BEGIN SELECT RAISE(ABORT, 'guard: filings are append-only'); END`,
		"index obligations_one_draft": `DROP INDEX obligations_one_draft;
			CREATE INDEX obligations_one_draft ON obligations (counterparty, channel) WHERE status = 'drafted'`,
		"index claims_one_active": `DROP INDEX claims_one_active;
			CREATE UNIQUE INDEX claims_one_active ON obligation_delivery_claims (obligation_id) WHERE state IN ('claimed')`,
		"table audit_log":   `ALTER TABLE audit_log ADD COLUMN note TEXT`,
		"table obligations": `ALTER TABLE obligations RENAME COLUMN summary TO digest`,
	} {
		t.Run(object, func(t *testing.T) {
			l := lived(t)
			l.plain(t, change).Close()
			l.refused(t, object, "altered")
		})
	}
}

func TestAForeignTriggerIsRefused(t *testing.T) {
	l := lived(t)
	l.plain(t, `CREATE TRIGGER audit_mirror AFTER INSERT ON audit_log BEGIN SELECT 1; END`).Close()
	l.refused(t, "trigger audit_mirror", "not one of the ledger's own")
}

func TestAViewIsNoTable(t *testing.T) {
	l := lived(t)
	l.plain(t, `DROP TABLE prepare_backoff; CREATE VIEW prepare_backoff AS SELECT 1`).Close()
	l.refused(t, "table prepare_backoff", "missing")
}

func TestForeignTablesAndTheirIndexesAreLeftAlone(t *testing.T) {
	l := lived(t)
	l.plain(t, `CREATE TABLE crm_notes (id INTEGER PRIMARY KEY, note TEXT)`, `CREATE INDEX crm_search ON crm_notes (note)`).Close()
	if err := l.open(t); err != nil {
		t.Fatal(err)
	}
}

// A foreign UNIQUE index on a table of ours used to go unnoticed, and let every step fail that it did not like.
func TestAForeignIndexOnOurTablesIsRefused(t *testing.T) {
	for _, table := range []string{"audit_log (event, actor)", "FILINGS (agent)"} {
		l := lived(t)
		l.plain(t, `CREATE INDEX crm_search ON `+table).Close()
		l.refused(t, "index crm_search", "not one of the ledger's own")
	}
	l := lived(t)
	l.plain(t, `CREATE UNIQUE INDEX one_message_a_pair ON outbox (queued_us, obligation_id)`).Close()
	l.refused(t, "index one_message_a_pair", "not one of the ledger's own")
}

func TestAVersionThatNobodyWroteIsRefused(t *testing.T) {
	l := lived(t)
	l.plain(t, `PRAGMA user_version = 0`).Close()
	l.refused(t, "schema version 0", "not one of the ledger's own")
	_, err := ledger.Upgrade(t.Context(), l.path, ledger.Options{})
	want[*schema.GuardError](t, err)
}

func TestTheContractsTablesKeepTheirColumns(t *testing.T) {
	conn := lived(t).plain(t)
	for table, columns := range map[string]string{
		"obligations":                   "id INTEGER, counterparty TEXT, source TEXT, channel TEXT, direction TEXT, status TEXT, summary TEXT, opened_ts INTEGER, last_touch_ts INTEGER, updated_at INTEGER",
		"obligation_drafts":             "obligation_id INTEGER, draft_text TEXT, context TEXT, origin_platform TEXT, origin_channel TEXT, origin_thread TEXT, origin_user TEXT, priority TEXT, draft_sha256 TEXT, created_ts INTEGER, updated_ts INTEGER, auto_send_after INTEGER, signal_obligation_id INTEGER",
		"obligation_decisions":          "id INTEGER, obligation_id INTEGER, decision TEXT, operator TEXT, decided_ts INTEGER, nonce TEXT, draft_updated_ts INTEGER",
		"obligation_approval_snapshots": "decision_id INTEGER, obligation_id INTEGER, draft_epoch INTEGER, draft_text TEXT, draft_sha256 TEXT, origin_platform TEXT, origin_channel TEXT, origin_thread TEXT, kind TEXT",
		"obligation_delivery_claims":    "obligation_id INTEGER, decision_id INTEGER, token TEXT, state TEXT, created_ts INTEGER, updated_ts INTEGER, reconciliation_evidence TEXT",
		"obligation_deliveries":         "id INTEGER, obligation_id INTEGER, decision_id INTEGER, kind TEXT, coordinate TEXT, delivered_ts INTEGER",
	} {
		got := names(t, conn, `SELECT name || ' ' || type FROM pragma_table_info($1) ORDER BY cid`, table)
		if strings.Join(got, ", ") != columns {
			t.Errorf("%s has %s", table, strings.Join(got, ", "))
		}
	}
	if got := query(t, conn, `SELECT dflt_value FROM pragma_table_info('obligation_drafts') WHERE name = 'priority'`)[0][0]; got != "'P2'" {
		t.Errorf("default priority is %v", got)
	}
}

func TestTimesAreIntegersInUTC(t *testing.T) {
	conn := lived(t).plain(t)
	for _, table := range tables(t, conn) {
		for _, column := range names(t, conn, `SELECT name FROM pragma_table_info($1)`, table) {
			if !strings.HasSuffix(column, "_ts") && !strings.HasSuffix(column, "_us") {
				continue
			}
			for _, row := range query(t, conn, fmt.Sprintf(`SELECT typeof(%s), %s FROM %s WHERE %s IS NOT NULL`, column, column, table, column)) {
				// The ledger lived at one instant; a microsecond column holds it a million times over. Epochs may be a few seconds ahead.
				at := row[1].(int64)
				if strings.HasSuffix(column, "_us") {
					at /= 1_000_000
				}
				if row[0] != "integer" || at < 1_800_000_000 || at > 1_800_000_100 && at != 1_900_000_000 {
					t.Errorf("%s.%s holds %v", table, column, row)
				}
			}
		}
	}
}
