package ledger_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

// tamper changes rows behind the ledger's back: the guards are taken off for it and put back exactly as they were.
func (d *desk) tamper(statements ...string) {
	d.t.Helper()
	tx, err := d.plain().Begin()
	must(d.t, err)
	defer tx.Rollback()
	guards := guardsOf(d.t, tx)
	for name := range guards {
		must(d.t, second(tx.Exec("DROP TRIGGER "+name)))
	}
	for _, statement := range statements {
		must(d.t, second(tx.Exec(statement)))
	}
	for _, text := range guards {
		must(d.t, second(tx.Exec(text)))
	}
	must(d.t, tx.Commit())
}

func guardsOf(t testing.TB, tx *sql.Tx) map[string]string {
	t.Helper()
	rows, err := tx.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
	must(t, err)
	defer rows.Close()
	guards := map[string]string{}
	for rows.Next() {
		var name, text string
		must(t, rows.Scan(&name, &text))
		guards[name] = text
	}
	must(t, rows.Err())
	return guards
}

// of narrows statements on whole tables to the rows of one obligation.
func of(id int64, statements []string) []string {
	var out []string
	for _, statement := range statements {
		key := "obligation_id"
		if strings.HasPrefix(statement, "UPDATE obligations ") {
			key = "id"
		}
		out = append(out, fmt.Sprintf("%s WHERE %s = %d", statement, key, id))
	}
	return out
}

// everywhere sets a column of each of the tables that hold a part of the one approval in the ledger.
func everywhere(changes map[string]string) []string {
	var out []string
	for table, change := range changes {
		out = append(out, fmt.Sprintf("UPDATE %s SET %s", table, change))
	}
	return out
}

func allHashes(value string) []string {
	return everywhere(map[string]string{
		"obligation_drafts":             "draft_sha256 = " + fmt.Sprintf(value, "draft_sha256"),
		"obligation_approval_snapshots": "draft_sha256 = " + fmt.Sprintf(value, "draft_sha256"),
		"approval_envelopes":            "text_sha256 = " + fmt.Sprintf(value, "text_sha256"),
		"filings":                       "text_sha256 = " + fmt.Sprintf(value, "text_sha256"),
	})
}

// tampered is every part of an approval, changed where it stands, and changed everywhere so that all copies agree.
func tampered() map[string][]string {
	out := map[string][]string{
		"epoch":                  {`UPDATE obligations SET updated_at = updated_at + 1`},
		"epoch of the snapshot":  {`UPDATE obligation_approval_snapshots SET draft_epoch = draft_epoch - 1`},
		"epoch of the filing":    {`UPDATE filings SET epoch = epoch + 1`},
		"markers":                {`UPDATE filings SET markers = 'no JSON'`},
		"markers that are null":  {`UPDATE filings SET markers = 'null'`},
		"direction":              {`UPDATE obligations SET direction = 'they_owe_us'`},
		"direction none":         {`UPDATE obligations SET direction = 'none'`},
		"hash in capitals":       allHashes("upper(%s)"),
		"hash that is too short": allHashes("substr(%s, 1, 63)"),
		"hash of nothing here":   allHashes("'" + strings.Repeat("ab", 32) + "'||substr(%s, 65)"),
		"text everywhere": everywhere(map[string]string{"obligation_drafts": "draft_text = 'x'", "obligation_approval_snapshots": "draft_text = 'x'",
			"filings": "text = 'x'"}),
		"subject everywhere": everywhere(map[string]string{"approval_envelopes": "subject = 'x'", "filings": "subject = 'x'"}),
		"channel everywhere": everywhere(map[string]string{"obligation_drafts": "origin_channel = 'x'", "obligation_approval_snapshots": "origin_channel = 'x'",
			"filings": "channel = 'x'", "approval_envelopes": "channel = 'x'", "obligations": "channel = 'x'"}),
		"thread everywhere": everywhere(map[string]string{"obligation_drafts": "origin_thread = 'x'", "obligation_approval_snapshots": "origin_thread = 'x'",
			"filings": "thread = 'x'", "approval_envelopes": "thread = 'x'"}),
		"no snapshot": {`DELETE FROM approval_envelopes`, `DELETE FROM obligation_approval_snapshots`},
		"no envelope": {`DELETE FROM approval_envelopes`},
		"no draft":    {`DELETE FROM obligation_drafts`},
	}
	for _, status := range []string{"open", "drafted", "rejected", "sent", "closed"} {
		out["status "+status] = []string{fmt.Sprintf(`UPDATE obligations SET status = '%s'`, status)}
	}
	for table, columns := range map[string]string{
		"obligations":                   "source channel counterparty",
		"obligation_drafts":             "draft_text draft_sha256 origin_platform origin_channel origin_thread",
		"obligation_approval_snapshots": "draft_text draft_sha256 origin_platform origin_channel origin_thread",
		"approval_envelopes":            "counterparty platform channel thread subject text_sha256 envelope_sha256",
		"filings":                       "counterparty platform channel thread subject text text_sha256 envelope_sha256",
	} {
		for _, column := range strings.Fields(columns) {
			out[table+"."+column] = []string{fmt.Sprintf(`UPDATE %s SET %s = 'changed'`, table, column)}
		}
	}
	return out
}

