package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"countersign/operator"
)

// Revocation takes back an approval that was not yet dispatched.
type Revocation struct {
	ObligationID int64
	Operator     operator.Operator
	Reason       string
	Reject       bool   // reject it in the same step, instead of letting it wait for a new decision
	Nonce        string // names this revocation; made when empty
}

// Revoke takes an approval back: the obligation waits again, at a new epoch (or is rejected, or closed where a newer draft holds the
// pair). From dispatching on it is refused (*TooLateError).
func (l *Ledger) Revoke(ctx context.Context, r Revocation) (Decided, error) {
	var out Decided
	nonce, err := l.nonce(r.Nonce)
	if err != nil {
		return out, err
	}
	r.Nonce = nonce
	err = l.do(ctx, step{verb: "revoke", actor: r.Operator.ID(), obligation: r.ObligationID}, func(ctx context.Context, tx *txn) error {
		if !r.Operator.Known() {
			return ErrNoOperator
		}
		if err := checkReason("reason", r.Reason); err != nil {
			return err
		}
		repeated, err := repeatedRevocation(ctx, tx, r, &out)
		if err != nil || repeated {
			return err
		}
		return l.revoke(ctx, tx, r, &out)
	})
	return out, err
}

func repeatedRevocation(ctx context.Context, tx *txn, r Revocation, out *Decided) (bool, error) {
	var reason string
	var rejected bool
	err := tx.QueryRowContext(ctx, `
		SELECT v.decision_id, v.obligation_id, v.actor, v.reason, EXISTS (SELECT 1 FROM obligation_decisions d WHERE d.nonce = v.nonce),
			o.updated_at, o.status
		FROM voided_approvals v JOIN obligations o ON o.id = v.obligation_id
		WHERE v.nonce = $1`, r.Nonce).Scan(&out.DecisionID, &out.ObligationID, &out.Operator, &reason, &rejected, &out.Epoch, &out.Status)
	if errors.Is(err, sql.ErrNoRows) {
		return false, otherUse(ctx, tx, `SELECT 1 FROM obligation_decisions WHERE nonce = $1`, r.Nonce)
	}
	// A rejection leaves no decision where a newer draft held the pair and the obligation was closed.
	sameVerdict := rejected == r.Reject || out.Status == StatusClosed
	if err == nil && (out.ObligationID != r.ObligationID || out.Operator != r.Operator.ID() || reason != r.Reason || !sameVerdict) {
		*out = Decided{}
		return false, &NonceError{r.Nonce}
	}
	return err == nil, err
}

func (l *Ledger) revoke(ctx context.Context, tx *txn, r Revocation, out *Decided) error {
	c, err := load(ctx, tx, r.ObligationID)
	if err != nil {
		return err
	}
	decision, err := standingApproval(ctx, tx, c, "revoke")
	if err != nil {
		return err
	}
	v := voiding{decision: decision, kind: "revoked", actor: r.Operator.ID(), reason: r.Reason, nonce: r.Nonce}
	if err := l.void(ctx, tx, c, v); err != nil {
		return err
	}
	*out = Decided{ObligationID: c.id, DecisionID: decision, Epoch: c.epoch, Operator: r.Operator.ID(), Status: c.status}
	if !r.Reject || c.status != StatusDrafted {
		return nil
	}
	// The rejection has the revocation's nonce: they are one step, and its repetition has to be told from a revocation alone.
	return l.decide(ctx, tx, c, Decision{ObligationID: c.id, Epoch: c.epoch, Verdict: Reject, Operator: r.Operator, Reason: r.Reason, Nonce: r.Nonce}, out)
}

