package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/operator"
)

// reasonLimit bounds reasons, notes and evidence, in characters.
const reasonLimit = 4_000

// Decision is an operator's verdict on one epoch of one obligation.
type Decision struct {
	ObligationID, Epoch int64
	Verdict             Verdict
	Operator            operator.Operator
	Reason              string   // required to reject
	Nonce               string   // names this decision, so that a repeated delivery of it is a no-op; made when empty
	Card                *CardRef // the card that it was made on; nil is the terminal
}

// Decided is what a decision, or its taking back, led to.
type Decided struct {
	ObligationID int64  `json:"obligation_id"`
	DecisionID   int64  `json:"decision_id"`
	Epoch        int64  `json:"epoch"`
	Operator     string `json:"operator"`
	Status       Status `json:"status"`
}

// Decide approves or rejects a draft. Decision, status, snapshot, envelope and audit row are one transaction. A stale epoch changes
// nothing (*StaleEpochError); of two racing decisions one wins and the other learns who won (*DecidedError).
func (l *Ledger) Decide(ctx context.Context, d Decision) (Decided, error) {
	var out Decided
	nonce, err := l.nonce(d.Nonce)
	if err != nil {
		return out, err
	}
	d.Nonce = nonce
	s := step{verb: string(d.Verdict), actor: d.Operator.ID(), obligation: d.ObligationID}
	err = l.do(ctx, s, func(ctx context.Context, tx *txn) error {
		if err := d.check(); err != nil {
			return err
		}
		repeated, err := repeatedDecision(ctx, tx, d, &out)
		if err != nil || repeated {
			return err
		}
		c, err := load(ctx, tx, d.ObligationID)
		if err != nil {
			return err
		}
		if err := decidable(ctx, tx, c, d); err != nil {
			return err
		}
		return l.decide(ctx, tx, c, d, &out)
	})
	return out, err
}

func (l *Ledger) nonce(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	return l.opts.Token()
}

func (d Decision) check() error {
	if !d.Operator.Known() {
		return ErrNoOperator
	}
	if d.Verdict != Approve && d.Verdict != Reject {
		return &InputError{Field: "verdict", Reason: fmt.Sprintf("is %q; it must be approve or reject", string(d.Verdict))}
	}
	if d.Verdict == Reject {
		return checkReason("reason", d.Reason)
	}
	return checkText("reason", d.Reason)
}

func checkReason(field, value string) error {
	if strings.TrimSpace(value) == "" {
		return &InputError{Field: field, Reason: "is empty; say why, the agent and the audit log need it"}
	}
	return checkText(field, value)
}

// checkText refuses what is too long or not UTF-8.
func checkText(field, value string) error {
	c := cleaner{}
	if c.context(value, reasonLimit); c.err != nil {
		c.err.(*InputError).Field = field
	}
	return c.err
}

// otherUse refuses a nonce that names another kind of step already: whoever repeats it there would be told a success of something else.
func otherUse(ctx context.Context, tx *txn, query, nonce string) error {
	used, err := exists(ctx, tx, query, nonce)
	if err == nil && used {
		err = &NonceError{nonce}
	}
	return err
}