// refusal fails the test unless err is one of the typed answers to an approval that doesn't hold any more.
func refusal(t *testing.T, name string, err error) {
	t.Helper()
	if !is[*ledger.MismatchError](err) && !is[*ledger.StaleEpochError](err) {
		t.Fatalf("%s: got %v, want a typed refusal", name, err)
	}
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func TestAChangedApprovalCantBeClaimed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var changes []string
	approvals := map[string]ledger.Decided{}
	for name, statements := range tampered() {
		d.party = name
		approvals[name] = d.approved("one")
		changes = append(changes, of(approvals[name].ObligationID, statements)...)
	}
	d.tamper(changes...)
	for name, v := range approvals {
		d.party = name
		_, err := d.Claim(t.Context(), v.DecisionID, "w1")
		refusal(t, name, err)
		if n := d.count(`SELECT count(*) FROM obligation_delivery_claims`); n != 0 {
			t.Errorf("%s: %d claims were made", name, n)
		}
		if n := d.count(`SELECT count(*) FROM audit_log WHERE event = 'refused' AND obligation_id = $1 AND decision_id = $2`, v.ObligationID, v.DecisionID); n != 1 {
			t.Errorf("%s: %d refusals were recorded, want 1", name, n)
		}
		d.noDeadEnd(name, v.ObligationID)
	}
	d.opensAgain()
}

func TestAChangedApprovalCantBeginDispatch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var changes []string
	claims := map[string]ledger.Claim{}
	for name, statements := range tampered() {
		d.party = name
		claims[name] = d.claim(d.approved("one"))
		changes = append(changes, of(claims[name].ObligationID, statements)...)
	}
	d.tamper(changes...)
	for name, c := range claims {
		d.party = name
		payload, err := d.BeginDispatch(t.Context(), c)
		refusal(t, name, err)
		if payload != (ledger.Payload{}) {
			t.Errorf("%s: a payload came out: %+v", name, payload)
		}
		if n := d.count(`SELECT count(*) FROM obligation_delivery_claims WHERE decision_id = $1 AND state = 'cancelled'`, c.DecisionID); n != 1 {
			t.Errorf("%s: the claim was not given up", name)
		}
		if n := d.count(`SELECT count(*) FROM voided_approvals WHERE decision_id = $1 AND kind = 'cancelled' AND reason <> ''`, c.DecisionID); n != 1 {
			t.Errorf("%s: the reason was not stored", name)
		}
		_, err = d.BeginDispatch(t.Context(), c)
		want[*ledger.LostClaimError](t, err)
		d.noDeadEnd(name, c.ObligationID)
	}
	d.opensAgain()
}

// opensAgain fails the test unless all guards are in place.
func (d *desk) opensAgain() {
	d.t.Helper()
	must(d.t, d.open().Close())
}

// noDeadEnd fails the test unless the obligation is finished, or can be by an ordinary step, and its pair can be filed for.
func (d *desk) noDeadEnd(name string, id int64) {
	d.t.Helper()
	d.tick(time.Second)
	switch status := d.show(id).Status; status {
	case ledger.StatusSent, ledger.StatusClosed, ledger.StatusRejected:
	default:
		if _, err := d.CloseByHand(d.t.Context(), d.anna, id, "by telephone"); err != nil {
			d.t.Errorf("%s: the obligation is %s and can't be closed: %v", name, status, err)
		}
	}
	if _, err := d.File(d.t.Context(), d.clean(d.filing("what comes after")), ledger.Gates{}); err != nil {
		d.t.Errorf("%s: the pair can't be filed for: %v", name, err)
	}
}

// A changed row alone never helps anybody: the guards stop the change itself.
func TestARawChangeOfAnApprovalIsAborted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.approved("one")
	plain := d.plain()
	for name, statements := range tampered() {
		for _, statement := range statements {
			if strings.Contains(statement, "status = 'drafted'") || strings.Contains(statement, "status = 'closed'") {
				continue // lawful, and takes the approval out: see the next test
			}
			if _, err := plain.Exec(statement); err == nil {
				t.Errorf("%s: %s was accepted", name, statement)
			}
		}
	}
}

// What the guards let a plain connection do to an approval only ever takes it out.
func TestAnApprovalTakenBackByRawSQLIsNotClaimed(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"drafted again": `UPDATE obligations SET status = 'drafted', updated_at = updated_at + 1`,
		"closed":        `UPDATE obligations SET status = 'closed'`,
		"voided":        `INSERT INTO voided_approvals VALUES (1, 1, 'revoked', 'eve', 'raw', NULL, 1)`,
		"claimed and cancelled": `INSERT INTO obligation_delivery_claims VALUES (1, 1, 'raw', 'claimed', 1, 1, NULL);
			UPDATE obligation_delivery_claims SET state = 'cancelled'`,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			v := d.approved("one")
			_, err := d.plain().Exec(statement)
			must(t, err)
			if offered, err := d.Destinations(t.Context(), ledger.DeliverFilter{}); err != nil || len(offered) != 0 {
				t.Errorf("it is offered to workers: %v, %v", offered, err)
			}
			_, err = d.Claim(t.Context(), v.DecisionID, "w1")
			if !is[*ledger.VoidedError](err) {
				refusal(t, name, err)
			}
			if d.show(v.ObligationID).Status == ledger.StatusApproved { // left half way, and an operator can end it
				_, err = d.Revoke(t.Context(), ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "somebody meddled"})
				must(t, err)
			}
			d.noDeadEnd(name, v.ObligationID)
		})
	}
}

func TestAWaitingObligationThatRawSQLMadeIsNoDeadEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.plain().Exec(`INSERT INTO obligations VALUES (1, 'acme', 'smtp', 'buyer@acme.example', 'we_owe_them', 'drafted', NULL, 1, 1, 1)`)
	must(t, err)
	_, err = d.Decide(t.Context(), ledger.Decision{ObligationID: 1, Epoch: 1, Verdict: ledger.Approve, Operator: d.anna})
	want[*ledger.MismatchError](t, err)
	filed := d.file(filing("the text that it lacked"))
	if !filed.Refiled || filed.ObligationID != 1 {
		t.Errorf("%+v", filed)
	}
	d.noDeadEnd("made by raw SQL", 1)
}
