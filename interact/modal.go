package interact

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
	"countersign/notify"
)

// Where a modal's words are in its submission.
const (
	blockWords      = "words"
	blockCoordinate = "coordinate"
	inputID         = "value"
	callbackID      = "decide"
)

// Limits of a modal's fields, in characters.
// Source: https://docs.slack.dev/reference/block-kit/block-elements/plain-text-input-element and .../blocks/section-block
const (
	maxWords   = 3_000
	maxSection = 3_000
)

// metadata is what a modal carries from the click that opened it. Slack keeps it; nobody else can write it.
type metadata struct {
	Action  string     `json:"action"`
	Ref     notify.Ref `json:"ref"`
	Channel string     `json:"channel"`
	TS      string     `json:"ts"`
	Nonce   string     `json:"nonce"`
	Opener  string     `json:"opener"`
}

// asksFirst tells whether a click needs a word from its person: a reason, evidence, or a second yes to what is urgent or marked.
func asksFirst(action string, s ledger.Subject) bool {
	switch action {
	case notify.ActionApprove:
		return s.Priority == "P0" || len(s.Markers) > 0
	case notify.ActionUndo:
		return false
	}
	return true
}

// ask opens the modal in which the click is completed.
func (h *Handler) ask(ctx context.Context, c click, s ledger.Subject) error {
	m, err := json.Marshal(metadata{Action: c.action, Ref: c.ref, Channel: c.card.Channel, TS: c.card.TS, Nonce: c.nonce, Opener: c.user})
	if err != nil {
		return err
	}
	view := modal(c.action, s)
	view.PrivateMetadata = string(m)
	if _, err := h.API.OpenViewContext(ctx, c.trigger, view); err != nil {
		return fmt.Errorf("opening the dialog: %w", unanswered("views.open", err))
	}
	return nil
}

func modal(action string, s ledger.Subject) slackgo.ModalViewRequest {
	var title, submit string
	var blocks []slackgo.Block
	about := fmt.Sprintf("#%d for %s, sha256 %s", s.ObligationID, notify.Plain(s.Counterparty), notify.RefOf(s).SHA)
	switch action {
	case notify.ActionApprove:
		title, submit = "Approve this text?", "Approve"
		blocks = confirmation(about, s)
	case notify.ActionReject:
		title, submit = "Reject", "Reject"
		blocks = []slackgo.Block{notify.Section(about), input(blockWords, "Why? The agent is told, and the same text is not filed again today.")}
	case notify.ActionChanges:
		title, submit = "Request changes", "Send to agent"
		blocks = []slackgo.Block{notify.Section(about), input(blockWords, "What should the agent change?")}
	case notify.ActionArrived:
		title, submit = "It arrived", "Record as sent"
		blocks = []slackgo.Block{notify.Section(about), line(blockCoordinate, "Where is it? (message id, link, time in the mailbox)"),
			input(blockWords, "How do you know?")}
	case notify.ActionNotArrived:
		title, submit = "Did not arrive", "Settle and file again"
		blocks = []slackgo.Block{notify.Section(about), input(blockWords, "How do you know? The same text is filed again for a fresh approval.")}
	}
	return slackgo.ModalViewRequest{Type: slackgo.VTModal, CallbackID: callbackID, Title: notify.Text(title), Submit: notify.Text(submit), Close: notify.Text("Cancel"),
		Blocks: slackgo.Blocks{BlockSet: blocks}}
}

// confirmation names what makes a second yes necessary: each marker whole, on as many blocks as it takes.
func confirmation(about string, s ledger.Subject) []slackgo.Block {
	blocks := []slackgo.Block{notify.Section(about)}
	if s.Priority == "P0" {
		blocks = append(blocks, notify.Section("It has priority P0."))
	}
	for _, marker := range s.Markers {
		for _, piece := range notify.Pieces(marker, maxSection) {
			blocks = append(blocks, notify.Section(piece))
		}
	}
	return blocks
}

func input(block, label string) slackgo.Block {
	element := slackgo.NewPlainTextInputBlockElement(nil, inputID).WithMultiline(true).WithMinLength(1).WithMaxLength(maxWords)
	return slackgo.NewInputBlock(block, notify.Text(label), nil, element)
}

func line(block, label string) slackgo.Block {
	return slackgo.NewInputBlock(block, notify.Text(strings.TrimSpace(label)), nil, slackgo.NewPlainTextInputBlockElement(nil, inputID).WithMinLength(1))
}
