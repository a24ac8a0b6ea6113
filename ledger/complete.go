package ledger

import (
	"context"
	"fmt"
	"strings"
)

// Receipt is what proves a send: the provider's coordinate, and what the provider said.
type Receipt struct {
	Coordinate string
	Altered    bool // the provider's echo differs from the approved text
	Detail     string
}

func (r Receipt) check() error {
	if strings.TrimSpace(r.Coordinate) == "" {
		return &InputError{Field: "coordinate", Reason: "is empty; `sent` is written only with the provider's coordinate"}
	}
	return nil
}

// Failure is how a Send ended that was not confirmed.
type Failure struct {
	Outcome             Outcome // Refused or Ambiguous
	Stage, Code, Detail string
}

// attempt is a row of delivery_attempts.
type attempt struct {
	outcome             Outcome
	stage, code, detail string
	coordinate          string
	altered             bool
}

// Complete writes receipt, claim and `sent` in one transaction. Repeating it identically is a no-op, contradicting it an error.
func (l *Ledger) Complete(ctx context.Context, c Claim, r Receipt) error {
	s := step{verb: "complete", actor: c.Worker, obligation: c.ObligationID, decision: c.DecisionID}
	return l.do(ctx, s, func(ctx context.Context, tx *txn) error {
		if err := r.check(); err != nil {
			return err
		}
		h, err := readHeld(ctx, tx, c.DecisionID)
		if err != nil {
			return err
		}
		if h.heldBy(c) && h.state == ClaimDelivered {
			return sameReceipt(ctx, tx, h, r.Coordinate)
		}
		if !h.heldBy(c) || h.state != ClaimDispatching {
			return &LostClaimError{h.obligation, c.DecisionID, h.state}
		}
		return l.deliver(ctx, tx, h, r, delivered{actor: c.Worker, event: "delivered"})
	})
}

func sameReceipt(ctx context.Context, tx *txn, h held, coordinate string) error {
	var have string
	err := tx.QueryRowContext(ctx, `
		SELECT coalesce(coordinate, '') FROM obligation_deliveries WHERE obligation_id = $1 AND decision_id = $2`, h.obligation, h.decision).Scan(&have)
	if err != nil {
		return err
	}
	if have != coordinate {
		return &ContradictionError{h.obligation, h.decision, fmt.Sprintf("it was delivered as %q, not as %q", have, coordinate)}
	}
	return nil
}

// delivered says who ended a claim as delivered, and on what evidence where it was unknown.
type delivered struct{ actor, event, evidence string }

// deliver moves a dispatching or unknown claim to delivered, with its receipt, in the order that the guards ask for.
func (l *Ledger) deliver(ctx context.Context, tx *txn, h held, r Receipt, by delivered) error {
	if err := tx.exec(ctx, `
		INSERT INTO obligation_deliveries (obligation_id, decision_id, kind, coordinate, delivered_ts) VALUES ($1, $2, $3, $4, $5)`,
		h.obligation, h.decision, receiptSent, r.Coordinate, tx.sec); err != nil {
		return err
	}
	if err := tx.exec(ctx, `
		UPDATE obligation_delivery_claims SET state = 'delivered', reconciliation_evidence = $1,
			updated_ts = CASE WHEN updated_ts > $2 THEN updated_ts ELSE $2 END
		WHERE obligation_id = $3 AND decision_id = $4 AND token = $5 AND state = $6`,
		orNull(by.evidence), tx.sec, h.obligation, h.decision, h.token, h.state); err != nil {
		return err
	}
	c, err := load(ctx, tx, h.obligation)
	if err != nil {
		return err
	}
	if err := setStatus(ctx, tx, c, StatusSent, c.epoch); err != nil {
		return err
	}
	said := attempt{outcome: Confirmed, stage: by.event, detail: r.Detail, coordinate: r.Coordinate, altered: r.Altered}
	if err := recordAttempt(ctx, tx, h, by.actor, said); err != nil {
		return err
	}
	if err := l.tellSent(ctx, tx, c, r); err != nil {
		return err
	}
	return record(ctx, tx, event{name: by.event, source: sourceDelivery, actor: by.actor, obligation: h.obligation, decision: h.decision,
		detail: map[string]any{"coordinate": r.Coordinate, "altered": r.Altered, "evidence": by.evidence, "generation": h.generation}})
}

