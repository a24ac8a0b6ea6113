package ledger

import (
	"context"

	"countersign/operator"
)

// DeclareDead records that an operator declares a stopped worker dead although its lock is held. It changes no claim: Adopt and
// MarkDead do, and the generation that they raise is what keeps the worker from going on when it wakes up.
func (l *Ledger) DeclareDead(ctx context.Context, op operator.Operator, worker string) error {
	return l.do(ctx, step{verb: "take-over", actor: op.ID()}, func(ctx context.Context, tx *txn) error {
		if !op.Known() {
			return ErrNoOperator
		}
		if worker == "" {
			return &InputError{Field: "worker", Reason: "is empty; `countersign claims` names the workers"}
		}
		return record(ctx, tx, event{name: "declared_dead", source: sourceDelivery, actor: op.ID(), detail: map[string]any{"worker": worker}})
	})
}