// standingApproval returns the decision that an approved, not yet dispatching obligation rests on.
func standingApproval(ctx context.Context, tx *txn, c *current, verb string) (int64, error) {
	held, err := activeClaim(ctx, tx, c.id)
	if err != nil {
		return 0, err
	}
	if held == ClaimDispatching || held == ClaimUnknown {
		return 0, &TooLateError{c.id, held}
	}
	if c.status == StatusSent {
		return 0, &TooLateError{c.id, ClaimDelivered}
	}
	if c.status != StatusApproved {
		return 0, &StatusError{c.id, verb, "it is " + string(c.status), "only an approval that was not dispatched can be taken back"}
	}
	var decision int64
	err = tx.QueryRowContext(ctx, `
		SELECT decision_id FROM obligation_approval_snapshots WHERE obligation_id = $1 AND draft_epoch = $2
		ORDER BY decision_id DESC LIMIT 1`, c.id, c.epoch).Scan(&decision)
	if errors.Is(err, sql.ErrNoRows) { // an approval of another implementation whose epoch moved on
		err = tx.QueryRowContext(ctx, `
			SELECT id FROM obligation_decisions WHERE obligation_id = $1 AND decision = 'approve' ORDER BY id DESC LIMIT 1`, c.id).Scan(&decision)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return 0, &MismatchError{c.id, "it is approved without any approving decision"}
	}
	return decision, err
}

// voiding takes an approval out of circulation. kind is revoked, cancelled or expired.
type voiding struct {
	decision            int64
	kind, actor, reason string
	nonce               string
}

// void cancels the claim, if there is one, and brings the obligation back to where it can be decided, in the caller's transaction.
func (l *Ledger) void(ctx context.Context, tx *txn, c *current, v voiding) error {
	if err := cancelClaim(ctx, tx, c.id, v.decision); err != nil {
		return err
	}
	if err := insertVoided(ctx, tx, c.id, v); err != nil {
		return err
	}
	if err := backToDrafted(ctx, tx, c); err != nil {
		return err
	}
	kind := v.kind
	if kind == "cancelled" {
		kind = "revoked" // an agent needs no third word for an approval that was taken back
	}
	body := fmt.Sprintf("The approval was %s by %s: %s. %s", v.kind, v.actor, v.reason, standing(c.status))
	if err := followUp(ctx, tx, c.filing.agent, c.id, kind, body); err != nil {
		return err
	}
	return record(ctx, tx, event{name: v.kind, source: sourceApproval, actor: v.actor, obligation: c.id, decision: v.decision, notice: body,
		detail: map[string]any{"reason": v.reason, "status": c.status, "epoch": c.epoch}})
}

// standing says in words what an obligation whose approval was taken back does now.
func standing(s Status) string {
	if s == StatusDrafted {
		return "The draft waits for an operator again."
	}
	return "The obligation is " + string(s) + "."
}