// repeatedDecision answers a nonce that was used before: the same content is a no-op, any other an error.
func repeatedDecision(ctx context.Context, tx *txn, d Decision, out *Decided) (bool, error) {
	if err := otherUse(ctx, tx, `SELECT 1 FROM voided_approvals WHERE nonce = $1`, d.Nonce); err != nil {
		return false, err
	}
	var verdict Verdict
	var status Status
	var reason string
	err := tx.QueryRowContext(ctx, `
		SELECT v.id, v.obligation_id, v.decision, v.operator, v.draft_updated_ts, coalesce(r.reason, ''), o.status
		FROM obligation_decisions v
		JOIN obligations o ON o.id = v.obligation_id
		LEFT JOIN decision_reasons r ON r.decision_id = v.id
		WHERE v.nonce = $1`, d.Nonce).Scan(
		&out.DecisionID, &out.ObligationID, &verdict, &out.Operator, &out.Epoch, &reason, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if out.ObligationID != d.ObligationID || verdict != d.Verdict || out.Operator != d.Operator.ID() || out.Epoch != d.Epoch || reason != d.Reason {
		*out = Decided{}
		return false, &NonceError{d.Nonce}
	}
	out.Status = status
	return true, nil
}

// decidable checks, in this order, what the loser of a race most needs to hear.
func decidable(ctx context.Context, tx *txn, c *current, d Decision) error {
	if c.status != StatusDrafted && c.epoch == d.Epoch {
		return decidedBy(ctx, tx, c)
	}
	if c.epoch != d.Epoch {
		return &StaleEpochError{ObligationID: c.id, Want: c.epoch, Got: d.Epoch}
	}
	if c.direction != weOweThem {
		return &StatusError{c.id, string(d.Verdict), "its direction is " + c.direction, "only what we owe is decided"}
	}
	if d.Verdict == Reject {
		return nil
	}
	if d.Operator.Filed(c.filing.agent, c.filing.user) {
		return &OwnDraftError{c.id, d.Operator.ID()}
	}
	return c.consistent()
}

func decidedBy(ctx context.Context, tx *txn, c *current) error {
	out := &DecidedError{ObligationID: c.id, Status: c.status}
	var at int64
	err := tx.QueryRowContext(ctx, `
		SELECT operator, decided_ts FROM obligation_decisions
		WHERE obligation_id = $1 AND draft_updated_ts = $2 ORDER BY id DESC LIMIT 1`, c.id, c.epoch).Scan(&out.By, &at)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	out.At = time.Unix(at, 0)
	return out
}

func (l *Ledger) decide(ctx context.Context, tx *txn, c *current, d Decision, out *Decided) error {
	id, err := insertDecision(ctx, tx, c, d)
	if err != nil {
		return err
	}
	status, kind := StatusRejected, "rejected"
	body := fmt.Sprintf("Rejected by %s: %s", d.Operator.ID(), d.Reason)
	if d.Verdict == Approve {
		status, kind = StatusApproved, "approved"
		body = fmt.Sprintf("Approved by %s (sha %.8s).", d.Operator.ID(), c.draft.sha256)
		if err := insertSnapshot(ctx, tx, c, id); err != nil {
			return err
		}
	}
	if err := bindView(ctx, tx, c, d, id); err != nil {
		return err
	}
	*out = Decided{ObligationID: c.id, DecisionID: id, Epoch: c.epoch, Operator: d.Operator.ID(), Status: status}
	if err := setStatus(ctx, tx, c, status, c.epoch); err != nil {
		return err
	}
	if err := followUp(ctx, tx, c.filing.agent, c.id, kind, body); err != nil {
		return err
	}
	return record(ctx, tx, event{name: kind, source: sourceApproval, actor: d.Operator.ID(), obligation: c.id, decision: id, notice: body, detail: map[string]any{
		"epoch": c.epoch, "draft_sha256": c.draft.sha256, "envelope_sha256": c.filing.envelope, "reason": d.Reason, "markers": json.RawMessage(c.filing.markers), "surface": d.surface(),
	}})
}

func insertDecision(ctx context.Context, tx *txn, c *current, d Decision) (int64, error) {
	var id int64
	err := tx.QueryRowContext(ctx, `
		INSERT INTO obligation_decisions (obligation_id, decision, operator, decided_ts, nonce, draft_updated_ts)
		VALUES ($1, $2, $3, $4, $5, $6) RETURNING id`,
		c.id, d.Verdict, d.Operator.ID(), tx.sec, d.Nonce, c.epoch).Scan(&id)
	if err != nil || d.Reason == "" {
		return id, err
	}
	return id, tx.exec(ctx, `INSERT INTO decision_reasons (decision_id, reason) VALUES ($1, $2)`, id, d.Reason)
}

// insertSnapshot freezes what was approved. Nothing else can grant a dispatch.
func insertSnapshot(ctx context.Context, tx *txn, c *current, decision int64) error {
	err := tx.exec(ctx, `
		INSERT INTO obligation_approval_snapshots (decision_id, obligation_id, draft_epoch, draft_text, draft_sha256,
			origin_platform, origin_channel, origin_thread, kind)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		decision, c.id, c.epoch, c.draft.text, c.draft.sha256, c.draft.platform, c.draft.channel, orNull(c.draft.thread), receiptSent)
	if err != nil {
		return err
	}
	return tx.exec(ctx, `
		INSERT INTO approval_envelopes (decision_id, obligation_id, filing_id, counterparty, platform, channel, thread, subject,
			text_sha256, envelope_sha256, markers, approved_us)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		decision, c.id, c.filing.id, c.counterparty, c.draft.platform, c.draft.channel, orNull(c.draft.thread), orNull(c.filing.subject),
		c.draft.sha256, c.filing.envelope, c.filing.markers, tx.us)
}
