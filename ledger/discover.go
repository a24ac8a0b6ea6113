package ledger

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"time"
)

// Destination is where approved messages wait to be delivered.
type Destination struct{ Platform, Channel string }

// DeliverFilter narrows what a pass looks for.
type DeliverFilter struct {
	Platform string        // empty: all
	Hold     time.Duration // only what was approved at least this long ago
	Resting  bool          // also where a back-off has not ended yet
}

// newest is the latest time of a decision that counts. Without a hold every decision counts, also one that a faster clock stamped.
func (f DeliverFilter) newest(now time.Time) int64 {
	if f.Hold <= 0 {
		return math.MaxInt64
	}
	return now.Add(-f.Hold).Unix()
}

// Ready is an approval that may be claimed, or whose claim may be adopted when its worker is dead.
type Ready struct {
	ObligationID, DecisionID                 int64
	Platform, Channel, Thread, Subject, Text string
	Holder                                   string // the worker of a claim that has not begun dispatch; empty where nobody claimed
}

// deliverable is the FROM and WHERE of everything that a pass may work on.
const deliverable = `
	FROM obligations o
	JOIN obligation_approval_snapshots s ON s.obligation_id = o.id AND s.draft_epoch = o.updated_at` + mayBeDelivered

// mayBeDelivered narrows approved obligations o and their snapshots s. Approvals of another implementation have no envelope and are left to
// people; so is what raw SQL left half taken back. $1 is the newest decision time that counts.
const mayBeDelivered = `
	JOIN obligation_drafts d ON d.obligation_id = o.id
	JOIN approval_envelopes e ON e.decision_id = s.decision_id
	JOIN obligation_decisions v ON v.id = s.decision_id AND v.decided_ts <= $1
	LEFT JOIN obligation_delivery_claims c ON c.obligation_id = o.id AND c.decision_id = s.decision_id
	LEFT JOIN claim_holders h ON h.decision_id = c.decision_id
	WHERE o.status = 'approved' AND o.direction = 'we_owe_them' AND (c.state IS NULL OR c.state = 'claimed')
		AND NOT EXISTS (SELECT 1 FROM voided_approvals x WHERE x.decision_id = s.decision_id)`

// maxBackoff bounds how long a back-off is believed: a day, which is the most that a pass asks for, and some. A clock that ran wild once
// must not silence a destination for good.
const maxBackoff = 25 * time.Hour

// Destinations lists where something waits, the most urgent first. Destinations whose last preparation failed are left out until their
// back-off ends, unless the filter wants them.
func (l *Ledger) Destinations(ctx context.Context, f DeliverFilter) ([]Destination, error) {
	var out []Destination
	now := l.opts.Now()
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT o.source, o.channel `+deliverable+`
				AND ($2 = '' OR o.source = $2)
				AND (CAST($5 AS INTEGER) = 1
					OR NOT EXISTS (SELECT 1 FROM prepare_backoff b WHERE b.platform = o.source AND b.channel = o.channel AND b.retry_us > $3 AND b.retry_us < $4))
			GROUP BY o.source, o.channel
			ORDER BY min(d.priority), min(s.decision_id)`, f.newest(now), f.Platform, now.UnixMicro(), now.Add(maxBackoff).UnixMicro(), f.Resting)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var d Destination
			if err := rows.Scan(&d.Platform, &d.Channel); err != nil {
				return err
			}
			out = append(out, d)
		}
		return rows.Err()
	})
	return out, err
}

const nextColumns = `
	SELECT o.id, s.decision_id, coalesce(s.origin_thread, ''), s.draft_text, coalesce(h.worker, CASE WHEN c.state IS NULL THEN '' ELSE $5 END),
		coalesce(e.subject, '')`

// firstOf sorts the whole queue of a destination, which its index finds whatever the history.
const firstOf = nextColumns + deliverable + `
		AND o.source = $2 AND o.channel = $3 AND s.decision_id > $4
	ORDER BY s.decision_id LIMIT 1`

// firstNear walks the decisions after $4 up to $6 by their ids, and stops at the first that waits at the destination. The cross join has
// SQLite keep the order of the tables; it would sort the queue otherwise. Source: https://www.sqlite.org/optoverview.html#crossjoin
const firstNear = nextColumns + `
	FROM obligation_approval_snapshots s
	CROSS JOIN obligations o` + mayBeDelivered + `
		AND o.id = s.obligation_id AND o.updated_at = s.draft_epoch
		AND o.source = $2 AND o.channel = $3 AND s.decision_id > $4 AND s.decision_id <= $6
	ORDER BY s.decision_id LIMIT 1`

// near is how many decisions after the last one are walked. A pass over a queue of n messages then reads n decisions, and those between
// them; sorting the queue for each would read n². Where nothing waits so near, the next one may lie beyond a long history: the queue is
// sorted.
const near = 512

// Next returns the destination's next approval after the given decision, in the order of decisions, or nil when there is none. A pass
// begins after 0 and goes on after each decision that it was given.
func (l *Ledger) Next(ctx context.Context, d Destination, f DeliverFilter, after int64) (*Ready, error) {
	r := &Ready{Platform: d.Platform, Channel: d.Channel}
	args := []any{f.newest(l.opts.Now()), d.Platform, d.Channel, after, unknownHolder}
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		if after > 0 {
			err := scanReady(tx.QueryRowContext(ctx, firstNear, append(args, after+near)...), r)
			if !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		return scanReady(tx.QueryRowContext(ctx, firstOf, args...), r)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func scanReady(row scanner, r *Ready) error {
	return row.Scan(&r.ObligationID, &r.DecisionID, &r.Thread, &r.Text, &r.Holder, &r.Subject)
}

// Backoff keeps in the ledger that a destination could not be prepared, and for how long it is left alone. No approval is used up.
func (l *Ledger) Backoff(ctx context.Context, d Destination, wait func(failures int) time.Duration, cause string) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		var failures int
		err := tx.QueryRowContext(ctx, `SELECT failures FROM prepare_backoff WHERE platform = $1 AND channel = $2`, d.Platform, d.Channel).Scan(&failures)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		failures++
		return tx.exec(ctx, `
			INSERT INTO prepare_backoff (platform, channel, failures, retry_us, error) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (platform, channel) DO UPDATE SET failures = excluded.failures, retry_us = excluded.retry_us, error = excluded.error`,
			d.Platform, d.Channel, failures, tx.us+wait(failures).Microseconds(), cause)
	})
}

// BackedOff is a destination that is left alone until a time, since it could not be prepared.
type BackedOff struct {
	Destination
	Until time.Time
	Cause string
}

// BackedOff lists the destinations that Destinations leaves out because of their back-off, whether anything waits there or not.
func (l *Ledger) BackedOff(ctx context.Context, f DeliverFilter) ([]BackedOff, error) {
	var out []BackedOff
	now := l.opts.Now()
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT platform, channel, retry_us, error FROM prepare_backoff
			WHERE retry_us > $1 AND retry_us < $3 AND ($2 = '' OR platform = $2) ORDER BY platform, channel`,
			now.UnixMicro(), f.Platform, now.Add(maxBackoff).UnixMicro())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var b BackedOff
			var until int64
			if err := rows.Scan(&b.Platform, &b.Channel, &until, &b.Cause); err != nil {
				return err
			}
			b.Until = time.UnixMicro(until)
			out = append(out, b)
		}
		return rows.Err()
	})
	return out, err
}

