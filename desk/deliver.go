package desk

import (
	"context"

	"countersign/operator"
	"countersign/sweep"
)

// Deliver makes one pass. For each message the order is, and package sweep shows it in one function: recover what dead workers left;
// destination lock; Prepare at the provider; a spool slot; Claim; BeginDispatch; Send, once; Complete or MarkUnknown.
func (d *Desk) Deliver(ctx context.Context, opts sweep.Options) (sweep.Report, error) {
	opts.Timeout = d.config.Deliver.Timeout
	opts.Concurrency = d.config.Deliver.Concurrency
	opts.Hold = d.config.Deliver.Hold
	opts.RateLimitWaits = d.config.Deliver.RateLimitWaits
	return d.sweeper.Deliver(ctx, opts)
}

// Recover resolves what dead workers left behind: spooled receipts are recorded, dispatches without an outcome become unknown.
func (d *Desk) Recover(ctx context.Context) (sweep.Recovered, error) { return d.sweeper.Recover(ctx) }

// TakeOver declares a worker dead although its lock is held: a process that was stopped and won't go on. It is recorded first. What the
// worker still tries when it wakes up is refused.
func (d *Desk) TakeOver(ctx context.Context, op operator.Operator, worker string) error {
	if err := d.Ledger.DeclareDead(ctx, op, worker); err != nil {
		return err
	}
	return d.sweeper.TakeOver(worker)
}
