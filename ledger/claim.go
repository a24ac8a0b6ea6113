package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// Claim is the permission to dispatch one approval, held by one worker. The token is a secret of its holder; the generation rises with
// each take-over, and every step checks both, so that a worker that slept through its take-over can do nothing.
type Claim struct {
	ObligationID, DecisionID int64
	Token                    string
	Worker                   string
	Generation               int64
}

// Payload is exactly what was approved, given only to the one caller whose BeginDispatch won, and good for one Send.
type Payload struct {
	ObligationID, DecisionID                         int64
	Counterparty, Platform, Channel, Thread, Subject string
	Text, TextSHA256, EnvelopeSHA256                 string
	Operator                                         string
	Key                                              string    // names this delivery; derived from the claim, safe to publish
	BegunAt                                          time.Time // by the ledger's clock
}

// Claim durably reserves an approval for a worker, after checking all of it again. The token is returned after the commit. An approval
// that is too old is taken out of circulation (*ExpiredError); an active claim is *HeldError.
func (l *Ledger) Claim(ctx context.Context, decision int64, worker string) (Claim, error) {
	token, err := l.opts.Token()
	if err != nil {
		return Claim{}, err
	}
	out := Claim{DecisionID: decision, Token: token, Worker: worker, Generation: 1}
	var expired error
	s := step{verb: "claim", actor: worker, decision: decision, byWorker: true}
	err = l.do(ctx, s, func(ctx context.Context, tx *txn) error {
		a, err := loadApproved(ctx, tx, decision)
		if err != nil {
			return err
		}
		out.ObligationID = a.c.id
		if err := claimable(ctx, tx, a); err != nil {
			return err
		}
		if expired = a.expired(tx, l.opts.Terms(a.c.platform)); expired != nil {
			return l.takeOut(ctx, tx, a, "expired", expired)
		}
		return insertClaim(ctx, tx, a, out)
	})
	if err = errors.Join(expired, err); err != nil {
		return Claim{}, err
	}
	return out, nil
}

func claimable(ctx context.Context, tx *txn, a *approved) error {
	var held ClaimState
	var used bool
	err := tx.QueryRowContext(ctx, `
		SELECT coalesce(max(CASE WHEN state IN ('claimed', 'dispatching', 'unknown') THEN state END), ''),
			count(CASE WHEN decision_id = $2 THEN 1 END) > 0
		FROM obligation_delivery_claims WHERE obligation_id = $1`, a.c.id, a.decision).Scan(&held, &used)
	if err != nil {
		return err
	}
	if held != "" {
		return &HeldError{a.c.id, held}
	}
	if err := a.stillHolds(ctx, tx); err != nil {
		return err
	}
	if used {
		return &MismatchError{a.c.id, "its decision was used by an earlier claim"}
	}
	return nil
}

func insertClaim(ctx context.Context, tx *txn, a *approved, c Claim) error {
	if err := tx.exec(ctx, `
		INSERT INTO obligation_delivery_claims (obligation_id, decision_id, token, state, created_ts, updated_ts)
		VALUES ($1, $2, $3, 'claimed', $4, $4)`, a.c.id, a.decision, c.Token, tx.sec); err != nil {
		return err
	}
	if err := tx.exec(ctx, `
		INSERT INTO claim_holders (decision_id, obligation_id, worker, generation) VALUES ($1, $2, $3, 1)`,
		a.decision, a.c.id, c.Worker); err != nil {
		return err
	}
	return record(ctx, tx, event{name: "claimed", source: sourceDelivery, actor: c.Worker, obligation: a.c.id, decision: a.decision,
		detail: map[string]any{"epoch": a.c.epoch, "generation": c.Generation}})
}

// Adopt takes over a claim that a dead worker left behind before its dispatch: the same token, the next generation. The caller has
// proved that the worker is dead.
func (l *Ledger) Adopt(ctx context.Context, decision int64, dead, worker string) (Claim, error) {
	var out Claim
	err := l.do(ctx, step{verb: "adopt", actor: worker, decision: decision, byWorker: true}, func(ctx context.Context, tx *txn) error {
		h, err := readHeld(ctx, tx, decision)
		if err != nil {
			return err
		}
		if h.state != ClaimClaimed || h.worker != dead {
			return &LostClaimError{h.obligation, decision, h.state}
		}
		if h.generation == 0 {
			return &StatusError{h.obligation, "adopt", "another implementation made its claim, and nobody knows who holds its token",
				"use `cancel`, and approve what then waits"}
		}
		if err := takeOver(ctx, tx, h, worker); err != nil {
			return err
		}
		out = Claim{ObligationID: h.obligation, DecisionID: decision, Token: h.token, Worker: worker, Generation: h.generation + 1}
		return record(ctx, tx, event{name: "adopted", source: sourceDelivery, actor: worker, obligation: h.obligation, decision: decision,
			detail: map[string]any{"from": dead, "generation": out.Generation}})
	})
	return out, err
}

// BeginDispatch is the last gate: in its own transaction it checks again all that Claim checked, and permits one Send. Where something
// changed since, nothing is sent, the claim is cancelled and the obligation waits for a new decision.
func (l *Ledger) BeginDispatch(ctx context.Context, c Claim) (Payload, error) {
	var out Payload
	var unusable error
	s := step{verb: "begin", actor: c.Worker, obligation: c.ObligationID, decision: c.DecisionID}
	err := l.do(ctx, s, func(ctx context.Context, tx *txn) error {
		if err := holds(ctx, tx, c, ClaimClaimed); err != nil {
			return err
		}
		a, err := loadApproved(ctx, tx, c.DecisionID)
		if err != nil {
			return err
		}
		var kind string
		if kind, unusable, err = l.usable(ctx, tx, a); err != nil {
			return err
		}
		if unusable != nil {
			return l.takeOut(ctx, tx, a, kind, unusable)
		}
		out = a.payload(c, tx)
		if err := outdate(ctx, tx, c.ObligationID); err != nil {
			return err
		}
		return begin(ctx, tx, c)
	})
	if err = errors.Join(unusable, err); err != nil {
		return Payload{}, err
	}
	return out, nil
}

