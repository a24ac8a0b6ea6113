package notify

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
)

// maxHeader is a header's limit, in characters.
// Source: https://docs.slack.dev/reference/block-kit/blocks/header-block
const maxHeader = 150

// Message is what one post or edit holds.
type Message struct {
	Fallback string // raw: what a telephone or a screen reader tells
	Blocks   []slackgo.Block
}

// Text is a text that Slack reads nothing into. It is escaped already.
func Text(shown string) *slackgo.TextBlockObject {
	off := false
	return &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: shown, Emoji: &off}
}

// Section is a block of a text that is escaped already.
func Section(shown string) slackgo.Block {
	return slackgo.NewSectionBlock(Text(shown), nil, nil)
}

// sections shows a raw text whole, on as many blocks as it takes.
func sections(text string) []slackgo.Block {
	var out []slackgo.Block
	for _, shown := range Pieces(text, maxPiece) {
		out = append(out, Section(shown))
	}
	return out
}

// header is the one place where a name is shortened; what was, stands whole below.
func header(before, name, after string) slackgo.Block {
	room := maxHeader - characters(before) - characters(after)
	return slackgo.NewHeaderBlock(Text(before + shortened(name, room) + after))
}

// small is a line of ours below the rest.
func small(lines ...string) slackgo.Block {
	var elements []slackgo.MixedElement
	for _, line := range lines {
		elements = append(elements, Text(Plain(line)))
	}
	return slackgo.NewContextBlock("", elements...)
}

func button(action, label string, ref Ref, style slackgo.Style) slackgo.BlockElement {
	b := slackgo.NewButtonBlockElement(action, ref.Encode(), Text(label))
	b.Style = style
	return b
}

// A field is something that a card says: a label of ours, and what somebody else wrote.
type field struct {
	label string
	text  string // "" where the label says it all
	away  bool   // it stands in the thread, since the card has no room for it
}

// bar stands before each line of what somebody else wrote, so that it can't look like a line of ours.
const bar = "│ "

func barred(text string) string { return bar + strings.ReplaceAll(text, "\n", "\n"+bar) }

func (f field) String() string {
	switch {
	case f.away:
		return fmt.Sprintf("%s %d characters, in this card's thread", f.label, characters(f.text))
	case strings.Contains(f.text, "\n"):
		return f.label + "\n" + barred(f.text)
	}
	return strings.TrimSpace(f.label + " " + f.text)
}

// grouped shows fields below each other, in as few blocks as take them.
func grouped(fields []field) []slackgo.Block {
	var lines []string
	for _, f := range fields {
		lines = append(lines, f.String())
	}
	return sections(strings.Join(lines, "\n"))
}

// at is a moment as cards show it. It never changes with the time of day, so that a card is edited only when something happened.
func at(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// hash names all that a message shows, so that an edit that would change nothing is left out.
func (m Message) hash() (string, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("the message's blocks: %w", err)
	}
	return ledger.HashText(string(raw)), nil
}

// texts are the texts of a message's blocks, in order, escaped as they are sent.
func texts(blocks []slackgo.Block) []string {
	var out []string
	for _, b := range blocks {
		switch b := b.(type) {
		case *slackgo.SectionBlock:
			if b.Text != nil {
				out = append(out, b.Text.Text)
			}
		case *slackgo.HeaderBlock:
			out = append(out, b.Text.Text)
		case *slackgo.ContextBlock:
			for _, e := range b.ContextElements.Elements {
				if text, ok := e.(*slackgo.TextBlockObject); ok {
					out = append(out, text.Text)
				}
			}
		}
	}
	return out
}

// sizeOf is how many characters the blocks' texts have together.
func sizeOf(blocks []slackgo.Block) int {
	n := 0
	for _, text := range texts(blocks) {
		n += characters(text)
	}
	return n
}
