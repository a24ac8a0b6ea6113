package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Pace is a provider's limit: no more than one call in each interval, within a scope (a channel, a chat, a bot).
type Pace struct {
	Scope string
	Every time.Duration
}

// maxAhead bounds how far the next free time of a scope is believed to lie ahead. A clock that ran wild once must not silence a provider.
const maxAhead = time.Hour

// Reserve takes the next free time that all scopes have, across processes, and returns it. A time after latest (unless zero) is not
// taken: taken is false, and nothing was changed.
func (l *Ledger) Reserve(ctx context.Context, paces []Pace, latest time.Time) (at time.Time, taken bool, err error) {
	err = l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		free := tx.us
		for _, p := range paces {
			next, err := nextFree(ctx, tx, p.Scope)
			if err != nil {
				return err
			}
			free = max(free, next)
		}
		at = time.UnixMicro(free)
		if !latest.IsZero() && at.After(latest) {
			return nil
		}
		taken = true
		for _, p := range paces {
			if err := tx.exec(ctx, `
				INSERT INTO pacing (scope, next_us) VALUES ($1, $2) ON CONFLICT (scope) DO UPDATE SET next_us = excluded.next_us`,
				p.Scope, free+p.Every.Microseconds()); err != nil {
				return err
			}
		}
		return nil
	})
	return at, taken && err == nil, err
}

func nextFree(ctx context.Context, tx *txn, scope string) (int64, error) {
	var next int64
	err := tx.QueryRowContext(ctx, `SELECT next_us FROM pacing WHERE scope = $1`, scope).Scan(&next)
	if errors.Is(err, sql.ErrNoRows) || next > tx.us+maxAhead.Microseconds() {
		return 0, ignoreNone(err)
	}
	return next, err
}
