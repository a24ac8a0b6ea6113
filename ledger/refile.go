package ledger

import (
	"context"
	"database/sql"
	"errors"
)

// FilingOf returns what was handed in for an obligation's newest filing, so that the same text can be filed again: the stamps and the hash
// that the system added are taken off. It carries no idempotency key and no deadline.
func (l *Ledger) FilingOf(ctx context.Context, obligation int64) (Filing, error) {
	var f Filing
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		var sha256, markers string
		err := tx.QueryRowContext(ctx, `
			SELECT counterparty, platform, channel, coalesce(thread, ''), coalesce(origin_user, ''), coalesce(subject, ''), text, text_sha256,
				priority, summary, context, markers, coalesce(signal_obligation_id, 0), agent, forced
			FROM filings WHERE obligation_id = $1 ORDER BY id DESC LIMIT 1`, obligation).Scan(
			&f.Counterparty, &f.Platform, &f.Channel, &f.Thread, &f.User, &f.Subject, &f.Text, &sha256,
			&f.Priority, &f.Summary, &f.Context, &markers, &f.Signal, &f.Agent, &f.ForceDespiteSignedContract)
		if errors.Is(err, sql.ErrNoRows) {
			return &NotFoundError{obligation}
		}
		if err != nil {
			return err
		}
		f.Summary = withoutHash(f.Summary, sha256)
		stamps, _ := readMarkers(markers)
		f.Context = withoutStamps(f.Context, stamps)
		return nil
	})
	return f, err
}
