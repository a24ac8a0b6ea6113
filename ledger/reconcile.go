package ledger

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"countersign/operator"
)

// ConfirmSpooled ends a claim with a receipt that its worker got and the ledger could not take then. authentic is given the claim's
// token and tells whether the receipt is bound to it.
func (l *Ledger) ConfirmSpooled(ctx context.Context, decision int64, worker string, r Receipt, authentic func(token string) bool) error {
	return l.do(ctx, step{verb: "confirm", actor: worker, decision: decision}, func(ctx context.Context, tx *txn) error {
		if err := r.check(); err != nil {
			return err
		}
		h, err := readHeld(ctx, tx, decision)
		if err != nil {
			return err
		}
		if !authentic(h.token) {
			return &MismatchError{h.obligation, "a spooled receipt is not bound to its claim"}
		}
		by := delivered{actor: worker, event: "delivered"}
		switch h.state {
		case ClaimDelivered:
			return l.sameReceipt(ctx, tx, h, r, worker)
		case ClaimUnknown:
			by = delivered{actor: worker, event: "reconciled", evidence: "receipt spooled by worker " + cmp.Or(r.Worker, worker)}
		case ClaimDispatching:
		default:
			return &LostClaimError{h.obligation, decision, h.state}
		}
		return l.deliver(ctx, tx, h, r, by)
	})
}

// Reconcile records that an unknown send arrived, on an operator's evidence.
func (l *Ledger) Reconcile(ctx context.Context, op operator.Operator, obligation int64, coordinate, evidence string) (Decided, error) {
	var out Decided
	err := l.do(ctx, step{verb: "reconcile", actor: op.ID(), obligation: obligation}, func(ctx context.Context, tx *txn) error {
		h, err := heldUnknown(ctx, tx, op, obligation, "reconcile", evidence)
		if err != nil {
			return err
		}
		if err := checkReason("coordinate", coordinate); err != nil {
			return err
		}
		if err := l.deliver(ctx, tx, h, Receipt{Coordinate: coordinate}, delivered{op.ID(), "reconciled", evidence}); err != nil {
			return err
		}
		c, err := load(ctx, tx, obligation)
		if err != nil {
			return err
		}
		out = Decided{ObligationID: obligation, DecisionID: h.decision, Epoch: c.epoch, Operator: op.ID(), Status: c.status}
		return nil
	})
	return out, err
}

// Settle records that an unknown send did not arrive, or won't be pursued. The claim stays unknown and the obligation blocked; but the
// pair may be filed for again. Settling twice is refused.
func (l *Ledger) Settle(ctx context.Context, op operator.Operator, obligation int64, evidence string) (Decided, error) {
	var out Decided
	err := l.do(ctx, step{verb: "settle", actor: op.ID(), obligation: obligation}, func(ctx context.Context, tx *txn) error {
		h, err := heldUnknown(ctx, tx, op, obligation, "settle", evidence)
		if err != nil {
			return err
		}
		settled, err := exists(ctx, tx, `SELECT 1 FROM settlements WHERE decision_id = $1`, h.decision)
		if err != nil {
			return err
		}
		if settled {
			return &StatusError{obligation, "settle", "it is settled already", "see `show`"}
		}
		if err := tx.exec(ctx, `
			INSERT INTO settlements (decision_id, obligation_id, operator, evidence, settled_us) VALUES ($1, $2, $3, $4, $5)`,
			h.decision, obligation, op.ID(), evidence, tx.us); err != nil {
			return err
		}
		c, err := load(ctx, tx, obligation)
		if err != nil {
			return err
		}
		out = Decided{ObligationID: obligation, DecisionID: h.decision, Epoch: c.epoch, Operator: op.ID(), Status: c.status}
		body := fmt.Sprintf("Settled by %s: %s. The text may be filed again.", op.ID(), evidence)
		if err := followUp(ctx, tx, c.filing.agent, obligation, "held", body); err != nil {
			return err
		}
		return record(ctx, tx, event{name: "settled", source: sourceDelivery, actor: op.ID(), obligation: obligation, decision: h.decision, notice: body,
			detail: map[string]any{"evidence": evidence}})
	})
	return out, err
}

// heldUnknown returns the unknown claim of an obligation, for an operator with evidence.
func heldUnknown(ctx context.Context, tx *txn, op operator.Operator, obligation int64, verb, evidence string) (held, error) {
	if !op.Known() {
		return held{}, ErrNoOperator
	}
	if err := checkReason("evidence", evidence); err != nil {
		return held{}, err
	}
	if _, err := load(ctx, tx, obligation); err != nil {
		return held{}, err
	}
	var decision int64
	var state ClaimState
	err := tx.QueryRowContext(ctx, `
		SELECT decision_id, state FROM obligation_delivery_claims
		WHERE obligation_id = $1 AND state IN ('claimed', 'dispatching', 'unknown')`, obligation).Scan(&decision, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return held{}, &StatusError{obligation, verb, "no delivery of it is unknown", "see `countersign claims`"}
	}
	if err != nil {
		return held{}, err
	}
	if state != ClaimUnknown {
		return held{}, &StatusError{obligation, verb, "its delivery is " + string(state), "wait for its worker, or run `countersign recover` when the worker is dead"}
	}
	return readHeld(ctx, tx, decision)
}
