package schema_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"countersign/ledger"
	"countersign/schema"
)

// version1 is a ledger of the first version, whose guards let raw SQL write what those of today refuse.
func version1(t *testing.T, rows ...string) life {
	t.Helper()
	ddl, err := os.ReadFile("sqlite/migrations/0001_ledger.sql")
	if err != nil {
		t.Fatal(err)
	}
	l := life{path: filepath.Join(t.TempDir(), "ledger.db")}
	text := string(ddl) + fmt.Sprintf(`;
		PRAGMA application_id = %d; PRAGMA user_version = 1; INSERT INTO ledger_meta VALUES ('ledger_id', 'first');`, schema.ApplicationID)
	if err := os.WriteFile(l.path, sqliteFile(t, text+strings.Join(rows, ";")), 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

// waiting is a draft for the channel, at an epoch, with markers.
func waiting(id int, epoch int64, markers string) string {
	hash, channel := ledger.HashText("text"), fmt.Sprintf("%d@example.com", id)
	envelope, err := ledger.Envelope{Platform: "smtp", Channel: channel, TextSHA256: hash}.Hash()
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`
		INSERT INTO obligations VALUES (%[1]d, 'c', 'smtp', '%[2]s', 'we_owe_them', 'drafted', 's', 1, 1, %[3]d);
		INSERT INTO obligation_drafts VALUES (%[1]d, 'text', 'c', 'smtp', '%[2]s', NULL, NULL, 'P2', '%[4]s', 1, 1, NULL, NULL);
		INSERT INTO filings VALUES (NULL, %[1]d, %[3]d, 'quoter', NULL, 'c', 'smtp', '%[2]s', NULL, NULL, NULL, 'text', '%[4]s', '%[5]s', 'x', 'P2', 's', 'c', '%[6]s', NULL, NULL, 0, '{}', 1);
		INSERT INTO audit_log VALUES (NULL, 1, 'staged', 'filing', 'quoter', %[1]d, NULL, 'no JSON')`, id, channel, epoch, hash, envelope, markers)
}

// One row that raw SQL had written used to make the whole list, and the whole log, unreadable.
func TestRowsThatCantBeReadAreShownAsSuch(t *testing.T) {
	unreadable := []string{"no JSON", "null", `{"a": 1}`, `["x", null]`, `[1]`, "", "[]"}
	var rows []string
	for i, markers := range unreadable {
		rows = append(rows, waiting(i+1, 7, markers))
	}
	a := adopt(t, version1(t, rows...))
	list, err := a.Waiting(t.Context(), ledger.ListFilter{})
	if err != nil || len(list) != len(unreadable) {
		t.Fatalf("%d listed, %v", len(list), err)
	}
	for i, markers := range unreadable {
		id, readable := int64(i+1), markers == "[]"
		if got := slices.Equal(list[i].Markers, []string{"[UNREADABLE MARKERS]"}); got == readable {
			t.Errorf("%q is listed as %q", markers, list[i].Markers)
		}
		shown, err := a.Show(t.Context(), id)
		if err != nil || !slices.Equal(shown.Filings[0].Markers, list[i].Markers) || string(shown.Audit[0].Detail) != `{"unreadable":"no JSON"}` {
			t.Errorf("%q is shown as %+v, %v", markers, shown, err)
		}
		if _, err = a.approve(id); readable && err != nil {
			t.Errorf("%q can't be approved: %v", markers, err)
		} else if !readable {
			want[*ledger.MismatchError](t, err)
		}
	}
	if checked, err := a.Check(t.Context()); err != nil || len(checked.Problems) != len(unreadable)-1 {
		t.Errorf("%q, %v", checked.Problems, err)
	}
}

// An epoch of 2^63 - 1 used to overflow into the past at the next step.
func TestAnEpochAtTheEndOfTimeHasAWayOut(t *testing.T) {
	a := adopt(t, version1(t, waiting(1, math.MaxInt64, "[]"), waiting(2, math.MaxInt64, "[]"), waiting(3, 1<<53-1, "[]")))
	for _, id := range []int64{1, 2, 3} {
		draft, err := ledger.Clean(ledger.Filing{Counterparty: "c", Platform: "smtp", Channel: fmt.Sprintf("%d@example.com", id), Text: "anew", Agent: "quoter"},
			ledger.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.File(t.Context(), draft, ledger.Gates{})
		want[*ledger.GuardError](t, err)
		epoch := a.epoch(id)
		if id > 1 { // an approval that is taken back can't wait at a new epoch: it is closed
			v, err := a.approve(id)
			if err == nil {
				_, err = a.Claim(t.Context(), v.DecisionID, "w1")
			}
			if err == nil {
				_, err = a.CancelByOperator(t.Context(), a.op, id, "a typo")
			}
			if err != nil {
				t.Fatal(err)
			}
		} else if _, err := a.CloseByHand(t.Context(), a.op, id, "by telephone"); err != nil {
			t.Fatal(err)
		}
		if shown, err := a.Show(t.Context(), id); err != nil || shown.Status != ledger.StatusClosed || shown.Epoch != epoch {
			t.Errorf("%s at %d, %v", shown.Status, shown.Epoch, err)
		}
		if filed, err := a.File(t.Context(), draft, ledger.Gates{}); err != nil || filed.Refiled {
			t.Errorf("%+v, %v", filed, err)
		}
	}
}

func TestAnOlderLedgerLosesItsForeignIndexes(t *testing.T) {
	l := version1(t, `CREATE UNIQUE INDEX one_a_day ON audit_log (event)`, `DROP INDEX claims_one_active`)
	opened, _ := upgraded(t, l)
	if checked, err := opened.Check(t.Context()); err != nil || !checked.OK {
		t.Errorf("%q, %v", checked.Problems, err)
	}
}

// An older ledger with other tables than its version's used to be upgraded, and then refused by Open.
func TestAnOlderLedgerWithOtherTablesIsNotUpgraded(t *testing.T) {
	l := version1(t, `ALTER TABLE audit_log ADD COLUMN note TEXT`)
	_, err := ledger.Upgrade(t.Context(), l.path, upgradeOptions())
	if guard := want[*schema.GuardError](t, err); guard.Object != "table audit_log" {
		t.Error(guard)
	}
	want[*schema.UpgradeError](t, l.open(t))
}
