package ledger

import "context"

// Where a notice goes.
const (
	RoutedInternal = "internal" // queued for the verified internal destination
	RoutedRetained = "retained" // stays in the ledger's outbox and on the operator's surface
)

// Notice tells where a notice goes, and why. There is no fall-back to any other place.
type Notice struct {
	Routed string `json:"routed"`
	Reason string `json:"reason"`
}

// queueNotice writes an internal notice in the transaction of what it tells.
func queueNotice(ctx context.Context, tx *txn, obligation int64, kind, body string) error {
	route := tx.route()
	if err := tx.exec(ctx, `
		INSERT INTO notices (obligation_id, kind, body, routed, reason, created_us) VALUES ($1, $2, $3, $4, $5, $6)`,
		obligation, kind, body, route.Routed, route.Reason, tx.us); err != nil {
		return err
	}
	if route.Routed != RoutedInternal {
		return nil
	}
	return tx.exec(ctx, `
		INSERT INTO outbox (obligation_id, mark, queued_us) VALUES ($1, 1, $2)
		ON CONFLICT (obligation_id) DO UPDATE SET mark = mark + 1`, obligation, tx.us)
}

// outdate marks the obligation's card, if it has one, as showing no longer what the ledger holds.
func outdate(ctx context.Context, tx *txn, obligation int64) error {
	if tx.route().Routed != RoutedInternal {
		return nil
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO outbox (obligation_id, mark, queued_us)
		SELECT $1, 1, $2 WHERE EXISTS (SELECT 1 FROM cards WHERE obligation_id = $1)
		ON CONFLICT (obligation_id) DO UPDATE SET mark = mark + 1`, obligation, tx.us)
	return err
}

// followUp tells an agent what became of its draft, in the same transaction.
func followUp(ctx context.Context, tx *txn, agent string, obligation int64, kind, body string) error {
	if agent == "" {
		return nil // an obligation without a filing has nobody to tell
	}
	var id int64
	err := tx.QueryRowContext(ctx, `
		INSERT INTO followups (agent, obligation_id, kind, body, created_us) VALUES ($1, $2, $3, $4, $5) RETURNING id`,
		agent, obligation, kind, body, tx.us).Scan(&id)
	if err != nil || !tx.hook {
		return err
	}
	return tx.exec(ctx, `INSERT INTO hook_queue (followup_id, failures, retry_us, error) VALUES ($1, 0, $2, '')`, id, tx.us)
}
