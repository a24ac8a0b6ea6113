package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
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
	Detail       json.RawMessage `json:"detail"` // of a row that raw SQL wrote and that is no JSON: {"unreadable": what it says}
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
	where, args := f.where()
	rows, err := tx.QueryContext(ctx, `
		SELECT id, at_us, event, source, actor, obligation_id, decision_id, detail FROM (
			SELECT a.id, a.at_us, a.event, a.source, a.actor, a.obligation_id, a.decision_id, a.detail
			FROM audit_log a LEFT JOIN obligations o ON o.id = a.obligation_id`+where+`
			ORDER BY a.id DESC LIMIT $1) AS newest
		ORDER BY id`, append([]any{limit}, args...)...)
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
		if e.Detail, err = readDetail(detail); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// readDetail keeps what is no JSON from making the whole log unreadable.
func readDetail(stored string) (json.RawMessage, error) {
	if json.Valid([]byte(stored)) {
		return json.RawMessage(stored), nil
	}
	return json.Marshal(map[string]string{"unreadable": stored})
}

// where has only the conditions that are set, so that one obligation's rows are found by their index in a long log. $1 is the limit.
func (f AuditFilter) where() (string, []any) {
	var conditions []string
	var args []any
	for _, c := range []struct {
		set   bool
		text  string
		value any
	}{
		{f.ObligationID != 0, "a.obligation_id = $%d", f.ObligationID},
		{f.Actor != "", "a.actor = $%d", f.Actor},
		{f.Counterparty != "", "o.counterparty = $%d", f.Counterparty},
		{!f.Since.IsZero(), "a.at_us >= $%d", f.Since.UnixMicro()},
		{!f.Until.IsZero(), "a.at_us <= $%d", f.Until.UnixMicro()},
	} {
		if c.set {
			args = append(args, c.value)
			conditions = append(conditions, fmt.Sprintf(c.text, len(args)+1))
		}
	}
	if len(conditions) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(conditions, " AND "), args
}
