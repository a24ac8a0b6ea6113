package interact

import (
	"context"
	"errors"
	"fmt"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
	"countersign/notify"
	"countersign/operator"
)

// errMoving says that the card changed in the moment before the click.
var errMoving = errors.New("the card changed as it was clicked")

// refuse tells the person who clicked, and nobody else, in one of four sentences. The ledger has recorded its own refusals; one of
// somebody who is no operator is recorded here.
func (h *Handler) refuse(ctx context.Context, c click, cause error) {
	words, kind := h.sentence(ctx, c, cause)
	switch kind {
	case nobody:
		if err := h.Steps.RecordRefusal(ctx, "authenticate", "slack:"+c.team+"/"+c.user, 0, cause); err != nil {
			h.Log.Error("a refusal could not be recorded", "error", err)
		}
	case superseded, decided:
		if err := h.Steps.Outdated(ctx, c.ref.ID); err != nil {
			h.Log.Error("an old card could not be marked", "obligation", c.ref.ID, "error", err)
		}
		h.Changed()
	case half:
		h.Changed()
		fallthrough
	case later:
		h.Log.Error("a click was not worked on", "action", c.action, "obligation", c.ref.ID, "error", cause)
	}
	h.tell(ctx, c, words)
}

// NotRefiledError says that an unknown delivery was settled, and that filing its text again failed.
type NotRefiledError struct {
	ObligationID int64
	Err          error
}

func (e *NotRefiledError) Error() string {
	return fmt.Sprintf("obligation %d is settled, and its text could not be filed again: %v", e.ObligationID, e.Err)
}

// Unwrap returns why filing failed.
func (e *NotRefiledError) Unwrap() error { return e.Err }

type kind int

const (
	nobody kind = iota
	superseded
	decided
	later
	half
)

func (h *Handler) sentence(ctx context.Context, c click, cause error) (string, kind) {
	switch {
	case as[*ledger.OwnDraftError](cause):
		return "You are not an operator of this draft, since you filed it: another operator has to approve it.", nobody
	case errors.Is(cause, operator.ErrNotAuthorised), errors.Is(cause, ledger.ErrNoOperator):
		return "You are not an operator here: nothing was changed. An operator is added with `countersign operator add`.", nobody
	case as[*ledger.StaleEpochError](cause), as[*ledger.UnshownError](cause), as[*ledger.MismatchError](cause):
		return "This card is superseded: the draft changed since. Nothing was decided; decide on its newest card.", superseded
	case as[*ledger.DecidedError](cause), as[*ledger.TooLateError](cause), as[*ledger.VoidedError](cause), as[*ledger.StatusError](cause):
		return "Already decided" + h.byWhom(ctx, c, cause) + ". Your click changed nothing.", decided
	case errors.Is(cause, errMoving):
		return "Try again: the card changed just as you clicked, so read it once more. Nothing was decided.", later
	}
	if as[*NotRefiledError](cause) {
		return "It is settled, but its text could not be filed again: ask its agent to. Nothing was sent.", half
	}
	var input *ledger.InputError
	if errors.As(cause, &input) {
		return "Try again: " + input.Error() + ".", later
	}
	return "Try again: the click could not be worked on, and nothing was decided. The terminal works too.", later
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// byWhom names who decided and when, from the error or from the obligation's newest decision.
func (h *Handler) byWhom(ctx context.Context, c click, cause error) string {
	var known *ledger.DecidedError
	if errors.As(cause, &known) && known.By != "" {
		return fmt.Sprintf(" by %s at %s (%s)", known.By, known.At.UTC().Format(time.RFC3339), known.Status)
	}
	s, err := h.Steps.Subject(ctx, c.ref.ID, c.card.Channel)
	if err != nil {
		return ""
	}
	state := string(s.Status)
	var late *ledger.TooLateError
	if errors.As(cause, &late) {
		state += ", its delivery is " + string(late.State)
	}
	who, at := lastWord(s, kindOf(c.action))
	if who == "" {
		return " (" + state + ")"
	}
	return fmt.Sprintf(" by %s at %s (%s)", who, at.UTC().Format(time.RFC3339), state)
}

// lastWord is who decided on the draft, or who ended the unknown delivery. "" where nobody did.
func lastWord(s ledger.Subject, card string) (who string, at time.Time) {
	if card == ledger.CardDraft {
		if n := len(s.Decisions); n > 0 {
			return s.Decisions[n-1].Operator, time.Unix(s.Decisions[n-1].DecidedTS, 0)
		}
		return "", at
	}
	for _, entry := range s.Audit {
		if entry.Event == "reconciled" || entry.Event == "settled" {
			who, at = entry.Actor, time.UnixMicro(entry.AtUS)
		}
	}
	return who, at
}

// tell answers the person alone, and nowhere but in the internal channel: another place may have readers from outside.
func (h *Handler) tell(ctx context.Context, c click, words string) {
	if c.card.Channel != h.Internal.Channel {
		return
	}
	_, err := h.API.PostEphemeralContext(ctx, c.card.Channel, c.user,
		slackgo.MsgOptionText(words, false), slackgo.MsgOptionBlocks(notify.Section(words)))
	if err != nil {
		h.Log.Warn("the person who clicked could not be told", "error", unanswered("chat.postEphemeral", err))
	}
}
