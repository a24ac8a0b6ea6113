package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"
)

// AuditEntry is one row of the audit log.
type AuditEntry struct {
	ID           int64           `json:"id"`
	AtUS         int64           `json:"at_us"` // Unix microseconds
	Event        string          `json:"event"`
	Source       string          `json:"source"`
	Actor        string          `json:"actor"`
	ObligationID *int64          `json:"obligation_id"`
	DecisionID   *int64          `json:"decision_id"`
	Detail       json.RawMessage `json:"detail"`
}

// AuditFilter narrows the audit log. The zero filter is everything.
type AuditFilter struct {
	ObligationID        int64
	Actor, Counterparty string
	Since, Until        time.Time
	Limit               int // the newest so many; 0 is no limit
}

// Audit returns the log's rows, oldest first.
func (l *Ledger) Audit(ctx context.Context, f AuditFilter) ([]AuditEntry, error) {
	var out []AuditEntry
	err := l.inRead(ctx, func(tx *sql.Tx) (err error) {
		out, err = readAudit(ctx, tx, f)
		return err
	})
	return out, err
}

func readAudit(ctx context.Context, tx *sql.Tx, f AuditFilter) ([]AuditEntry, error) {
	limit := int64(f.Limit)
	if limit <= 0 {
		limit = 1 << 62
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT id, at_us, event, source, actor, obligation_id, decision_id, detail FROM (
			SELECT a.id, a.at_us, a.event, a.source, a.actor, a.obligation_id, a.decision_id, a.detail
			FROM audit_log a LEFT JOIN obligations o ON o.id = a.obligation_id
			WHERE ($1 = 0 OR a.obligation_id = $1) AND ($2 = '' OR a.actor = $2) AND ($3 = '' OR o.counterparty = $3)
				AND a.at_us >= $4 AND a.at_us <= $5
			ORDER BY a.id DESC LIMIT $6) AS newest
		ORDER BY id`, f.ObligationID, f.Actor, f.Counterparty, orBound(f.Since, 0), orBound(f.Until, 1<<62), limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []AuditEntry{}
	for rows.Next() {
		var e AuditEntry
		var detail string
		if err := rows.Scan(&e.ID, &e.AtUS, &e.Event, &e.Source, &e.Actor, &e.ObligationID, &e.DecisionID, &detail); err != nil {
			return nil, err
		}
		e.Detail = json.RawMessage(detail)
		out = append(out, e)
	}
	return out, rows.Err()
}

func orBound(t time.Time, bound int64) int64 {
	if t.IsZero() {
		return bound
	}
	return t.UnixMicro()
}