// Prepared forgets a destination's earlier failures.
func (l *Ledger) Prepared(ctx context.Context, d Destination) error {
	var failed bool
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM prepare_backoff WHERE platform = $1 AND channel = $2)`, d.Platform, d.Channel).Scan(&failed)
	})
	if err != nil || !failed { // the common case takes no write lock
		return err
	}
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM prepare_backoff WHERE platform = $1 AND channel = $2`, d.Platform, d.Channel)
		return err
	})
}

// HeldClaim is a claim that is in flight or held.
type HeldClaim struct {
	ObligationID int64      `json:"obligation_id"`
	DecisionID   int64      `json:"decision_id"`
	Counterparty string     `json:"counterparty"`
	Platform     string     `json:"platform"`
	Channel      string     `json:"channel"`
	State        ClaimState `json:"state"`
	Outcome      Outcome    `json:"outcome"`
	Stage        string     `json:"stage"`
	Detail       string     `json:"detail"`
	Settled      bool       `json:"settled"`
	Worker       string     `json:"worker"`
	Key          string     `json:"key"` // what to search for at the receiver, part of a Message-ID
	CreatedTS    int64      `json:"created_ts"`
	UpdatedTS    int64      `json:"updated_ts"`
}

// Claims lists every active claim, oldest first. The token is never shown.
func (l *Ledger) Claims(ctx context.Context) ([]HeldClaim, error) {
	var out []HeldClaim
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		// Ordered by a term: by the column, SQLite would read every claim in its order, and not only the few that are active.
		rows, err := tx.QueryContext(ctx, heldClaims+` ORDER BY c.decision_id + 0`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			h, err := scanClaim(rows)
			if err != nil {
				return err
			}
			out = append(out, h)
		}
		return rows.Err()
	})
	return out, err
}

const claimColumns = `
	SELECT c.obligation_id, c.decision_id, o.counterparty, s.origin_platform, s.origin_channel, c.state, c.token,
		coalesce(a.outcome, ''), coalesce(a.stage, ''), coalesce(a.detail, ''), t.decision_id IS NOT NULL, coalesce(h.worker, 'unknown'),
		c.created_ts, c.updated_ts
	FROM obligation_delivery_claims c
	JOIN obligations o ON o.id = c.obligation_id
	JOIN obligation_approval_snapshots s ON s.decision_id = c.decision_id
	LEFT JOIN claim_holders h ON h.decision_id = c.decision_id
	LEFT JOIN settlements t ON t.decision_id = c.decision_id
	LEFT JOIN delivery_attempts a ON a.id = (SELECT max(id) FROM delivery_attempts WHERE decision_id = c.decision_id)`

const heldClaims = claimColumns + ` WHERE c.state IN ('claimed', 'dispatching', 'unknown')`

// scanner is a row, or the current one of several.
type scanner interface{ Scan(dest ...any) error }

func scanClaim(row scanner) (HeldClaim, error) {
	var h HeldClaim
	var token string
	err := row.Scan(&h.ObligationID, &h.DecisionID, &h.Counterparty, &h.Platform, &h.Channel, &h.State, &token,
		&h.Outcome, &h.Stage, &h.Detail, &h.Settled, &h.Worker,
		&h.CreatedTS, &h.UpdatedTS)
	h.Key = messageKey(token)
	return h, err
}