// insertVoided records the taking back, unless somebody did so by hand and left the obligation approved.
func insertVoided(ctx context.Context, tx *txn, obligation int64, v voiding) error {
	done, err := exists(ctx, tx, `SELECT 1 FROM voided_approvals WHERE decision_id = $1`, v.decision)
	if err != nil || done {
		return err
	}
	return tx.exec(ctx, `
		INSERT INTO voided_approvals (decision_id, obligation_id, kind, actor, reason, nonce, voided_us) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		v.decision, obligation, v.kind, v.actor, v.reason, orNull(v.nonce), tx.us)
}

// cancelClaim ends a claim that has not begun dispatch; its token then grants nothing. No claim is no error.
func cancelClaim(ctx context.Context, tx *txn, obligation, decision int64) error {
	_, err := tx.ExecContext(ctx, `
		UPDATE obligation_delivery_claims
		SET state = 'cancelled', updated_ts = CASE WHEN updated_ts > $1 THEN updated_ts ELSE $1 END
		WHERE obligation_id = $2 AND decision_id = $3 AND state = 'claimed'`, tx.sec, obligation, decision)
	return err
}

// claimedDecision returns the decision whose claim has not begun dispatch.
func claimedDecision(ctx context.Context, tx *txn, obligation int64) (decision int64, err error) {
	var state ClaimState
	err = tx.QueryRowContext(ctx, `
		SELECT decision_id, state FROM obligation_delivery_claims
		WHERE obligation_id = $1 AND state IN ('claimed', 'dispatching', 'unknown')`, obligation).Scan(&decision, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, &StatusError{obligation, "cancel", "no claim is active", "use `revoke` to take back an approval that nobody has claimed"}
	}
	if err == nil && state != ClaimClaimed {
		err = &TooLateError{obligation, state}
	}
	return decision, err
}

// CancelByOperator gives up a claim before its dispatch. The obligation waits for a new decision.
func (l *Ledger) CancelByOperator(ctx context.Context, op operator.Operator, obligation int64, reason string) (Decided, error) {
	var out Decided
	err := l.do(ctx, step{verb: "cancel", actor: op.ID(), obligation: obligation}, func(ctx context.Context, tx *txn) error {
		if !op.Known() {
			return ErrNoOperator
		}
		if err := checkText("reason", reason); err != nil {
			return err
		}
		c, err := load(ctx, tx, obligation)
		if err != nil {
			return err
		}
		decision, err := claimedDecision(ctx, tx, obligation)
		if err != nil {
			return err
		}
		if err := l.void(ctx, tx, c, voiding{decision: decision, kind: "cancelled", actor: op.ID(), reason: reason}); err != nil {
			return err
		}
		out = Decided{ObligationID: c.id, DecisionID: decision, Epoch: c.epoch, Operator: op.ID(), Status: c.status}
		return nil
	})
	return out, err
}

// Steer is no decision: the draft keeps waiting, without a deadline, and its agent gets the operator's note.
func (l *Ledger) Steer(ctx context.Context, op operator.Operator, obligation int64, note string) (Decided, error) {
	return l.SteerOnce(ctx, op, obligation, note, "")
}

// SteerOnce is Steer for a note that may be delivered more than once: the same nonce again is a no-op. "" is no nonce.
func (l *Ledger) SteerOnce(ctx context.Context, op operator.Operator, obligation int64, note, nonce string) (Decided, error) {
	var out Decided
	err := l.do(ctx, step{verb: "steer", actor: op.ID(), obligation: obligation}, func(ctx context.Context, tx *txn) error {
		if !op.Known() {
			return ErrNoOperator
		}
		if err := checkReason("note", note); err != nil {
			return err
		}
		c, err := load(ctx, tx, obligation)
		if err != nil {
			return err
		}
		out = Decided{ObligationID: c.id, Epoch: c.epoch, Operator: op.ID(), Status: c.status}
		if repeated, err := steeredBefore(ctx, tx, obligation, nonce); err != nil || repeated {
			return err
		}
		if c.status != StatusDrafted {
			return decidedBy(ctx, tx, c)
		}
		if err := clearDeadline(ctx, tx, obligation); err != nil {
			return err
		}
		body := fmt.Sprintf("%s asks for changes: %s", op.ID(), note)
		if err := followUp(ctx, tx, c.filing.agent, obligation, "steered", body); err != nil {
			return err
		}
		return record(ctx, tx, event{name: "steered", source: sourceApproval, actor: op.ID(), obligation: obligation, notice: body,
			detail: map[string]any{"epoch": c.epoch, "note": note, "nonce": nonce}})
	})
	return out, err
}

// steeredBefore tells whether this very note is on record.
func steeredBefore(ctx context.Context, tx *txn, obligation int64, nonce string) (bool, error) {
	if nonce == "" {
		return false, nil
	}
	rows, err := tx.QueryContext(ctx, `SELECT detail FROM audit_log WHERE obligation_id = $1 AND event = 'steered'`, obligation)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		var detail string
		var said struct{ Nonce string }
		if err := rows.Scan(&detail); err != nil {
			return false, err
		}
		if json.Unmarshal([]byte(detail), &said) == nil && said.Nonce == nonce {
			return true, nil
		}
	}
	return false, rows.Err()
}

// Withdraw lets the filing agent take back what is only drafted, at the epoch that it knows.
func (l *Ledger) Withdraw(ctx context.Context, agent string, obligation, epoch int64) (Decided, error) {
	var out Decided
	err := l.do(ctx, step{verb: "withdraw", actor: agent, obligation: obligation}, func(ctx context.Context, tx *txn) error {
		c, err := load(ctx, tx, obligation)
		if err != nil {
			return err
		}
		if agent == "" || c.filing.agent != agent {
			return &WrongAgentError{obligation, agent, c.filing.agent}
		}
		if c.epoch != epoch {
			return &StaleEpochError{ObligationID: obligation, Want: c.epoch, Got: epoch}
		}
		if c.status != StatusDrafted {
			return decidedBy(ctx, tx, c)
		}
		if err := setStatus(ctx, tx, c, StatusClosed, c.epoch); err != nil {
			return err
		}
		out = Decided{ObligationID: c.id, Epoch: c.epoch, Operator: agent, Status: c.status}
		return record(ctx, tx, event{name: "withdrawn", source: sourceFiling, actor: agent, obligation: obligation,
			notice: "Withdrawn by agent " + agent + ".", detail: map[string]any{"epoch": epoch}})
	})
	return out, err
}

// CloseByHand records that an obligation was handled by hand (receipt kind manual_notice). Held and sent ones are refused.
func (l *Ledger) CloseByHand(ctx context.Context, op operator.Operator, obligation int64, reason string) (Decided, error) {
	var out Decided
	err := l.do(ctx, step{verb: "close", actor: op.ID(), obligation: obligation}, func(ctx context.Context, tx *txn) error {
		if !op.Known() {
			return ErrNoOperator
		}
		if err := checkReason("reason", reason); err != nil {
			return err
		}
		c, err := load(ctx, tx, obligation)
		if err != nil {
			return err
		}
		held, err := activeClaim(ctx, tx, obligation)
		if err != nil {
			return err
		}
		if held != "" {
			return &HeldError{obligation, held}
		}
		if c.status == StatusSent || c.status == StatusClosed {
			return decidedBy(ctx, tx, c)
		}
		out, err = l.closeByHand(ctx, tx, c, op, reason)
		return err
	})
	return out, err
}

func (l *Ledger) closeByHand(ctx context.Context, tx *txn, c *current, op operator.Operator, reason string) (Decided, error) {
	var decision int64
	if c.status == StatusApproved {
		var err error
		if decision, err = standingApproval(ctx, tx, c, "close"); err != nil {
			return Decided{}, err
		}
		if err := insertVoided(ctx, tx, c.id, voiding{decision: decision, kind: "closed", actor: op.ID(), reason: reason}); err != nil {
			return Decided{}, err
		}
	}
	if err := tx.exec(ctx, `
		INSERT INTO obligation_deliveries (obligation_id, decision_id, kind, coordinate, delivered_ts) VALUES ($1, $2, $3, $4, $5)`,
		c.id, idOrNull(decision), receiptManual, "handled by hand by "+op.ID(), tx.sec); err != nil {
		return Decided{}, err
	}
	if err := setStatus(ctx, tx, c, StatusClosed, nextEpoch(tx.sec, c.epoch)); err != nil {
		return Decided{}, err
	}
	body := fmt.Sprintf("Closed by %s, handled by hand: %s", op.ID(), reason)
	if err := followUp(ctx, tx, c.filing.agent, c.id, "superseded", body); err != nil {
		return Decided{}, err
	}
	return Decided{ObligationID: c.id, DecisionID: decision, Epoch: c.epoch, Operator: op.ID(), Status: c.status},
		record(ctx, tx, event{name: "closed", source: sourceApproval, actor: op.ID(), obligation: c.id, decision: decision,
			notice: body, detail: map[string]any{"reason": reason}})
}
