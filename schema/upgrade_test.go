package schema_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/schema"
)

func upgradeOptions() ledger.Options {
	return ledger.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
}

// upgraded upgrades the foreign ledger and opens it.
func upgraded(t *testing.T, l life) (*ledger.Ledger, ledger.Upgraded) {
	t.Helper()
	out, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions())
	if err != nil {
		t.Fatal(err)
	}
	opened, err := ledger.Open(t.Context(), l.path, upgradeOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened, out
}

// coreRows are the rows of the six tables, and of a table that is not ours.
func coreRows(t *testing.T, conn *sql.Conn) string {
	t.Helper()
	var out []string
	for _, table := range append([]string{"crm_notes"}, schema.CoreTables...) {
		var rows []string
		for _, row := range rowsOf(t, conn, table) {
			rows = append(rows, fmt.Sprintf("%s %#v", table, row))
		}
		slices.Sort(rows)
		out = append(out, rows...)
	}
	return strings.Join(out, "\n")
}

func TestUpgradeKeepsEveryRowAndReplacesTheGuards(t *testing.T) {
	l := foreign(t)
	before := coreRows(t, l.plain(t))
	opened, out := upgraded(t, l)
	if !out.Changed {
		t.Error("it says that nothing changed")
	}
	conn := l.plain(t)
	if after := coreRows(t, conn); after != before {
		t.Errorf("rows changed:\n%s", firstDifference(before, after))
	}
	aborted(t, conn, dump(t, conn), "DELETE FROM obligation_delivery_claims")
	if left := query(t, conn, `SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name NOT LIKE 'guard_%'`); len(left) != 0 {
		t.Errorf("foreign triggers are left: %v", left)
	}
	checked, err := opened.Check(t.Context())
	if err != nil || fmt.Sprint(checked.Problems) != fmt.Sprintf("[the draft of obligation %d does not match its hash]", fWrongHash) {
		t.Errorf("check: %q, %v", checked.Problems, err)
	}
	if opened.ID() == "" {
		t.Error("it has no ledger id")
	}
	audit, err := opened.Audit(t.Context(), ledger.AuditFilter{})
	if err != nil || len(audit) != 1 || audit[0].Event != "upgraded" {
		t.Errorf("audit %v, %v", audit, err)
	}
}

func TestUpgradeBacksUpFirst(t *testing.T) {
	l := foreign(t)
	before := coreRows(t, l.plain(t))
	_, out := upgraded(t, l)
	info, err := os.Stat(out.Backup)
	if err != nil || info.Mode() != 0o600 || filepath.Dir(out.Backup) != filepath.Dir(l.path) {
		t.Fatalf("backup %q: %v, %v", out.Backup, info, err)
	}
	backup := life{path: out.Backup}
	if got := coreRows(t, backup.plain(t)); got != before {
		t.Errorf("the backup differs:\n%s", firstDifference(before, got))
	}
	want[*schema.UpgradeError](t, backup.open(t))
}

func TestUpgradeOverwritesNoBackup(t *testing.T) {
	l := foreign(t)
	taken := l.path + ".backup-" + upgradeOptions().Now().UTC().Format("20060102T150405Z")
	if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := content(t, filepath.Dir(l.path))
	if _, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions()); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	unchanged(t, filepath.Dir(l.path), before)
}

func TestUpgradeOfAnOwnLedgerDoesNothing(t *testing.T) {
	l := lived(t)
	before := content(t, filepath.Dir(l.path))
	out, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions())
	if err != nil || out.Changed || out.Backup != "" || len(out.Manual) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
	unchanged(t, filepath.Dir(l.path), before)
}

