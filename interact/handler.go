package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
	"countersign/notify"
	"countersign/operator"
)

// API is what is asked of Slack.
type API interface {
	OpenViewContext(ctx context.Context, triggerID string, view slackgo.ModalViewRequest) (*slackgo.ViewResponse, error)
	PostEphemeralContext(ctx context.Context, channel, user string, options ...slackgo.MsgOption) (string, error)
	GetUserInfoContext(ctx context.Context, user string, options ...slackgo.GetUserInfoOption) (*slackgo.User, error)
}

// Steps are the ledger's steps that a click can lead to.
type Steps interface {
	CardAt(ctx context.Context, ref ledger.CardRef) (ledger.Card, error)
	Subject(ctx context.Context, obligation int64, channel string) (ledger.Subject, error)
	Decide(ctx context.Context, d ledger.Decision) (ledger.Decided, error)
	Revoke(ctx context.Context, r ledger.Revocation) (ledger.Decided, error)
	SteerOnce(ctx context.Context, op operator.Operator, obligation int64, note, nonce string) (ledger.Decided, error)
	Reconcile(ctx context.Context, op operator.Operator, obligation int64, coordinate, evidence string) (ledger.Decided, error)
	Outdated(ctx context.Context, obligation int64) error
	RecordRefusal(ctx context.Context, verb, actor string, obligation int64, cause error) error
}

// Handler works on interactions. It is safe for concurrent use.
type Handler struct {
	Steps    Steps
	API      API
	Internal notify.Internal
	// Operators is asked at each interaction, so that one who was removed a moment ago is nobody. Its failure denies.
	Operators func() (*operator.Directory, error)
	// NotArrived settles an unknown delivery and files the same text again for a fresh approval.
	NotArrived func(ctx context.Context, op operator.Operator, obligation int64, evidence string) error
	// Changed is called after something was decided, or an old card was met, so that the cards are brought up to date.
	Changed func()
	Now     func() time.Time
	Log     *slog.Logger

	working sync.WaitGroup
	people  people
}

// Accept takes a payload that its carrier has proved to be Slack's, and works on it after the caller has acknowledged it. It returns an
// error for what is no interaction.
func (h *Handler) Accept(ctx context.Context, payload []byte) (work func(), err error) {
	var call slackgo.InteractionCallback
	if err := json.Unmarshal(payload, &call); err != nil {
		return nil, fmt.Errorf("interaction: %w", err)
	}
	h.working.Add(1)
	return func() {
		go func() {
			defer h.working.Done()
			h.handle(ctx, call)
		}()
	}, nil
}

// Wait returns when all that was accepted is worked on.
func (h *Handler) Wait() { h.working.Wait() }

func (h *Handler) handle(ctx context.Context, call slackgo.InteractionCallback) {
	c, err := read(call)
	if errors.Is(err, errNothing) {
		return
	}
	if err == nil {
		err = h.work(ctx, c)
	}
	if err != nil {
		h.refuse(ctx, c, err)
	}
}

// work is the order in which a click is examined; the package's documentation has it.
func (h *Handler) work(ctx context.Context, c click) error {
	op, err := h.who(ctx, c)
	if err != nil {
		return err
	}
	s, err := h.where(ctx, c)
	if err != nil {
		return err
	}
	if c.tooFast && c.action == notify.ActionApprove {
		return errMoving
	}
	if c.view == "" && asksFirst(c.action, s) {
		return h.ask(ctx, c, s)
	}
	if err := h.decide(ctx, op, c, s); err != nil {
		return err
	}
	h.Changed()
	return nil
}

// where finds the card that was clicked on, and the state of its obligation. A card that names another state than the ledger's is old.
func (h *Handler) where(ctx context.Context, c click) (ledger.Subject, error) {
	if c.card.Channel != h.Internal.Channel {
		return ledger.Subject{}, &ledger.UnshownError{ObligationID: c.ref.ID, Reason: "it is not in the internal channel"}
	}
	card, err := h.Steps.CardAt(ctx, c.card)
	if err != nil {
		return ledger.Subject{}, err
	}
	if card.ObligationID != c.ref.ID || card.Kind != kindOf(c.action) {
		return ledger.Subject{}, &ledger.UnshownError{ObligationID: c.ref.ID, Reason: "its button is another card's"}
	}
	s, err := h.Steps.Subject(ctx, c.ref.ID, c.card.Channel)
	if err != nil {
		return s, err
	}
	if c.ref.Epoch != s.Epoch && !undoneAlready(c, s) || c.ref.SHA != notify.RefOf(s).SHA {
		return s, &ledger.StaleEpochError{ObligationID: s.ObligationID, Want: s.Epoch, Got: c.ref.Epoch}
	}
	return s, nil
}

// undoneAlready tells whether there is nothing to undo any more: a revocation makes a new epoch, and one that is delivered twice is the
// same revocation. An approval of a later epoch is another one, which an old card's button doesn't touch.
func undoneAlready(c click, s ledger.Subject) bool {
	return c.action == notify.ActionUndo && s.Status != ledger.StatusApproved
}

func kindOf(action string) string {
	if action == notify.ActionArrived || action == notify.ActionNotArrived {
		return ledger.CardUnknown
	}
	return ledger.CardDraft
}

func (h *Handler) decide(ctx context.Context, op operator.Operator, c click, s ledger.Subject) error {
	d := ledger.Decision{ObligationID: s.ObligationID, Epoch: c.ref.Epoch, Operator: op, Nonce: c.nonce, Card: &c.card}
	var err error
	switch c.action {
	case notify.ActionApprove:
		d.Verdict = ledger.Approve
		_, err = h.Steps.Decide(ctx, d)
	case notify.ActionReject:
		d.Verdict, d.Reason = ledger.Reject, c.words
		_, err = h.Steps.Decide(ctx, d)
	case notify.ActionChanges:
		_, err = h.Steps.SteerOnce(ctx, op, s.ObligationID, c.words, c.nonce)
	case notify.ActionUndo:
		_, err = h.Steps.Revoke(ctx, ledger.Revocation{ObligationID: s.ObligationID, Operator: op, Reason: undone, Nonce: c.nonce})
	case notify.ActionArrived:
		_, err = h.Steps.Reconcile(ctx, op, s.ObligationID, c.coordinate, c.words)
	case notify.ActionNotArrived:
		err = h.NotArrived(ctx, op, s.ObligationID, c.words)
	}
	return err
}

// undone is the reason of a revocation by one click: it has to be quick, since dispatch may begin at any moment.
const undone = "undone in the internal channel"
