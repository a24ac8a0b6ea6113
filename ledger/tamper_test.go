package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"countersign/ledger"
)

// tamper changes rows behind the ledger's back: the guards are taken off for it and put back exactly as they were.
func (d *desk) tamper(statements ...string) {
	d.t.Helper()
	tx, err := d.plain().Begin()
	must(d.t, err)
	defer tx.Rollback()
	rows, err := tx.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
	must(d.t, err)
	guards := map[string]string{}
	for rows.Next() {
		var name, text string
		must(d.t, rows.Scan(&name, &text))
		guards[name] = text
	}
	must(d.t, rows.Err())
	for name := range guards {
		_, err = tx.Exec("DROP TRIGGER " + name)
		must(d.t, err)
	}
	for _, statement := range statements {
		_, err = tx.Exec(statement)
		must(d.t, err)
	}
	for _, text := range guards {
		_, err = tx.Exec(text)
		must(d.t, err)
	}
	must(d.t, tx.Commit())
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
		"no snapshot":   {`DELETE FROM approval_envelopes`, `DELETE FROM obligation_approval_snapshots`},
		"no envelope":   {`DELETE FROM approval_envelopes`},
		"another draft": {`DELETE FROM obligation_drafts`},
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
func refusal(t *testing.T, err error) {
	t.Helper()
	switch {
	case is[*ledger.MismatchError](err), is[*ledger.StaleEpochError](err):
	default:
		t.Fatalf("got %v, want a typed refusal", err)
	}
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func TestAChangedApprovalCantBeClaimed(t *testing.T) {
	for name, statements := range tampered() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			v := d.approved("one")
			d.tamper(statements...)
			_, err := d.Claim(t.Context(), v.DecisionID, "w1")
			refusal(t, err)
			if n := d.count(`SELECT count(*) FROM obligation_delivery_claims`); n != 0 {
				t.Errorf("%d claims were made", n)
			}
			if n := d.count(`SELECT count(*) FROM audit_log WHERE event = 'refused' AND obligation_id = $1 AND decision_id = $2`, v.ObligationID, v.DecisionID); n != 1 {
				t.Errorf("%d refusals were recorded, want 1", n)
			}
			d.noDeadEnd(v.ObligationID)
		})
	}
}

func TestAChangedApprovalCantBeginDispatch(t *testing.T) {
	for name, statements := range tampered() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			v := d.approved("one")
			c := d.claim(v)
			d.tamper(statements...)
			payload, err := d.BeginDispatch(t.Context(), c)
			refusal(t, err)
			if payload != (ledger.Payload{}) {
				t.Errorf("a payload came out: %+v", payload)
			}
			if n := d.count(`SELECT count(*) FROM obligation_delivery_claims WHERE state = 'cancelled'`); n != 1 {
				t.Errorf("the claim was not given up")
			}
			if n := d.count(`SELECT count(*) FROM voided_approvals WHERE decision_id = $1 AND kind = 'cancelled' AND reason <> ''`, v.DecisionID); n != 1 {
				t.Errorf("the reason was not stored")
			}
			_, err = d.BeginDispatch(t.Context(), c)
			want[*ledger.LostClaimError](t, err)
			d.noDeadEnd(v.ObligationID)
		})
	}
}

// noDeadEnd fails the test unless the obligation can be finished, and its pair be filed for, by ordinary steps.
func (d *desk) noDeadEnd(id int64) {
	d.t.Helper()
	d.noDeadEndFor(id, filing("what comes after"))
}

func (d *desk) noDeadEndFor(id int64, next ledger.Filing) {
	d.t.Helper()
	d.tick(1e9)
	switch status := d.show(id).Status; status {
	case ledger.StatusSent, ledger.StatusClosed, ledger.StatusRejected:
	default:
		if _, err := d.CloseByHand(d.t.Context(), d.anna, id, "by telephone"); err != nil {
			d.t.Errorf("the obligation is %s and can't be closed: %v", status, err)
		}
	}
	filed, err := d.File(d.t.Context(), d.clean(next), ledger.Gates{})
	if err != nil {
		d.t.Fatalf("the pair can't be filed for: %v", err)
	}
	if got := d.decide(filed, ledger.Approve); got.Status != ledger.StatusApproved {
		d.t.Errorf("the new draft can't be approved: %+v", got)
	}
	d.begin(d.claim(ledger.Decided{DecisionID: int64(d.count(`SELECT max(id) FROM obligation_decisions`))}))
}

// A changed row alone never helps anybody: the guards stop the change itself.
func TestARawChangeOfAnApprovalIsAborted(t *testing.T) {
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
				refusal(t, err)
			}
			if d.show(v.ObligationID).Status == ledger.StatusApproved { // left half way, and an operator can end it
				_, err = d.Revoke(t.Context(), ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "somebody meddled"})
				must(t, err)
			}
			d.noDeadEnd(v.ObligationID)
		})
	}
}

func TestAWaitingObligationThatRawSQLMadeIsNoDeadEnd(t *testing.T) {
	d := newDesk(t)
	_, err := d.plain().Exec(`INSERT INTO obligations VALUES (7, 'acme', 'smtp', 'buyer@acme.example', 'we_owe_them', 'drafted', NULL, 1, 1, 1)`)
	must(t, err)
	_, err = d.Decide(t.Context(), ledger.Decision{ObligationID: 7, Epoch: 1, Verdict: ledger.Approve, Operator: d.anna})
	want[*ledger.MismatchError](t, err)
	filed := d.file(filing("the text that it lacked"))
	if !filed.Refiled || filed.ObligationID != 7 {
		t.Errorf("%+v", filed)
	}
	d.noDeadEnd(7)
}