func (l *Ledger) tellSent(ctx context.Context, tx *txn, c *current, r Receipt) error {
	if err := followUp(ctx, tx, c.filing.agent, c.id, "sent", fmt.Sprintf("Sent (%s).", r.Coordinate)); err != nil {
		return err
	}
	if !r.Altered {
		return nil
	}
	return queueNotice(ctx, tx, c.id, "altered", fmt.Sprintf("Obligation %d was sent, but the provider shows another text than the approved one.", c.id), l.opts.Route())
}

func recordAttempt(ctx context.Context, tx *txn, h held, worker string, a attempt) error {
	return tx.exec(ctx, `
		INSERT INTO delivery_attempts (obligation_id, decision_id, worker, outcome, stage, code, detail, coordinate, altered, recorded_us)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		h.obligation, h.decision, worker, a.outcome, a.stage, a.code, a.detail, orNull(a.coordinate), asInt(a.altered), tx.us)
}

// MarkUnknown ends a dispatch that was not confirmed. Repeating it is a no-op. The approval is used up, whatever the outcome.
func (l *Ledger) MarkUnknown(ctx context.Context, c Claim, f Failure) error {
	s := step{verb: "unknown", actor: c.Worker, obligation: c.ObligationID, decision: c.DecisionID}
	return l.do(ctx, s, func(ctx context.Context, tx *txn) error {
		h, err := readHeld(ctx, tx, c.DecisionID)
		if err != nil {
			return err
		}
		if h.heldBy(c) && h.state == ClaimUnknown {
			return nil
		}
		if !h.heldBy(c) || h.state != ClaimDispatching {
			return &LostClaimError{h.obligation, c.DecisionID, h.state}
		}
		return l.unknown(ctx, tx, h, c.Worker, f)
	})
}

// MarkDead ends the dispatch of a worker that died in it: nobody knows whether it sent. The generation rises, so that a worker that was
// taken for dead can write nothing more. The caller has proved that the worker is dead.
func (l *Ledger) MarkDead(ctx context.Context, decision int64, dead, by string) error {
	return l.do(ctx, step{verb: "unknown", actor: by, decision: decision}, func(ctx context.Context, tx *txn) error {
		h, err := readHeld(ctx, tx, decision)
		if err != nil {
			return err
		}
		if h.state != ClaimDispatching || h.worker != dead {
			return &LostClaimError{h.obligation, decision, h.state}
		}
		if h.generation > 0 {
			if err := takeOver(ctx, tx, h, by); err != nil {
				return err
			}
		}
		return l.unknown(ctx, tx, h, by, Failure{Outcome: Ambiguous, Stage: "worker", Code: "died",
			Detail: "worker " + dead + " ended between the begin of the dispatch and its outcome"})
	})
}

func (l *Ledger) unknown(ctx context.Context, tx *txn, h held, actor string, f Failure) error {
	if f.Outcome != Refused {
		f.Outcome = Ambiguous // whatever it is, nobody knows whether it was sent
	}
	c := Claim{ObligationID: h.obligation, DecisionID: h.decision, Token: h.token}
	if err := moveClaim(ctx, tx, c, ClaimDispatching, ClaimUnknown); err != nil {
		return err
	}
	if err := recordAttempt(ctx, tx, h, actor, attempt{outcome: f.Outcome, stage: f.Stage, code: f.Code, detail: f.Detail}); err != nil {
		return err
	}
	body := fmt.Sprintf("The delivery of obligation %d is unknown (%s at %s): %s. It is never retried; find out whether it arrived.", h.obligation, f.Outcome, f.Stage, f.Detail)
	if err := queueNotice(ctx, tx, h.obligation, "unknown", body, l.opts.Route()); err != nil {
		return err
	}
	current, err := load(ctx, tx, h.obligation)
	if err != nil {
		return err
	}
	if err := followUp(ctx, tx, current.filing.agent, h.obligation, "held", fmt.Sprintf("The delivery is %s at %s; an operator has to find out whether it arrived.", f.Outcome, f.Stage)); err != nil {
		return err
	}
	return record(ctx, tx, event{name: "unknown", source: sourceDelivery, actor: actor, obligation: h.obligation, decision: h.decision,
		detail: map[string]any{"outcome": f.Outcome, "stage": f.Stage, "code": f.Code, "detail": f.Detail}})
}
