package ledger

import (
	"context"
	"database/sql"
	"errors"
)

// Standing is how an obligation stands, without its texts and its history.
type Standing struct {
	ObligationID int64
	Status       Status
	Epoch        int64
	Claim        *HeldClaim     // the newest; nil where nobody claimed
	Delivery     *DeliveryShown // the receipt, if there is one
}

// Status tells how an obligation stands, from one consistent state of the ledger. It is cheap, for callers that ask again and again:
// what it reads doesn't grow with the obligation's history. *NotFoundError when there is no such obligation.
func (l *Ledger) Status(ctx context.Context, obligation int64) (Standing, error) {
	out := Standing{ObligationID: obligation}
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		err := tx.QueryRowContext(ctx, `SELECT status, updated_at FROM obligations WHERE id = $1`, obligation).Scan(&out.Status, &out.Epoch)
		if errors.Is(err, sql.ErrNoRows) {
			return &NotFoundError{obligation}
		}
		if err != nil {
			return err
		}
		parts := Shown{Listed: Listed{ObligationID: obligation}}
		err = errors.Join(showClaim(ctx, tx, &parts), showDelivery(ctx, tx, &parts))
		out.Claim, out.Delivery = parts.Claim, parts.Delivery
		return err
	})
	return out, err
}
