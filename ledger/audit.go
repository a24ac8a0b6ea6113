package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/gowebpki/jcs"
)

// Audit sources: which part of the contract an event belongs to.
const (
	sourceFiling   = "filing"
	sourceApproval = "approval"
	sourceDelivery = "delivery"
	sourceNotice   = "notice"
	sourceRefusal  = "refusal"
)

// event is one audit row before the system stamps it.
type event struct {
	name, source, actor  string
	obligation, decision int64 // 0: none
	detail               map[string]any
}

// record appends an audit row in the step's own transaction. It is the one place that writes the log.
func record(ctx context.Context, tx *txn, e event) error {
	detail, err := canonical(e.detail)
	if err != nil {
		return err
	}
	return tx.exec(ctx, `
		INSERT INTO audit_log (at_us, event, source, actor, obligation_id, decision_id, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		tx.us, e.name, e.source, e.actor, idOrNull(e.obligation), idOrNull(e.decision), detail)
}

// canonical is the RFC 8785 form, so that a row can be hashed by anybody.
func canonical(detail map[string]any) (string, error) {
	if detail == nil {
		detail = map[string]any{}
	}
	raw, err := json.Marshal(detail)
	if err != nil {
		return "", err
	}
	out, err := jcs.Transform(raw)
	return string(out), err
}

// recordRefusal keeps what was refused, in a transaction of its own.
func (l *Ledger) recordRefusal(ctx context.Context, s step, cause error) error {
	return l.inTx(context.WithoutCancel(ctx), func(ctx context.Context, tx *txn) error {
		return refusal(ctx, tx, s, map[string]any{"step": s.verb, "reason": cause.Error()})
	})
}

// RecordRefusal keeps a refusal that was decided outside the ledger (a gate of the filing, a failed authentication). The same refusal
// of the same actor is kept once a minute, so that a flood of them can't fill the log.
func (l *Ledger) RecordRefusal(ctx context.Context, verb, actor string, obligation int64, cause error) error {
	const window = 60 * 1_000_000
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		detail := map[string]any{"step": verb, "reason": cause.Error()}
		text, err := canonical(detail)
		if err != nil {
			return err
		}
		seen, err := exists(ctx, tx, `
			SELECT 1 FROM (SELECT at_us, event, actor, detail FROM audit_log ORDER BY id DESC LIMIT 200) AS recent
			WHERE event = 'refused' AND actor = $1 AND detail = $2 AND at_us > $3`, actor, text, tx.us-window)
		if err != nil || seen {
			return err
		}
		return refusal(ctx, tx, step{verb: verb, actor: actor, obligation: obligation}, detail)
	})
}

func refusal(ctx context.Context, tx *txn, s step, detail map[string]any) error {
	known, err := exists(ctx, tx, `SELECT 1 FROM obligations WHERE id = $1`, s.obligation)
	if err != nil {
		return err
	}
	if !known { // kept in the detail; a row of the log names only what there is
		detail["obligation_id"] = s.obligation
		s.obligation = 0
	}
	return record(ctx, tx, event{name: "refused", source: sourceRefusal, actor: s.actor, obligation: s.obligation, decision: s.decision,
		detail: detail})
}

func exists(ctx context.Context, tx *txn, query string, args ...any) (bool, error) {
	var one int
	err := tx.QueryRowContext(ctx, query, args...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func idOrNull(id int64) any {
	if id == 0 {
		return nil
	}
	return id
}