func TestUpgradeStopsUntouched(t *testing.T) {
	untyped := strings.Replace(foreignTables, "updated_at INTEGER", "updated_at", 1)
	untypedText := strings.Replace(foreignTables, "counterparty TEXT", "counterparty", 1)
	for name, test := range map[string]struct {
		ddl, change string
		names       string // what the refusal has to name
	}{
		"text in an integer column":     {untyped, `UPDATE obligations SET updated_at = '7' WHERE id = 2`, "obligations.updated_at, id 2: text, want integer"},
		"a float in an integer":         {foreignTables, `UPDATE obligation_drafts SET created_ts = 1.5 WHERE obligation_id = 3`, "obligation_drafts.created_ts, obligation_id 3: real, want integer"},
		"a number in a text column":     {untypedText, `UPDATE obligations SET counterparty = 7 WHERE id = 2`, "obligations.counterparty, id 2: integer, want text"},
		"bytes in a text column":        {foreignTables, `UPDATE obligation_drafts SET draft_text = x'00ff' WHERE obligation_id = 3`, "obligation_drafts.draft_text, obligation_id 3: blob, want text"},
		"nothing where there must be":   {foreignTables, `UPDATE obligation_decisions SET operator = NULL WHERE id = 104`, "obligation_decisions.operator, id 104: null, want text"},
		"duplicate drafts":              {foreignTables, `UPDATE obligations SET counterparty = 'c2', channel = '2@example.com' WHERE id = 3`, "obligations 2, 3"},
		"another column":                {foreignTables, `ALTER TABLE obligation_deliveries ADD COLUMN weight INTEGER`, "obligation_deliveries has"},
		"an unknown status":             {foreignTables, `UPDATE obligations SET status = 'paused' WHERE id = 1`, "obligation 1: paused/we_owe_them"},
		"an unknown direction":          {foreignTables, `UPDATE obligations SET direction = 'both' WHERE id = 1`, "obligation 1: open/both"},
		"an unknown priority":           {foreignTables, `UPDATE obligation_drafts SET priority = 'P9' WHERE obligation_id = 2`, "draft of obligation 2: priority P9"},
		"an unknown decision":           {foreignTables, `UPDATE obligation_decisions SET decision = 'allow' WHERE id = 104`, "decision 104: allow"},
		"an empty nonce":                {foreignTables, `UPDATE obligation_decisions SET nonce = '' WHERE id = 104`, "decision 104"},
		"an unknown kind":               {foreignTables, `UPDATE obligation_deliveries SET kind = 'postcard' WHERE id = 1`, "receipt 1: postcard"},
		"an unknown state":              {foreignTables, `UPDATE obligation_delivery_claims SET state = 'paused' WHERE decision_id = 107`, "claim of decision 107: paused"},
		"an empty token":                {foreignTables, `UPDATE obligation_delivery_claims SET token = '' WHERE decision_id = 107`, "claim of decision 107"},
		"a nonce twice":                 {foreignTables, `UPDATE obligation_decisions SET nonce = 'n4' WHERE id = 105`, "nonce of decisions 104, 105"},
		"a token twice":                 {foreignTables, `UPDATE obligation_delivery_claims SET token = 't6' WHERE decision_id = 107`, "token of the claims of decisions 106, 107"},
		"an id twice":                   {foreignTables, `UPDATE obligation_decisions SET id = 104 WHERE id = 105`, "decision 104"},
		"a receipt twice":               {foreignTables, `UPDATE obligation_deliveries SET obligation_id = 8, decision_id = 108 WHERE id = 2`, "receipts 1, 2"},
		"an id that isn't positive":     {foreignTables, `UPDATE obligation_deliveries SET id = -1 WHERE id = 3`, "receipt -1"},
		"an id that is the last":        {foreignTables, `UPDATE obligation_deliveries SET id = 9223372036854775807 WHERE id = 3`, "receipt 9223372036854775807"},
		"two active claims":             {foreignTables, `UPDATE obligation_delivery_claims SET obligation_id = 6 WHERE decision_id = 107`, "obligation 6"},
		"two claims for a decision":     {foreignTables, `UPDATE obligation_delivery_claims SET decision_id = 106 WHERE decision_id = 108`, "decision 106"},
		"a claim on what is drafted":    {foreignTables, `UPDATE obligation_delivery_claims SET state = 'unknown' WHERE decision_id = 111`, "obligation 11: drafted, its claim is unknown"},
		"a draft for elsewhere":         {foreignTables, `UPDATE obligation_drafts SET origin_channel = 'x' WHERE obligation_id = 2`, "obligation 2"},
		"nothing drafted":               {foreignTables, `DELETE FROM obligation_drafts WHERE obligation_id = 4`, "obligation 4"},
		"a claim without a snapshot":    {foreignTables, `DELETE FROM obligation_approval_snapshots WHERE decision_id = 108`, "obligation_approval_snapshots"},
		"a draft of nothing":            {foreignTables, `DELETE FROM obligations WHERE id = 10`, "obligations"},
		"a table under a name of ours":  {foreignTables, `CREATE TABLE Filings (id INTEGER PRIMARY KEY, note TEXT)`, "table Filings"},
		"a view under a name of ours":   {foreignTables, `CREATE VIEW notices AS SELECT 1`, "view notices"},
		"an index under a name of ours": {foreignTables, `CREATE INDEX decisions_by_obligation ON crm_notes (note)`, "index decisions_by_obligation"},
	} {
		t.Run(name, func(t *testing.T) {
			l := foreignWith(t, test.ddl, test.change)
			before := content(t, filepath.Dir(l.path))
			_, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions())
			stopped := want[*schema.UpgradeStoppedError](t, err)
			if stopped.Path != l.path || !strings.Contains(strings.Join(stopped.Rows, "\n"), test.names) {
				t.Errorf("%v doesn't name %q", stopped, test.names)
			}
			if name != "a claim without a snapshot" && name != "a draft of nothing" { // these are found last, after the backup
				unchanged(t, filepath.Dir(l.path), before)
			}
			if got := content(t, filepath.Dir(l.path))[filepath.Base(l.path)]; got != before[filepath.Base(l.path)] {
				t.Error("the ledger was changed")
			}
		})
	}
}

