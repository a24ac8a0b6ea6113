package ledger

import (
	"errors"
	"fmt"
	"time"
)

// ErrBusy says that another process held the ledger's write lock longer than the busy timeout. Nothing was changed; try again.
var ErrBusy = errors.New("the ledger is busy: another process holds its write lock; nothing was changed, try again")

// ErrNestedTransaction says that a step was called from within another step's transaction, where its commit would mean nothing.
var ErrNestedTransaction = errors.New("a ledger step can't run inside another transaction; nothing was changed")

// ErrNoOperator says that a decision came without an authenticated operator.
var ErrNoOperator = errors.New("no authenticated operator; set COUNTERSIGN_OPERATOR_TOKEN or pass --token-file")

// MovedError says that the ledger's file was moved away, or replaced, while it was open.
type MovedError struct{ Path string }

func (e *MovedError) Error() string {
	return fmt.Sprintf("the ledger %q was moved or replaced while it was open; nothing more is sent from here", e.Path)
}

// NotFoundError says that no obligation has this id, or where that is 0, that no decision has the id that was asked for.
type NotFoundError struct{ ObligationID int64 }

func (e *NotFoundError) Error() string {
	if e.ObligationID == 0 {
		return "there is no such decision"
	}
	return fmt.Sprintf("there is no obligation %d", e.ObligationID)
}

// InputError names a field that was refused, the limit it broke and the value's size.
type InputError struct {
	Field       string
	Limit, Size int    // in Unit; both 0 when the reason is no length
	Unit        string // "characters"
	Reason      string
}

func (e *InputError) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("%s %s: it has %d %s, the limit is %d; shorten it, nothing is ever cut", e.Field, e.Reason, e.Size, e.Unit, e.Limit)
	}
	return fmt.Sprintf("%s %s", e.Field, e.Reason)
}

// IdempotencyConflictError says that the agent used the key before, for another envelope or counterparty.
type IdempotencyConflictError struct {
	Agent, Key   string
	ObligationID int64
}

func (e *IdempotencyConflictError) Error() string {
	return fmt.Sprintf("idempotency key %q of agent %q belongs to obligation %d with another envelope; use a new key", e.Key, e.Agent, e.ObligationID)
}

// StaleEpochError says that the draft was filed anew, or taken back, since the caller read it.
type StaleEpochError struct{ ObligationID, Want, Got int64 }

func (e *StaleEpochError) Error() string {
	return fmt.Sprintf("obligation %d was superseded: its epoch is %d now, the decision was made against %d; read it again before deciding", e.ObligationID, e.Want, e.Got)
}

// DecidedError tells the loser of a race who decided, what and when. By is empty where no operator decided (withdrawn, closed).
type DecidedError struct {
	ObligationID int64
	Status       Status
	By           string
	At           time.Time
}

func (e *DecidedError) Error() string {
	if e.By == "" {
		return fmt.Sprintf("obligation %d is %s already, and waits for no decision", e.ObligationID, e.Status)
	}
	return fmt.Sprintf("obligation %d is %s already: %s decided at %s", e.ObligationID, e.Status, e.By, e.At.Format(time.RFC3339))
}

// StatusError says that a step does not fit the obligation's state; nothing was changed.
type StatusError struct {
	ObligationID int64
	Verb, State  string
	Hint         string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("can't %s obligation %d: %s; %s", e.Verb, e.ObligationID, e.State, e.Hint)
}

// TooLateError says that dispatch has begun: what is on its way can't be taken back.
type TooLateError struct {
	ObligationID int64
	State        ClaimState
}

func (e *TooLateError) Error() string {
	return fmt.Sprintf("too late: the delivery of obligation %d is %s; only a reconciliation or settlement can end it", e.ObligationID, e.State)
}

// NonceError says that the nonce was used before with other content.
type NonceError struct{ Nonce string }

func (e *NonceError) Error() string {
	return fmt.Sprintf("nonce %q was used before for something else; nothing was changed", e.Nonce)
}

// OwnDraftError says that the filer tried to decide its own draft.
type OwnDraftError struct {
	ObligationID int64
	Operator     string
}

func (e *OwnDraftError) Error() string {
	return fmt.Sprintf("%s filed obligation %d, and can't approve it; another operator has to", e.Operator, e.ObligationID)
}

// WrongAgentError says that an agent tried to take back another agent's draft.
type WrongAgentError struct {
	ObligationID int64
	Agent, Filed string
}

func (e *WrongAgentError) Error() string {
	return fmt.Sprintf("obligation %d was filed by agent %q, not %q", e.ObligationID, e.Filed, e.Agent)
}

// HeldError says that an active claim holds the obligation, or the pair that was filed for. ObligationID is the claim's.
type HeldError struct {
	ObligationID int64
	State        ClaimState
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("held by an active claim: the delivery of obligation %d is %s; see `countersign claims`", e.ObligationID, e.State)
}

// MismatchError says that an approval no longer equals what it was given for, or what the ledger holds does not fit together.
type MismatchError struct {
	ObligationID int64
	Field        string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("obligation %d can't be used: %s; revoke or re-file it", e.ObligationID, e.Field)
}

// VoidedError says that the approval was taken out of circulation before it was dispatched.
type VoidedError struct {
	ObligationID, DecisionID int64
	Kind                     string // revoked, cancelled, expired, closed
	Actor                    string
}

func (e *VoidedError) Error() string {
	return fmt.Sprintf("decision %d on obligation %d was %s by %s, and grants nothing", e.DecisionID, e.ObligationID, e.Kind, e.Actor)
}

// ExpiredError says that the approval grew older than the rules allow; the obligation waits for a new decision.
type ExpiredError struct {
	ObligationID, DecisionID int64
	Age, Limit               time.Duration
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the approval of obligation %d expired: it is %s old, the limit is %s; it waits for a new decision", e.ObligationID, e.Age, e.Limit)
}

// LostClaimError says that the caller's token and generation no longer hold the claim. It must not send, nor write anything.
type LostClaimError struct {
	ObligationID, DecisionID int64
	State                    ClaimState // as it is now; empty when there is no such claim
}

func (e *LostClaimError) Error() string {
	return fmt.Sprintf("the claim on obligation %d is not held any more (it is %q now); this worker has no permission to go on", e.ObligationID, e.State)
}

// ContradictionError says that a step was repeated with another content than the first time.
type ContradictionError struct {
	ObligationID, DecisionID int64
	What                     string
}

func (e *ContradictionError) Error() string {
	return fmt.Sprintf("obligation %d: %s; the first record stands", e.ObligationID, e.What)
}

// refused tells whether an error is a refusal of the contract, which the audit log keeps, and not a failure of the machine.
func refused(err error) bool {
	for _, target := range []any{
		new(*NotFoundError), new(*InputError), new(*IdempotencyConflictError), new(*StaleEpochError), new(*DecidedError),
		new(*StatusError), new(*TooLateError), new(*NonceError), new(*OwnDraftError), new(*WrongAgentError), new(*HeldError),
		new(*AgentLimitError), new(*UnshownError), new(*MismatchError), new(*VoidedError), new(*ExpiredError), new(*LostClaimError), new(*ContradictionError), new(*GuardError),
	} {
		if errors.As(err, target) {
			return true
		}
	}
	return errors.Is(err, ErrNoOperator)
}
