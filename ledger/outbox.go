package ledger

import (
	"context"
	"database/sql"
	"fmt"
)

// QueuedNotice is a notice that the internal destination has not had yet.
type QueuedNotice struct {
	ID        int64
	Kind      string // the audit event that it tells: staged, approved, rejected, steered, revoked, unknown, altered, …
	Body      string
	CreatedTS int64
}

// Outbox lists the obligations of which something is still to be told or shown in the channel, the oldest first: those with notices or
// an outdated card, and those that wait for a decision, or for somebody to find out, without a card in this channel.
func (l *Ledger) Outbox(ctx context.Context, channel string, limit int) ([]int64, error) {
	out := []int64{}
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `
			SELECT obligation_id FROM (
				SELECT obligation_id, queued_us FROM outbox
				UNION
				SELECT o.id, CAST(0 AS INTEGER) FROM obligations o WHERE o.status = 'drafted' AND o.direction = 'we_owe_them' AND NOT EXISTS (
					SELECT 1 FROM cards c WHERE c.obligation_id = o.id AND c.kind = 'draft' AND c.channel = $1)
				UNION
				SELECT k.obligation_id, CAST(0 AS INTEGER) FROM obligation_delivery_claims k WHERE k.state IN ('claimed', 'dispatching', 'unknown')
					AND k.state = 'unknown' AND NOT EXISTS (SELECT 1 FROM settlements s WHERE s.decision_id = k.decision_id)
					AND NOT EXISTS (SELECT 1 FROM cards c WHERE c.obligation_id = k.obligation_id AND c.kind = 'unknown' AND c.channel = $1)
			) AS due
			GROUP BY obligation_id ORDER BY max(queued_us), obligation_id LIMIT $2`, channel, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
			out = append(out, id)
		}
		return rows.Err()
	})
	return out, err
}

// NoticesTold records where notices were told. A rejection's is its receipt (reject_notice). Doing so twice is a no-op: a notice goes out
// at least once, and the first record stands.
func (l *Ledger) NoticesTold(ctx context.Context, obligation int64, ids []int64, coordinate string) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		for _, id := range ids {
			if err := told(ctx, tx, obligation, id, coordinate); err != nil {
				return err
			}
		}
		return nil
	})
}

func told(ctx context.Context, tx *txn, obligation, id int64, coordinate string) error {
	var kind string
	err := tx.QueryRowContext(ctx, `SELECT kind FROM notices WHERE id = $1 AND obligation_id = $2`, id, obligation).Scan(&kind)
	if err != nil {
		return fmt.Errorf("notice %d of obligation %d: %w", id, obligation, err)
	}
	done, err := exists(ctx, tx, `SELECT 1 FROM notices_sent WHERE notice_id = $1`, id)
	if err != nil || done {
		return err
	}
	if err := tx.exec(ctx, `INSERT INTO notices_sent (notice_id, coordinate, sent_us) VALUES ($1, $2, $3)`, id, coordinate, tx.us); err != nil {
		return err
	}
	if kind == "rejected" {
		if err := rejectionTold(ctx, tx, obligation, coordinate); err != nil {
			return err
		}
	}
	return record(ctx, tx, event{name: "told", source: sourceNotice, actor: "notify", obligation: obligation,
		detail: map[string]any{"notice": id, "kind": kind, "coordinate": coordinate}})
}

// rejectionTold writes the receipt that proves that a rejection was told internally.
func rejectionTold(ctx context.Context, tx *txn, obligation int64, coordinate string) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO obligation_deliveries (obligation_id, decision_id, kind, coordinate, delivered_ts)
		SELECT v.obligation_id, v.id, $2, $3, $4 FROM obligation_decisions v
		WHERE v.id = (SELECT max(id) FROM obligation_decisions WHERE obligation_id = $1 AND decision = 'reject')
			AND NOT EXISTS (SELECT 1 FROM obligation_deliveries d WHERE d.obligation_id = v.obligation_id AND d.decision_id = v.id)`,
		obligation, receiptReject, coordinate, tx.sec)
	return err
}

// Told takes an obligation out of the outbox, unless something happened to it since mark was read.
func (l *Ledger) Told(ctx context.Context, obligation, mark int64) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		_, err := tx.ExecContext(ctx, `
			DELETE FROM outbox WHERE obligation_id = $1 AND mark = $2 AND NOT EXISTS (
				SELECT 1 FROM notices n WHERE n.obligation_id = $1 AND n.routed = 'internal'
					AND NOT EXISTS (SELECT 1 FROM notices_sent s WHERE s.notice_id = n.id))`, obligation, mark)
		return err
	})
}

// Outdated puts an obligation's card back into the outbox, after somebody met one that shows an earlier state.
func (l *Ledger) Outdated(ctx context.Context, obligation int64) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error { return outdate(ctx, tx, obligation) })
}

// Digest is the reminder message of an internal channel.
type Digest struct {
	TS            string
	ContentSHA256 string
	PostedTS      int64
}

// DigestIn returns the channel's reminder, the zero Digest where there is none.
func (l *Ledger) DigestIn(ctx context.Context, channel string) (Digest, error) {
	var d Digest
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		return ignoreNone(tx.QueryRowContext(ctx, `SELECT ts, content_sha256, posted_us / 1000000 FROM digests WHERE channel = $1`, channel).Scan(
			&d.TS, &d.ContentSHA256, &d.PostedTS))
	})
	return d, err
}

// RecordDigest keeps which message is the channel's reminder, and what it shows. An edit of it keeps the time of its post.
func (l *Ledger) RecordDigest(ctx context.Context, channel, ts, content string) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		return tx.exec(ctx, `
			INSERT INTO digests (channel, ts, content_sha256, posted_us) VALUES ($1, $2, $3, $4)
			ON CONFLICT (channel) DO UPDATE SET content_sha256 = excluded.content_sha256,
				posted_us = CASE WHEN digests.ts = excluded.ts THEN digests.posted_us ELSE excluded.posted_us END, ts = excluded.ts`,
			channel, ts, content, tx.us)
	})
}
