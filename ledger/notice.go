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
func queueNotice(ctx context.Context, tx *txn, obligation int64, kind, body string, route Notice) error {
	return tx.exec(ctx, `
		INSERT INTO notices (obligation_id, kind, body, routed, reason, created_us) VALUES ($1, $2, $3, $4, $5, $6)`,
		obligation, kind, body, route.Routed, route.Reason, tx.us)
}

// followUp tells an agent what became of its draft, in the same transaction.
func followUp(ctx context.Context, tx *txn, agent string, obligation int64, kind, body string) error {
	if agent == "" {
		return nil // an obligation without a filing has nobody to tell
	}
	return tx.exec(ctx, `
		INSERT INTO followups (agent, obligation_id, kind, body, created_us) VALUES ($1, $2, $3, $4, $5)`,
		agent, obligation, kind, body, tx.us)
}
