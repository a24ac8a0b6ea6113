package ledger

import (
	"context"
	"database/sql"
	"fmt"

	"countersign/schema"
)

// Checked is what `db check` found. Problems is empty for a sound ledger.
type Checked struct {
	OK       bool     `json:"ok"`
	LedgerID string   `json:"ledger_id"`
	Version  int      `json:"version"`
	Problems []string `json:"problems"`
}

// Check reads the whole file: its pages and indexes, references, guards, and whether core rows fit together.
func (l *Ledger) Check(ctx context.Context) (Checked, error) {
	out := Checked{LedgerID: l.id, Version: schema.Version, Problems: []string{}}
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		if err := schema.Check(ctx, tx, l.path); err != nil {
			out.Problems = append(out.Problems, err.Error())
		}
		found, err := unsound(ctx, tx)
		out.Problems = append(out.Problems, found...)
		return err
	})
	out.OK = err == nil && len(out.Problems) == 0
	return out, err
}

// unsound lists what is wrong with the rows, whatever guards there are.
func unsound(ctx context.Context, tx *sql.Tx) ([]string, error) {
	var found []string
	for _, check := range soundness {
		rows, err := tx.QueryContext(ctx, check)
		if err != nil {
			return nil, err
		}
		if err := collect(rows, &found); err != nil {
			return nil, err
		}
	}
	if err := wrongHashes(ctx, tx, &found); err != nil {
		return nil, err
	}
	err := unreadable(ctx, tx, &found)
	return found, err
}

// soundness are queries whose every row is a problem. The database's guards keep them empty; a file changed outside SQLite may not.
var soundness = []string{
	`SELECT 'integrity: ' || integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'`,
	`SELECT 'a row of ' || "table" || ' names a missing ' || "parent" FROM pragma_foreign_key_check`,
	`SELECT 'obligation ' || o.id || ' is sent without a receipt' FROM obligations o
		WHERE o.status = 'sent' AND NOT EXISTS (SELECT 1 FROM obligation_deliveries d WHERE d.obligation_id = o.id AND d.kind = 'draft_sent')`,
	`SELECT 'claim of decision ' || c.decision_id || ' is delivered without a receipt' FROM obligation_delivery_claims c
		WHERE c.state = 'delivered' AND NOT EXISTS (
			SELECT 1 FROM obligation_deliveries d WHERE d.obligation_id = c.obligation_id AND d.decision_id = c.decision_id)`,
	`SELECT 'obligation ' || o.id || ' has a delivered claim and is ' || o.status FROM obligations o
		JOIN obligation_delivery_claims c ON c.obligation_id = o.id WHERE c.state = 'delivered' AND o.status <> 'sent'`,
	`SELECT 'obligation ' || o.id || ' has a claim that is ' || c.state || ' and is ' || o.status FROM obligations o
		JOIN obligation_delivery_claims c ON c.obligation_id = o.id
		WHERE c.state IN ('claimed', 'dispatching', 'unknown') AND o.status <> 'approved'`,
	`SELECT 'receipt ' || d.id || ' belongs to a claim that is ' || c.state FROM obligation_deliveries d
		JOIN obligation_delivery_claims c ON c.decision_id = d.decision_id WHERE c.state <> 'delivered'`,
	`SELECT 'obligation ' || o.id || ' is approved without a snapshot of its epoch' FROM obligations o
		WHERE o.status = 'approved' AND NOT EXISTS (
			SELECT 1 FROM obligation_approval_snapshots s WHERE s.obligation_id = o.id AND s.draft_epoch = o.updated_at)`,
	`SELECT 'obligation ' || o.id || ' is approved, but its approval was taken out of circulation or used up' FROM obligations o
		WHERE o.status = 'approved'
			AND EXISTS (SELECT 1 FROM obligation_approval_snapshots s WHERE s.obligation_id = o.id AND s.draft_epoch = o.updated_at)
			AND NOT EXISTS (SELECT 1 FROM obligation_approval_snapshots s WHERE s.obligation_id = o.id AND s.draft_epoch = o.updated_at
				AND NOT EXISTS (SELECT 1 FROM voided_approvals v WHERE v.decision_id = s.decision_id)
				AND NOT EXISTS (SELECT 1 FROM obligation_delivery_claims c WHERE c.decision_id = s.decision_id AND c.state IN ('cancelled', 'delivered')))`,
	`SELECT 'the newest filing of obligation ' || f.obligation_id || ' is of a later epoch than the obligation' FROM filings f
		JOIN obligations o ON o.id = f.obligation_id WHERE f.epoch > o.updated_at`,
	`SELECT 'audit row ' || a.id || ' does not follow its predecessor' FROM audit_log a
		WHERE a.id > 1 AND NOT EXISTS (SELECT 1 FROM audit_log b WHERE b.id = a.id - 1)`,
}

func collect(rows *sql.Rows, into *[]string) error {
	defer rows.Close()
	for rows.Next() {
		var problem string
		if err := rows.Scan(&problem); err != nil {
			return err
		}
		*into = append(*into, problem)
	}
	return rows.Err()
}

// wrongHashes recomputes what SQL can't.
func wrongHashes(ctx context.Context, tx *sql.Tx, into *[]string) error {
	rows, err := tx.QueryContext(ctx, `
		SELECT obligation_id, 'draft', draft_text, draft_sha256 FROM obligation_drafts
		UNION ALL SELECT obligation_id, 'snapshot', draft_text, draft_sha256 FROM obligation_approval_snapshots
		UNION ALL SELECT obligation_id, 'filing', text, text_sha256 FROM filings`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var what, text, hash string
		if err := rows.Scan(&id, &what, &text, &hash); err != nil {
			return err
		}
		if HashText(text) != hash {
			*into = append(*into, fmt.Sprintf("the %s of obligation %d does not match its hash", what, id))
		}
	}
	return rows.Err()
}

// unreadable finds what the readers show as such.
func unreadable(ctx context.Context, tx *sql.Tx, into *[]string) error {
	rows, err := tx.QueryContext(ctx, `SELECT obligation_id, markers FROM filings`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var markers string
		if err := rows.Scan(&id, &markers); err != nil {
			return err
		}
		if _, readable := readMarkers(markers); !readable {
			*into = append(*into, fmt.Sprintf("a filing of obligation %d has markers that can't be read", id))
		}
	}
	return rows.Err()
}
