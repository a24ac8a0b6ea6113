package ledger

import (
	"context"
	"errors"
	"fmt"
)

// VoidApprovalsOf takes every approval of an operator out of circulation that nobody dispatched, after the operator was removed from
// the configuration. It returns the obligations, which wait for a new decision.
func (l *Ledger) VoidApprovalsOf(ctx context.Context, operatorID, reason string) ([]Decided, error) {
	out := []Decided{}
	err := l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		if operatorID == "" {
			return &InputError{Field: "operator", Reason: "is empty"}
		}
		ids, err := approvedBy(ctx, tx, operatorID)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := l.voidRemoved(ctx, tx, id, operatorID, reason, &out); err != nil {
				return fmt.Errorf("obligation %d: %w", id, err)
			}
		}
		return record(ctx, tx, event{name: "operator_removed", source: sourceApproval, actor: "configuration",
			detail: map[string]any{"operator": operatorID, "reason": reason, "voided": len(out)}})
	})
	return out, err
}

func approvedBy(ctx context.Context, tx *txn, operatorID string) ([]int64, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT o.id FROM obligations o
		WHERE o.status = 'approved' AND EXISTS (
			SELECT 1 FROM obligation_decisions v WHERE v.obligation_id = o.id AND v.draft_updated_ts = o.updated_at
				AND v.decision = 'approve' AND v.operator = $1)
		ORDER BY o.id`, operatorID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// voidRemoved leaves alone what is on its way already.
func (l *Ledger) voidRemoved(ctx context.Context, tx *txn, id int64, operatorID, reason string, out *[]Decided) error {
	c, err := load(ctx, tx, id)
	if err != nil {
		return err
	}
	decision, err := standingApproval(ctx, tx, c, "void")
	if late := new(TooLateError); errors.As(err, &late) {
		return nil
	}
	if err != nil {
		return err
	}
	v := voiding{decision: decision, kind: "revoked", actor: "configuration", reason: reason}
	if err := l.void(ctx, tx, c, v); err != nil {
		return err
	}
	*out = append(*out, Decided{ObligationID: id, DecisionID: decision, Epoch: c.epoch, Operator: operatorID, Status: c.status})
	return nil
}
