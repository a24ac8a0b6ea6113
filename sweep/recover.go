package sweep

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"countersign/ledger"
)

// Recovered is what a recover pass did. Its lists are never nil.
type Recovered struct {
	// Confirmed are spooled receipts that the ledger has now.
	Confirmed []Item `json:"confirmed"`
	// Unknown are dispatches that dead workers began, whose outcome nobody knows. Their claims are unknown now.
	Unknown []Item `json:"unknown"`
	// Adoptable are claims that dead workers left before their dispatch. The next deliver pass adopts them.
	Adoptable []Item `json:"adoptable"`
	// Bad are slots of the spool that can't be believed, or that the ledger refuses. They were set aside, with .bad added to
	// their name. Only a receipt that is proved to belong to its claim names one.
	Bad []Item `json:"bad"`

	// Interrupted tells that the pass ended early, since its context was cancelled.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Recover makes one pass over what dead workers left: it gives the receipts in the spool to the ledger, marks the dispatches of
// dead workers unknown, and lists the claims that can be adopted. Passes may overlap, and doing it again changes nothing. A
// ledger failure (ledger.ErrBusy, *ledger.FullError) ends the pass; what was done until then is returned with it. A cancelled context
// ends it without an error.
func (s *Sweeper) Recover(ctx context.Context) (Recovered, error) {
	w, err := s.place.register()
	if err != nil {
		return newRecovered(), err
	}
	out, err := s.recover(ctx, w)
	out.Interrupted = ctx.Err() != nil
	return out, errors.Join(ignoreStop(orStopped(ctx, err)), w.close())
}

func newRecovered() Recovered {
	return Recovered{Confirmed: []Item{}, Unknown: []Item{}, Adoptable: []Item{}, Bad: []Item{}}
}

// StoppedRecovery is what a recover pass did that was stopped before it began.
func StoppedRecovery() Recovered {
	out := newRecovered()
	out.Interrupted = true
	return out
}

func (s *Sweeper) recover(ctx context.Context, w *worker) (Recovered, error) {
	out := newRecovered()
	// The dead are counted before the spool is read: what a worker spooled at its very end is then seen.
	dead, err := s.deadClaims(ctx)
	if err != nil {
		return out, err
	}
	if err := s.confirmSpooled(ctx, w, &out); err != nil {
		return out, err
	}
	for _, claim := range dead {
		if err := s.markDead(ctx, w, claim, &out); err != nil {
			return out, err
		}
	}
	return out, s.place.buryDead()
}

// deadClaims returns the claims that dead workers hold, before and after the begin of their dispatch.
func (s *Sweeper) deadClaims(ctx context.Context) ([]ledger.HeldClaim, error) {
	claims, err := s.ledger.Claims(ctx)
	if err != nil {
		return nil, err
	}
	lives := map[string]bool{}
	var dead []ledger.HeldClaim
	for _, c := range claims {
		if c.State != ledger.ClaimClaimed && c.State != ledger.ClaimDispatching {
			continue
		}
		alive, known := lives[c.Worker]
		if !known {
			if alive, err = s.place.alive(c.Worker); err != nil {
				return nil, fmt.Errorf("whether worker %s lives: %w", c.Worker, err)
			}
			lives[c.Worker] = alive
		}
		if !alive {
			dead = append(dead, c)
		}
	}
	return dead, nil
}

func (s *Sweeper) markDead(ctx context.Context, w *worker, c ledger.HeldClaim, out *Recovered) error {
	item := Item{ObligationID: c.ObligationID, DecisionID: c.DecisionID, Platform: c.Platform, Channel: c.Channel}
	if c.State == ledger.ClaimClaimed {
		item.Error = fmt.Sprintf("claimed by worker %s, which is dead", c.Worker)
		if workerName.MatchString(c.Worker) {
			out.Adoptable = append(out.Adoptable, item)
		}
		return nil
	}
	err := s.ledger.MarkDead(ctx, c.DecisionID, c.Worker, w.name)
	var lost *ledger.LostClaimError
	if errors.As(err, &lost) {
		return nil // another pass was faster, or its receipt was in the spool
	}
	if err != nil && !refusal(err) {
		return err
	}
	item.Error = fmt.Sprintf("worker %s died in its dispatch; nobody knows whether it was sent", c.Worker)
	if err != nil { // a guard of the database: this one stays as it is, and is seen at every pass
		item.Error += "; it can't be marked: " + err.Error()
	}
	out.Unknown = append(out.Unknown, item)
	return nil
}

// confirmSpooled gives every receipt that nobody is writing any more to the ledger.
func (s *Sweeper) confirmSpooled(ctx context.Context, w *worker, out *Recovered) error {
	names, err := list(s.place.spool())
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasSuffix(name, slotSuffix) {
			continue
		}
		if err := s.confirmSlot(ctx, filepath.Join(s.place.spool(), name), w, out); err != nil {
			return err
		}
	}
	return nil
}

// confirmSlot settles one slot. Only a failure of the ledger or of the removal is an error: a slot that is no good stops nothing.
func (s *Sweeper) confirmSlot(ctx context.Context, path string, w *worker, out *Recovered) error {
	receipt, free, err := readUnowned(path)
	if free != nil {
		defer free()
	}
	switch {
	case errors.Is(err, errSlotOwned), errors.Is(err, fs.ErrNotExist):
		return nil // its owner lives, or another pass was faster
	case errors.Is(err, errSlotEmpty):
		return removed(path)
	case err != nil:
		out.bad(path, Item{}, err)
		return nil
	}
	return s.confirm(ctx, path, receipt, w, out)
}

func (s *Sweeper) confirm(ctx context.Context, path string, receipt sealed, w *worker, out *Recovered) error {
	if receipt.LedgerID != s.ledger.ID() {
		out.bad(path, Item{}, &badSlotError{"it belongs to another ledger"})
		return nil
	}
	proved := false
	err := s.ledger.ConfirmSpooled(ctx, receipt.DecisionID, w.name, receipt.receipt(), func(token string) bool {
		proved = receipt.authentic(token)
		return proved
	})
	switch {
	case err == nil:
		out.Confirmed = append(out.Confirmed, receipt.item())
		return removed(path)
	case !refusal(err):
		return err
	case proved:
		out.bad(path, receipt.item(), &badSlotError{fmt.Sprintf("the provider confirmed it as %q, but the ledger refuses that: %v", receipt.Coordinate, err)})
	default:
		out.bad(path, Item{}, &badSlotError{err.Error()})
	}
	return nil
}

func removed(path string) error {
	if err := removeFile(path); err != nil {
		return fmt.Errorf("the spool: %w", err)
	}
	return nil
}

// bad reports a slot. One that will never be any good (*badSlotError) is set aside, so that it is reported once.
func (r *Recovered) bad(path string, item Item, why error) {
	var never *badSlotError
	if errors.As(why, &never) {
		aside, err := setAside(path)
		if errors.Is(err, fs.ErrNotExist) {
			return // another pass did, and reports it
		}
		if why = errors.Join(why, err); err == nil {
			path = aside
		}
	}
	item.Error = fmt.Sprintf("the spooled receipt %s is not recorded: %v", path, why)
	r.Bad = append(r.Bad, item)
}
