package sweep

import (
	"errors"

	"countersign/ledger"
)

// refusal tells a step that the contract, or a guard of the database, refused for this one message from a failure of the ledger,
// which stops the pass. What nobody recognises is a failure.
func refusal(err error) bool {
	var full *ledger.FullError
	if errors.Is(err, ledger.ErrBusy) || errors.As(err, &full) {
		return false // joined to a refusal that could not be recorded
	}
	for _, target := range []any{
		new(*ledger.HeldError), new(*ledger.StaleEpochError), new(*ledger.MismatchError), new(*ledger.VoidedError),
		new(*ledger.ExpiredError), new(*ledger.LostClaimError), new(*ledger.NotFoundError), new(*ledger.StatusError),
		new(*ledger.InputError), new(*ledger.ContradictionError), new(*ledger.DecidedError), new(*ledger.TooLateError),
		new(*ledger.GuardError),
	} {
		if errors.As(err, target) {
			return true
		}
	}
	return false
}
