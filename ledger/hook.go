package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// FollowUpDue is a follow-up that the agents' hook has not taken yet. Options.Hook keeps them.
type FollowUpDue struct {
	FollowUp
	Agent    string
	Failures int // earlier attempts to hand it over
}

// HookDue lists follow-ups to hand over now, at most limit of them: each agent's in their order, and the agents in turn, so that one with
// many holds up nobody. Those whose last attempt failed are left out until their back-off ends.
func (l *Ledger) HookDue(ctx context.Context, limit int) ([]FollowUpDue, error) {
	out := []FollowUpDue{}
	now := l.opts.Now()
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT f.id, f.agent, f.obligation_id, f.kind, f.body, f.created_us / 1000000, q.failures
			FROM hook_queue q JOIN followups f ON f.id = q.followup_id
			WHERE NOT (q.failures > 0 AND q.retry_us > $1 AND q.retry_us < $2)
			ORDER BY row_number() OVER (PARTITION BY f.agent ORDER BY f.id), f.id LIMIT $3`,
			now.UnixMicro(), now.Add(maxBackoff).UnixMicro(), limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var f FollowUpDue
			if err := rows.Scan(&f.ID, &f.Agent, &f.ObligationID, &f.Kind, &f.Body, &f.CreatedTS, &f.Failures); err != nil {
				return err
			}
			out = append(out, f)
		}
		return rows.Err()
	})
	return out, err
}

// HookTaken records that the hook took a follow-up. Doing so twice is a no-op: two passes may have handed it over. The agent's inbox
// keeps it until the agent acknowledges it.
func (l *Ledger) HookTaken(ctx context.Context, id int64) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM hook_queue WHERE followup_id = $1`, id)
		return err
	})
}

// HookFailed keeps that a follow-up could not be handed over, and for how long it is left alone, up to a day; failures is how often it
// has failed by now, this time included. One that another pass has handed over meanwhile stays taken.
func (l *Ledger) HookFailed(ctx context.Context, id int64, wait func(failures int) time.Duration, cause string) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		var failures int
		err := tx.QueryRowContext(ctx, `SELECT failures FROM hook_queue WHERE followup_id = $1`, id).Scan(&failures)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		failures++
		return tx.exec(ctx, `UPDATE hook_queue SET failures = $1, retry_us = $2, error = $3 WHERE followup_id = $4`,
			failures, tx.us+wait(failures).Microseconds(), cause, id)
	})
}
