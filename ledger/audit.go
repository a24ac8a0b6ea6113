package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

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
	notice               string // told to the operators' channel too; "" is nothing
}

// maxActor bounds an actor's name in the log, in bytes.
const maxActor = 200

// record appends an audit row in the step's own transaction, and the notice that tells the same. It is the one place that writes the log.
func record(ctx context.Context, tx *txn, e event) error {
	detail, err := canonical(e.detail)
	if err != nil {
		return err
	}
	err = tx.exec(ctx, `
		INSERT INTO audit_log (at_us, event, source, actor, obligation_id, decision_id, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		tx.us, e.name, e.source, logged(e.actor), idOrNull(e.obligation), idOrNull(e.decision), detail)
	if err != nil || e.notice == "" {
		return err
	}
	return queueNotice(ctx, tx, e.obligation, e.name, e.notice)
}

// logged is an actor's name as the log keeps it: that of a refused filing may be anything.
func logged(actor string) string {
	actor = strings.ToValidUTF8(actor, "\uFFFD")
	if len(actor) > maxActor {
		actor = strings.ToValidUTF8(actor[:maxActor], "")
	}
	return actor
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
	s.unproven = errors.Is(cause, ErrNoOperator)
	return l.inTx(context.WithoutCancel(ctx), func(ctx context.Context, tx *txn) error {
		return refusal(ctx, tx, s, map[string]any{"step": s.verb, "reason": cause.Error()})
	})
}

// RecordRefusal keeps a refusal that was decided outside the ledger (a gate of the filing, a failed authentication). The same refusal
// of the same actor is kept once a minute, so that a flood of them can't fill the log.
func (l *Ledger) RecordRefusal(ctx context.Context, verb, actor string, obligation int64, cause error) error {
	return l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		s := step{verb: verb, actor: actor, obligation: obligation, unproven: true}
		return refusal(ctx, tx, s, map[string]any{"step": verb, "reason": cause.Error()})
	})
}

// refusal writes the row of a refused step. A row names only an obligation that there is; the reason names what there isn't.
func refusal(ctx context.Context, tx *txn, s step, detail map[string]any) error {
	if s.obligation == 0 && s.decision != 0 {
		err := tx.QueryRowContext(ctx, `SELECT obligation_id FROM obligation_decisions WHERE id = $1`, s.decision).Scan(&s.obligation)
		if ignoreNone(err) != nil {
			return err
		}
	}
	text, err := canonical(detail)
	if err != nil {
		return err
	}
	for _, repeated := range []func(context.Context, *txn, step, string) (bool, error){refusedJustNow, flooding} {
		if skip, err := repeated(ctx, tx, s, text); err != nil || skip {
			return err
		}
	}
	known, err := exists(ctx, tx, `SELECT 1 FROM obligations WHERE id = $1`, s.obligation)
	if err != nil {
		return err
	}
	if !known {
		s.obligation = 0
	}
	return record(ctx, tx, event{name: "refused", source: sourceRefusal, actor: s.actor, obligation: s.obligation, decision: s.decision,
		detail: detail})
}

// refusedJustNow tells whether a pass met the same refusal as the last thing that happened to the obligation: workers come every minute,
// and a row for each time would say nothing new. What people and agents are refused is always kept.
func refusedJustNow(ctx context.Context, tx *txn, s step, detail string) (bool, error) {
	if !s.byWorker {
		return false, nil
	}
	return exists(ctx, tx, `
		SELECT 1 FROM audit_log WHERE id = (SELECT max(id) FROM audit_log WHERE obligation_id = $1) AND event = 'refused' AND detail = $2`,
		s.obligation, detail)
}

// flooding tells whether somebody who proved no identity was refused the same within a minute, on whatever obligation: else anybody
// could fill the log.
func flooding(ctx context.Context, tx *txn, s step, detail string) (bool, error) {
	const window = 60 * 1_000_000
	if !s.unproven {
		return false, nil
	}
	return exists(ctx, tx, `
		SELECT 1 FROM (SELECT at_us, event, actor, detail FROM audit_log ORDER BY id DESC LIMIT 200) AS recent
		WHERE event = 'refused' AND actor = $1 AND detail = $2 AND at_us > $3`, logged(s.actor), detail, tx.us-window)
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
