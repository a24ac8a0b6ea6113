package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/schema"
)

// Whatever was changed outside of the guards, `db check` finds it.
func TestCheckFindsWhatDoesNotFitTogether(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	reach := func(party string, step func() int64) int64 {
		d.party = party
		return step()
	}
	sent := func() int64 { return d.sent("one", 0).ObligationID }
	unknown := func() int64 { return d.unknown("one").ObligationID }
	noReceipt, wrongState, notSent := reach("a", sent), reach("b", sent), reach("c", sent)
	noSnapshot := reach("d", func() int64 { return d.approved("one").ObligationID })
	notApproved := reach("e", unknown)
	wrongText := reach("f", func() int64 { return d.file(d.filing("one")).ObligationID })
	checked, err := d.Check(t.Context())
	must(t, err)
	if !checked.OK || len(checked.Problems) != 0 || checked.LedgerID != d.ID() || checked.Version != schema.Version {
		t.Fatalf("a sound ledger: %+v", checked)
	}
	d.tamper(
		fmt.Sprintf(`DELETE FROM obligation_deliveries WHERE obligation_id = %d`, noReceipt),
		fmt.Sprintf(`UPDATE obligation_delivery_claims SET state = 'cancelled' WHERE obligation_id = %d`, wrongState),
		fmt.Sprintf(`UPDATE obligations SET status = 'approved' WHERE id = %d`, notSent),
		fmt.Sprintf(`UPDATE obligations SET updated_at = updated_at + 1 WHERE id = %d`, noSnapshot),
		fmt.Sprintf(`UPDATE obligations SET status = 'drafted' WHERE id = %d`, notApproved),
		fmt.Sprintf(`UPDATE filings SET text = 'x' WHERE obligation_id = %d`, wrongText),
		fmt.Sprintf(`UPDATE obligation_drafts SET draft_text = 'x' WHERE obligation_id = %d`, wrongText),
		`DELETE FROM audit_log WHERE id = 3`,
		`UPDATE settlements SET operator = 'x'`,
		`DELETE FROM obligation_decisions WHERE obligation_id = `+fmt.Sprint(noSnapshot),
	)
	must(t, second(d.plain().Exec(`DROP INDEX followups_by_obligation`)))
	checked, err = d.Check(t.Context())
	must(t, err)
	if checked.OK {
		t.Error("it is called sound")
	}
	for _, problem := range []string{
		fmt.Sprintf("obligation %d is sent without a receipt", noReceipt),
		"is delivered without a receipt",
		"belongs to a claim that is cancelled",
		fmt.Sprintf("obligation %d has a delivered claim and is approved", notSent),
		fmt.Sprintf("obligation %d is approved without a snapshot of its epoch", noSnapshot),
		fmt.Sprintf("obligation %d has a claim that is unknown and is drafted", notApproved),
		fmt.Sprintf("the filing of obligation %d does not match its hash", wrongText),
		fmt.Sprintf("the draft of obligation %d does not match its hash", wrongText),
		"audit row 4 does not follow its predecessor",
		"names a missing obligation_decisions",
		"index followups_by_obligation is missing",
	} {
		if !slices.ContainsFunc(checked.Problems, func(p string) bool { return strings.Contains(p, problem) }) {
			t.Errorf("it doesn't find that %s; it finds\n%s", problem, strings.Join(checked.Problems, "\n"))
		}
	}
}

func TestCheckFindsADamagedIndex(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.file(d.filing("one"))
	// The definition is put back at once, so that only the index's content lacks the row.
	must(t, second(d.plain().Exec(`PRAGMA writable_schema = ON;
		CREATE TEMP TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = 'obligations_waiting';
		UPDATE sqlite_schema SET sql = replace(sql, '''drafted''', '''sent''') WHERE name = 'obligations_waiting';
		PRAGMA writable_schema = RESET;
		REINDEX obligations_waiting;
		PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = (SELECT sql FROM kept) WHERE name = 'obligations_waiting';
		PRAGMA writable_schema = RESET`)))
	l := d.open()
	checked, err := l.Check(t.Context())
	must(t, err)
	if checked.OK || !strings.Contains(strings.Join(checked.Problems, "\n"), "integrity") {
		t.Errorf("%+v", checked)
	}
}
