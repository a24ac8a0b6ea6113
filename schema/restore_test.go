package schema_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/ledger"
	"countersign/schema"
)

const staleGuard = `DROP TRIGGER guard_filings_delete;
	CREATE TRIGGER guard_filings_delete BEFORE DELETE ON filings WHEN OLD.id > 5 BEGIN SELECT RAISE(ABORT, 'guard: filings are append-only'); END`

// A ledger that had lost a guard could be used no more, and nothing put the guard back.
func TestLostGuardsAreRestored(t *testing.T) {
	for name, test := range map[string]struct {
		damage   string
		restored []string
	}{
		"a dropped guard":   {`DROP TRIGGER guard_claims_delete`, []string{"trigger guard_claims_delete, missing"}},
		"an altered guard":  {staleGuard, []string{"trigger guard_filings_delete, altered"}},
		"a foreign trigger": {`CREATE TRIGGER mirror AFTER INSERT ON audit_log BEGIN SELECT 1; END`, []string{"trigger mirror, not one of the ledger's own"}},
		"a dropped index":   {`DROP INDEX claims_one_active`, []string{"index claims_one_active, missing"}},
		"an altered index": {`DROP INDEX obligations_one_draft; CREATE INDEX obligations_one_draft ON obligations (counterparty)`,
			[]string{"index obligations_one_draft, altered"}},
		"a foreign index": {`CREATE UNIQUE INDEX one_a_day ON audit_log (id, at_us)`, []string{"index one_a_day, not one of the ledger's own"}},
		"several": {`DROP TRIGGER guard_meta_update; DROP INDEX audit_by_obligation`,
			[]string{"index audit_by_obligation, missing", "trigger guard_meta_update, missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := lived(t)
			l.plain(t, test.damage).Close()
			want[*schema.GuardError](t, l.open(t))
			before := dump(t, l.plain(t))
			opened, out := upgraded(t, l)
			if !out.Changed || !slices.Equal(out.Restored, test.restored) {
				t.Errorf("%+v", out)
			}
			if checked, err := opened.Check(t.Context()); err != nil || !checked.OK {
				t.Errorf("%q, %v", checked.Problems, err)
			}
			conn := l.plain(t)
			if lost := missingLine(before, dump(t, conn)); lost != "" {
				t.Errorf("a row changed: %s", lost)
			}
			aborted(t, conn, dump(t, conn), `DELETE FROM filings`)
			audit, err := opened.Audit(t.Context(), ledger.AuditFilter{Limit: 1})
			if err != nil || audit[0].Event != "restored" || !strings.Contains(string(audit[0].Detail), test.restored[0]) {
				t.Errorf("audit %+v, %v", audit, err)
			}
			if got := dump(t, life{path: out.Backup}.plain(t)); got != before {
				t.Errorf("the backup differs:\n%s", firstDifference(before, got))
			}
		})
	}
}

// What was written while the guards were off can't be made sound by putting them back.
func TestGuardsAreNotRestoredOverWhatDoesNotFit(t *testing.T) {
	for name, test := range map[string]struct{ damage, names string }{
		"a receipt deleted":  {`DROP TRIGGER guard_deliveries_delete; DELETE FROM obligation_deliveries WHERE decision_id = {sent.decision}`, "is sent without a receipt"},
		"a text changed":     {`DROP TRIGGER guard_filings_update; UPDATE filings SET text = 'x' WHERE obligation_id = {drafted}`, "does not match its hash"},
		"an audit row gone":  {`DROP TRIGGER guard_audit_delete; DELETE FROM audit_log WHERE id = 3`, "does not follow its predecessor"},
		"markers unreadable": {`DROP TRIGGER guard_filings_update; UPDATE filings SET markers = 'x' WHERE obligation_id = {drafted}`, "markers that can't be read"},
	} {
		t.Run(name, func(t *testing.T) {
			l := lived(t)
			l.plain(t, test.damage).Close()
			stopped := upgradeStops[*schema.UpgradeStoppedError](t, l)
			if !strings.Contains(fmt.Sprint(stopped.Rows), test.names) {
				t.Errorf("%v doesn't name %q", stopped, test.names)
			}
		})
	}
}

func TestGuardsAreNotRestoredOnOtherTables(t *testing.T) {
	for object, damage := range map[string]string{
		"table pacing":      `DROP TABLE pacing`,
		"table obligations": `ALTER TABLE obligations RENAME COLUMN summary TO digest`,
		"table audit_log":   `ALTER TABLE audit_log ADD COLUMN note TEXT`,
	} {
		t.Run(object, func(t *testing.T) {
			l := lived(t)
			l.plain(t, `DROP TRIGGER guard_claims_delete; `+damage).Close()
			if guard := upgradeStops[*schema.GuardError](t, l); guard.Object != object {
				t.Errorf("%v", guard)
			}
		})
	}
}

// upgradeStops fails the test unless the upgrade is refused, and neither ledger nor backup was written.
func upgradeStops[T error](t *testing.T, l life) T {
	t.Helper()
	before := dump(t, l.plain(t))
	_, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions())
	refused := want[T](t, err)
	if after := dump(t, l.plain(t)); after != before {
		t.Errorf("the ledger was changed:\n%s", firstDifference(before, after))
	}
	if backups, err := filepath.Glob(filepath.Join(filepath.Dir(l.path), "*.backup-*")); err != nil || len(backups) > 0 {
		t.Errorf("%q, %v", backups, err)
	}
	return refused
}

func TestRestoringOverwritesNoBackup(t *testing.T) {
	l := lived(t)
	l.plain(t, `DROP TRIGGER guard_claims_delete`).Close()
	taken := l.path + ".backup-" + upgradeOptions().Now().UTC().Format("20060102T150405Z")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions()); err == nil {
		t.Error("a backup was overwritten, or not made")
	}
	l.refused(t, "trigger guard_claims_delete", "missing")
}
