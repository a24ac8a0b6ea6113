package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// FollowUp tells an agent what became of a draft of its. Kinds: approved, sent, executed, rejected, steered, held, revoked, superseded,
// expired.
type FollowUp struct {
	ID           int64  `json:"id"`
	ObligationID int64  `json:"obligation_id"`
	Kind         string `json:"kind"`
	Body         string `json:"body"`
	CreatedTS    int64  `json:"created_ts"`
}

// Inbox lists what the agent has not acknowledged, oldest first.
func (l *Ledger) Inbox(ctx context.Context, agent string) ([]FollowUp, error) {
	out := []FollowUp{}
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT id, obligation_id, kind, body, created_us / 1000000 FROM followups
			WHERE agent = $1 AND acked_us IS NULL ORDER BY id`, agent)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var f FollowUp
			if err := rows.Scan(&f.ID, &f.ObligationID, &f.Kind, &f.Body, &f.CreatedTS); err != nil {
				return err
			}
			out = append(out, f)
		}
		return rows.Err()
	})
	return out, err
}

// Acknowledge takes follow-ups out of the agent's inbox: all of them, or none when one is not the agent's. Doing so twice is a no-op.
func (l *Ledger) Acknowledge(ctx context.Context, agent string, ids []int64) error {
	return l.do(ctx, step{verb: "acknowledge", actor: agent}, func(ctx context.Context, tx *txn) error {
		for _, id := range ids {
			mine, err := exists(ctx, tx, `SELECT 1 FROM followups WHERE id = $1 AND agent = $2`, id, agent)
			if err != nil {
				return err
			}
			if !mine {
				return &InputError{Field: "ack", Reason: fmt.Sprintf("names %d, which is not in the inbox of agent %q", id, agent)}
			}
			if _, err := tx.ExecContext(ctx, `UPDATE followups SET acked_us = $1 WHERE id = $2 AND acked_us IS NULL`, tx.us, id); err != nil {
				return err
			}
		}
		return nil
	})
}
