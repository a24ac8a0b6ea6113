package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// Receipt is what proves a send: the provider's coordinate, and what the provider said.
type Receipt struct {
	Coordinate string
	Altered    bool // the provider's echo differs from the approved text
	Detail     string
	Worker     string // who got it, where another one records it (ConfirmSpooled)
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

// Complete writes receipt, claim and `sent` in one transaction. Repeating it identically is a no-op, contradicting it an error
// (*ContradictionError). A repetition that has found out that the text was altered is recorded, since it may be the only one to say so.
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
			return l.sameReceipt(ctx, tx, h, r, c.Worker)
		}
		if !h.heldBy(c) || h.state != ClaimDispatching {
			return &LostClaimError{h.obligation, c.DecisionID, h.state}
		}
		return l.deliver(ctx, tx, h, r, delivered{actor: c.Worker, event: "delivered"})
	})
}

func (l *Ledger) sameReceipt(ctx context.Context, tx *txn, h held, r Receipt, worker string) error {
	have, err := coordinateOnRecord(ctx, tx, h)
	if err != nil {
		return err
	}
	if have != r.Coordinate {
		return &ContradictionError{h.obligation, h.decision, fmt.Sprintf("it was delivered as %q, not as %q", have, r.Coordinate)}
	}
	known, err := exists(ctx, tx, `SELECT 1 FROM delivery_attempts WHERE decision_id = $1 AND altered = 1`, h.decision)
	if err != nil || known || !r.Altered {
		return err // that it was altered is never taken back
	}
	return foundAltered(ctx, tx, h, r, worker)
}

// coordinateOnRecord returns what the claim's receipt says; sql.ErrNoRows where there is none.
func coordinateOnRecord(ctx context.Context, tx *txn, h held) (have string, err error) {
	err = tx.QueryRowContext(ctx, `
		SELECT coalesce(coordinate, '') FROM obligation_deliveries WHERE obligation_id = $1 AND decision_id = $2`, h.obligation, h.decision).Scan(&have)
	return have, err
}

// foundAltered adds to a delivery on record that the provider shows another text. The receipt itself never changes.
func foundAltered(ctx context.Context, tx *txn, h held, r Receipt, worker string) error {
	said := attempt{outcome: Confirmed, stage: "delivered", detail: r.Detail, coordinate: r.Coordinate, altered: true}
	if err := recordAttempt(ctx, tx, h, worker, said); err != nil {
		return err
	}
	return record(ctx, tx, event{name: "altered", source: sourceDelivery, actor: worker, obligation: h.obligation, decision: h.decision,
		notice: alteredNotice(h.obligation), detail: map[string]any{"coordinate": r.Coordinate, "altered": true}})
}

func alteredNotice(obligation int64) string {
	return fmt.Sprintf("Obligation %d was sent, but the provider shows another text than the approved one.", obligation)
}

// delivered says who ended a claim as delivered, and on what evidence where it was unknown.
type delivered struct{ actor, event, evidence string }

// words tells the operators what became of it.
func (d delivered) words(r Receipt) string {
	if d.evidence == "" {
		return fmt.Sprintf("Delivered (%s).", r.Coordinate)
	}
	return fmt.Sprintf("Delivered (%s), as %s found out: %s", r.Coordinate, d.actor, d.evidence)
}

// deliver moves a dispatching or unknown claim to delivered, with its receipt, in the order that the guards ask for.
func (l *Ledger) deliver(ctx context.Context, tx *txn, h held, r Receipt, by delivered) error {
	if err := writeReceipt(ctx, tx, h, r); err != nil {
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
	return record(ctx, tx, event{name: by.event, source: sourceDelivery, actor: by.actor, obligation: h.obligation, decision: h.decision, notice: by.words(r),
		detail: map[string]any{"coordinate": r.Coordinate, "altered": r.Altered, "evidence": by.evidence, "generation": h.generation}})
}

func (l *Ledger) tellSent(ctx context.Context, tx *txn, c *current, r Receipt) error {
	if err := followUp(ctx, tx, c.filing.agent, c.id, "sent", fmt.Sprintf("Sent (%s).", r.Coordinate)); err != nil {
		return err
	}
	if !r.Altered {
		return nil
	}
	return queueNotice(ctx, tx, c.id, "altered", alteredNotice(c.id))
}

// writeReceipt writes the claim's receipt. The guards let raw SQL write one while the claim is dispatching or unknown, and a receipt never
// changes: one that says the same counts, and one that says something else is the operators' to judge.
func writeReceipt(ctx context.Context, tx *txn, h held, r Receipt) error {
	have, err := coordinateOnRecord(ctx, tx, h)
	if errors.Is(err, sql.ErrNoRows) {
		return tx.exec(ctx, `
			INSERT INTO obligation_deliveries (obligation_id, decision_id, kind, coordinate, delivered_ts) VALUES ($1, $2, $3, $4, $5)`,
			h.obligation, h.decision, receiptSent, r.Coordinate, tx.sec)
	}
	if err != nil || have == r.Coordinate {
		return err
	}
	return &ContradictionError{h.obligation, h.decision, fmt.Sprintf(
		"somebody wrote its receipt by hand, as %q, not as %q; find out where it arrived, then run `countersign reconcile %d --coordinate %q` with the evidence",
		have, r.Coordinate, h.obligation, have)}
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

// heldWords tells the agent how its delivery ended, in the provider's own words where it has some.
func heldWords(f Failure) string {
	what := "is ambiguous: nobody knows whether it arrived, and an operator has to find out"
	if f.Outcome == Refused {
		what = "was refused; an operator has to settle it before the pair can be filed for again"
	}
	return strings.TrimSuffix(fmt.Sprintf("The delivery %s (at %s: %s", what, f.Stage, f.Detail), ": ") + ")."
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
	current, err := load(ctx, tx, h.obligation)
	if err != nil {
		return err
	}
	if err := followUp(ctx, tx, current.filing.agent, h.obligation, "held", heldWords(f)); err != nil {
		return err
	}
	return record(ctx, tx, event{name: "unknown", source: sourceDelivery, actor: actor, obligation: h.obligation, decision: h.decision, notice: body,
		detail: map[string]any{"outcome": f.Outcome, "stage": f.Stage, "code": f.Code, "detail": f.Detail}})
}
