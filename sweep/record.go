package sweep

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/ledger"
	"countersign/transports"
)

// recordTries bounds how often the outcome of a send is written while the ledger is busy. Each try waits for the lock as long as
// the ledger's busy timeout. Trying again sends nothing.
const recordTries = 3

// record writes what became of the send. It never leads to another one. Its error is what could not be written, which ends the
// pass: the claim then stays dispatching, and becomes unknown, or delivered by the spool, after this worker's end.
func (m *parcel) record(ctx context.Context, r transports.Receipt, sent error) error {
	if sent == nil && strings.TrimSpace(r.Coordinate) == "" {
		sent = &transports.AmbiguousError{Stage: "receipt", Err: errors.New("the provider said yes without a coordinate")}
	}
	switch transports.Judge(r, sent) {
	case transports.Confirmed:
		return m.confirmed(ctx, r)
	case transports.Refused:
		return m.failed(ctx, Refused, ledger.Refused, sent)
	default:
		m.spoiled = true
		return m.failed(ctx, Ambiguous, ledger.Ambiguous, sent)
	}
}

func (m *parcel) confirmed(ctx context.Context, r transports.Receipt) error {
	receipt := ledger.Receipt{Coordinate: r.Coordinate, Altered: r.Altered, Detail: r.Detail}
	err := persist(func() error { return m.ledger.Complete(ctx, m.claim, receipt) })
	if err == nil {
		m.item.Coordinate, m.item.Altered = r.Coordinate, r.Altered
		m.report.add(Delivered, m.item)
		m.step(AfterComplete)
		return nil
	}
	return m.keep(receipt, err)
}

// failed records a send that was not confirmed.
func (m *parcel) failed(ctx context.Context, k Kind, outcome ledger.Outcome, sent error) error {
	f := ledger.Failure{Outcome: outcome, Stage: "send", Detail: sent.Error()}
	var refused *transports.RefusedError
	var ambiguous *transports.AmbiguousError
	switch {
	case errors.As(sent, &ambiguous):
		f.Stage, f.Code = ambiguous.Stage, ambiguous.Code
	case errors.As(sent, &refused):
		f.Stage, f.Code, m.retryAfter = refused.Stage, refused.Code, refused.RetryAfter
	}
	err := persist(func() error { return m.ledger.MarkUnknown(ctx, m.claim, f) })
	m.item.Error = sent.Error()
	if err != nil {
		err = fmt.Errorf("what became of obligation %d could not be recorded: %w", m.item.ObligationID, err)
		m.item.Error += "; " + err.Error()
	}
	m.report.add(k, m.item)
	if err == nil {
		m.step(AfterUnknown)
	}
	return err
}

// persist writes an outcome, and tries again while the ledger is busy.
func persist(write func() error) error {
	for n := 1; ; n++ {
		err := write()
		if !errors.Is(err, ledger.ErrBusy) || n == recordTries {
			return err
		}
	}
}

// keep puts a receipt that the ledger could not take into the slot. It is not delivered as far as the ledger knows, so it is
// reported as ambiguous, with its coordinate.
func (m *parcel) keep(r ledger.Receipt, cause error) error {
	err := fmt.Errorf("the receipt of obligation %d could not be recorded: %w", m.item.ObligationID, cause)
	where := "it is kept in the spool, and `countersign recover` records it"
	if spoolErr := m.writeSlot(r); spoolErr != nil {
		where = "nor could it be kept in the spool (" + spoolErr.Error() + "): reconcile it by hand"
		err = errors.Join(err, fmt.Errorf("the spool: %w", spoolErr))
	}
	m.item.Coordinate, m.item.Altered = r.Coordinate, r.Altered
	m.item.Error = fmt.Sprintf("the provider confirmed it as %q, but the ledger could not take the receipt (%v); %s", r.Coordinate, cause, where)
	m.report.add(Ambiguous, m.item)
	m.step(AfterSpool)
	return err
}

// writeSlot writes the receipt into the slot, or, where somebody removed the file, into a new one.
func (m *parcel) writeSlot(r ledger.Receipt) error {
	line, err := spooled{
		Schema: spoolSchema, LedgerID: m.ledger.ID(), ObligationID: m.claim.ObligationID, DecisionID: m.claim.DecisionID,
		Platform: m.item.Platform, Channel: m.item.Channel, Worker: m.claim.Worker, Generation: m.claim.Generation,
		Coordinate: r.Coordinate, Altered: r.Altered, Detail: r.Detail,
	}.line(m.claim.Token)
	if err != nil {
		return err
	}
	if !m.slot.usable() {
		fresh, err := m.worker.reserve(&m.slots)
		if err != nil {
			return err
		}
		m.replaceSlot(fresh)
	}
	err = m.slot.write(line)
	m.slot.leave() // also after an error: what stands there may be whole
	m.slot = nil
	return err
}