// A writer comes between the checks and the write lock: its row is kept when it is sound, and stops the upgrade when it isn't.
func TestUpgradeSeesWhatAWriterAddsMeanwhile(t *testing.T) {
	for name, test := range map[string]struct {
		statement string
		upgrades  bool
	}{
		"a sound row":     {`INSERT INTO obligations VALUES (50, 'c50', 'smtp', 'x', 'none', 'open', 's', 1, 1, 1)`, true},
		"a second draft":  {`INSERT INTO obligations VALUES (50, 'c2', 'smtp', '2@example.com', 'we_owe_them', 'drafted', 's', 1, 1, 1)`, false},
		"our application": {fmt.Sprintf(`PRAGMA application_id = %d`, schema.ApplicationID), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := foreign(t)
			writer := l.plain(t, `PRAGMA busy_timeout = 5000`, `BEGIN IMMEDIATE`, test.statement)
			done := make(chan error, 1)
			go func() {
				_, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions())
				done <- err
			}()
			awaitBackup(t, l, done) // the checks are done, the lock is not to be had yet
			if _, err := writer.ExecContext(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
			err := <-done
			if test.upgrades {
				if err != nil {
					t.Fatal(err)
				}
				if rows := query(t, l.plain(t), `SELECT id FROM obligations WHERE id = 50`); len(rows) != 1 {
					t.Error("the writer's row is lost")
				}
				return
			}
			want[*schema.UpgradeStoppedError](t, err)
			if tables(t, l.plain(t))[0] != "crm_notes" || len(tables(t, l.plain(t))) != 7 {
				t.Error("the ledger was changed")
			}
		})
	}
}

func awaitBackup(t *testing.T, l life, done <-chan error) {
	t.Helper()
	for {
		select {
		case err := <-done:
			t.Fatalf("the upgrade ended before it had the lock: %v", err)
		default:
		}
		if backups, err := filepath.Glob(filepath.Join(filepath.Dir(l.path), "*.backup-*")); err != nil || len(backups) > 0 {
			return
		}
		runtime.Gosched()
	}
}

func TestUpgradeWaitsForAWriterAndGivesUpBusy(t *testing.T) {
	l := foreign(t)
	l.plain(t, `BEGIN IMMEDIATE`)
	before := coreRows(t, l.plain(t))
	opts := upgradeOptions()
	opts.BusyTimeout = 20 * time.Millisecond
	if _, err := ledger.Upgrade(t.Context(), l.path, opts); !errors.Is(err, ledger.ErrBusy) {
		t.Errorf("got %v", err)
	}
	if after := coreRows(t, l.plain(t)); after != before {
		t.Error("the ledger was changed")
	}
}

func TestTwoUpgradesAtOnce(t *testing.T) {
	l := foreign(t)
	results := make(chan bool, 2)
	for i := range 2 {
		opts := ledger.Options{Now: func() time.Time { return time.Unix(1_800_000_000+int64(i), 0) }}
		go func() {
			out, err := ledger.Upgrade(t.Context(), l.path, opts)
			results <- err == nil && out.Changed
		}()
	}
	if first, second := <-results, <-results; first == second {
		t.Errorf("upgraded: %v, %v; want one", first, second)
	}
	if err := l.open(t); err != nil {
		t.Error(err)
	}
}
