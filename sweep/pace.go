package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"countersign/ledger"
	"countersign/transports"
)

// errNoTime says that the provider's limits leave a destination to a later pass.
var errNoTime = errors.New("the provider's limits leave it to a later pass")

// pace waits, before anything is claimed, until the provider's limits allow a call. The times are kept in the ledger, so that all
// processes together keep to them. What would come after the end of the pass is left to a later one.
func (m *parcel) pace(ctx context.Context) error {
	pacer, ok := m.pool.transport.(transports.Pacer)
	if !ok {
		return nil
	}
	if err := m.gate(ctx); err != nil {
		return err
	}
	var paces []ledger.Pace
	for _, p := range pacer.Pace(m.message) {
		paces = append(paces, ledger.Pace{Scope: m.ready.Platform + " " + p.Scope, Every: p.Every})
	}
	end, _ := ctx.Deadline()
	at, taken, err := m.ledger.Reserve(ctx, paces, end)
	if err != nil {
		return err
	}
	if !taken {
		return fmt.Errorf("%w, from %s on", errNoTime, at.UTC().Format(time.RFC3339))
	}
	if ahead := at.Sub(m.opts.Now()); ahead > 0 && m.opts.Wait(ctx, ahead) != nil {
		return errStopped
	}
	return nil
}

// waitedOut tells whether a refused Send may be made once more inside the same dispatch: the provider refused it for its rate limit,
// with a short time to wait, the time is over, all checks before a first byte hold again, and the message is prepared again.
func (m *parcel) waitedOut(ctx context.Context, sent error) bool {
	if transports.Classify(sent) != transports.Refused {
		return false
	}
	after := retryAfter(sent)
	if after <= 0 || after > MaxRateLimitWait || m.opts.Wait(ctx, after) != nil {
		return false
	}
	return m.mustNotSend(m.message) == nil && m.session.Prepare(ctx, m.message) == nil
}

// retryAfter is what a provider asked for with a rate-limit refusal, or 0.
func retryAfter(err error) time.Duration {
	var refused *transports.RefusedError
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	var unprepared *transports.PrepareError
	if errors.As(err, &unprepared) {
		return unprepared.RetryAfter
	}
	return 0
}