// usable returns why an approval can't be used any more, and the kind of its voiding; err is a failure of the machine.
func (l *Ledger) usable(ctx context.Context, tx *txn, a *approved) (kind string, unusable, err error) {
	if old := a.expired(tx, l.opts.Terms(a.c.platform)); old != nil {
		return "expired", old, nil
	}
	if changed := a.stillHolds(ctx, tx); refused(changed) {
		return "cancelled", changed, nil
	} else if changed != nil {
		return "", nil, changed
	}
	return "", nil, nil
}

func begin(ctx context.Context, tx *txn, c Claim) error {
	if err := moveClaim(ctx, tx, c, ClaimClaimed, ClaimDispatching); err != nil {
		return err
	}
	if err := tx.exec(ctx, `UPDATE claim_holders SET begun_us = $1 WHERE decision_id = $2 AND worker = $3 AND generation = $4`,
		tx.us, c.DecisionID, c.Worker, c.Generation); err != nil {
		return err
	}
	return record(ctx, tx, event{name: "dispatching", source: sourceDelivery, actor: c.Worker, obligation: c.ObligationID, decision: c.DecisionID,
		detail: map[string]any{"generation": c.Generation}})
}

func (a *approved) payload(c Claim, tx *txn) Payload {
	s, e := a.snapshot, a.envelope
	return Payload{
		ObligationID: a.c.id, DecisionID: a.decision, Counterparty: e.counterparty,
		Platform: s.platform, Channel: s.channel, Thread: s.thread, Subject: e.subject,
		Text: s.text, TextSHA256: s.sha256, EnvelopeSHA256: e.envelope, Operator: a.operator,
		Key: messageKey(c.Token), BegunAt: time.UnixMicro(tx.us),
	}
}

// messageKey names a delivery in public (a Message-ID) without giving away the claim's token.
func messageKey(token string) string {
	sum := sha256.Sum256([]byte("countersign.message/v1\n" + token))
	return hex.EncodeToString(sum[:16])
}

// Cancel gives a claim up before its dispatch, by its holder. The obligation waits for a new decision.
func (l *Ledger) Cancel(ctx context.Context, c Claim, reason string) error {
	s := step{verb: "cancel", actor: c.Worker, obligation: c.ObligationID, decision: c.DecisionID}
	return l.do(ctx, s, func(ctx context.Context, tx *txn) error {
		if err := holds(ctx, tx, c, ClaimClaimed); err != nil {
			return err
		}
		current, err := load(ctx, tx, c.ObligationID)
		if err != nil {
			return err
		}
		return l.void(ctx, tx, current, voiding{decision: c.DecisionID, kind: "cancelled", actor: c.Worker, reason: reason})
	})
}

// held is a claim with its holder.
type held struct {
	obligation, decision int64
	token, worker        string
	state                ClaimState
	generation           int64
}

// unknownHolder stands for the worker of a claim that another implementation made.
const unknownHolder = "unknown"

func readHeld(ctx context.Context, tx *txn, decision int64) (held, error) {
	h := held{decision: decision}
	err := tx.QueryRowContext(ctx, `
		SELECT c.obligation_id, c.token, c.state, coalesce(h.worker, 'unknown'), coalesce(h.generation, 0)
		FROM obligation_delivery_claims c LEFT JOIN claim_holders h ON h.decision_id = c.decision_id
		WHERE c.decision_id = $1`, decision).Scan(&h.obligation, &h.token, &h.state, &h.worker, &h.generation)
	if errors.Is(err, sql.ErrNoRows) {
		return h, &LostClaimError{DecisionID: decision}
	}
	return h, err
}

// holds checks token, worker, generation and state in one place; every step of a holder starts here.
func holds(ctx context.Context, tx *txn, c Claim, want ClaimState) error {
	h, err := readHeld(ctx, tx, c.DecisionID)
	if err != nil {
		return err
	}
	if !h.heldBy(c) || h.state != want {
		return &LostClaimError{h.obligation, c.DecisionID, h.state}
	}
	return nil
}

func (h held) heldBy(c Claim) bool {
	return h.obligation == c.ObligationID && h.token == c.Token && h.worker == c.Worker && h.generation == c.Generation && c.Token != ""
}

func takeOver(ctx context.Context, tx *txn, h held, worker string) error {
	return tx.exec(ctx, `
		UPDATE claim_holders SET worker = $1, generation = generation + 1
		WHERE decision_id = $2 AND worker = $3 AND generation = $4`, worker, h.decision, h.worker, h.generation)
}

// moveClaim makes one step along the arrows, by the token's holder.
func moveClaim(ctx context.Context, tx *txn, c Claim, from, to ClaimState) error {
	err := tx.exec(ctx, `
		UPDATE obligation_delivery_claims SET state = $1, updated_ts = CASE WHEN updated_ts > $2 THEN updated_ts ELSE $2 END
		WHERE obligation_id = $3 AND decision_id = $4 AND token = $5 AND state = $6`,
		to, tx.sec, c.ObligationID, c.DecisionID, c.Token, from)
	if err != nil {
		return fmt.Errorf("claim of obligation %d from %s to %s: %w", c.ObligationID, from, to, err)
	}
	return nil
}
