package notify

import (
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
)

// Destination is what a provider says of where a message would go. It is the provider's word, and shown as such.
type Destination struct {
	Name     string
	External bool // people of another organisation read it
	Known    bool // the provider could be asked
	Failed   bool // the provider was asked, and did not answer
}

// Rendered is how an obligation is shown: one message that is edited, and in its thread what is too long for it.
type Rendered struct {
	Card  Message
	Text  []Part    // the draft's whole text, in order; empty where nothing was filed
	Annex []Message // what else is too long for the card
}

// Part is a stretch of the draft's text, and the message in the thread that shows it.
type Part struct {
	Raw     string
	Message *Message // nil: it is on the card itself
}

// Card shows an obligation. missing says why the card can't be approved from, "" that it can: then, and only then, it has an Approve
// button. The same subject always gives the same card.
func Card(s ledger.Subject, about Destination, missing string) Rendered {
	c := newCard(s, about)
	return Rendered{Card: Message{Fallback: c.fallback(), Blocks: c.blocks(missing)}, Text: c.parts(), Annex: c.annex()}
}

// card is a card in the making.
type card struct {
	s ledger.Subject
	// What stands on it, from top to bottom; the text is between subject and changes.
	who, marks, subject, changes, agent, history []field
	text                                         []piece
	inThread                                     bool // the text is in the thread
}

// maxAside is how much of one field stands on the card, in characters.
const maxAside = 2_500

func newCard(s ledger.Subject, about Destination) *card {
	c := &card{s: s, who: who(s, about), agent: agent(s), history: history(s), text: pieces(s.DraftText, maxPiece)}
	if len(s.Markers) > 0 {
		c.marks = []field{{label: "System marks:", text: strings.Join(s.Markers, "\n")}}
	}
	if s.Subject != nil {
		c.subject = []field{{label: "Subject:", text: *s.Subject}}
	}
	if s.Status == ledger.StatusDrafted {
		c.changes = changes(s)
	}
	c.fit()
	return c
}

// fit moves to the thread what the card has no room for: long fields, then the text, then the longest fields until the rest fits.
func (c *card) fit() {
	for _, f := range c.movable() {
		f.away = characters(f.text) > maxAside
	}
	c.inThread = !c.fits()
	for !c.fits() {
		var longest *field
		for _, f := range c.movable() {
			if longest == nil || characters(f.text) > characters(longest.text) {
				longest = f
			}
		}
		if longest == nil {
			return
		}
		longest.away = true
	}
}

// movable are the fields that could still be moved.
func (c *card) movable() []*field {
	var out []*field
	for _, group := range [][]field{c.who, c.marks, c.subject, c.changes, c.agent, c.history} {
		for i := range group {
			if !group[i].away && group[i].text != "" {
				out = append(out, &group[i])
			}
		}
	}
	return out
}

func (c *card) fits() bool {
	blocks := c.blocks("")
	return len(blocks) <= maxBlocks && sizeOf(blocks) <= maxMessage
}

func (c *card) sha() string { return RefOf(c.s).SHA }

// fallback is, of a draft that waits, the notice of its filing (DESIGN section 5).
func (c *card) fallback() string {
	if c.s.Status == ledger.StatusDrafted {
		return fmt.Sprintf("Draft filed for approval (%s, sha %s). Waiting on operator.", c.s.Priority, c.sha())
	}
	return fmt.Sprintf("#%d for %s: %s", c.s.ObligationID, oneLine(c.s.Counterparty), state(c.s))
}

func (c *card) blocks(missing string) []slackgo.Block {
	blocks := []slackgo.Block{c.title()}
	for _, group := range [][]field{c.who, c.marks} {
		blocks = append(blocks, grouped(group)...)
	}
	blocks = append(blocks, c.letter()...)
	for _, group := range [][]field{c.changes, c.agent, c.history} {
		blocks = append(blocks, grouped(group)...)
	}
	blocks = append(blocks, c.foot())
	if missing != "" && c.s.Status == ledger.StatusDrafted {
		blocks = append(blocks, sections(missing)...)
	}
	if actions := c.actions(missing == ""); len(actions) > 0 {
		blocks = append(blocks, slackgo.NewActionBlock("decide", actions...))
	}
	return blocks
}

func (c *card) title() slackgo.Block {
	before := ""
	if c.s.Priority != "" {
		before = string(c.s.Priority) + " · "
	}
	return header(before, c.s.Counterparty, " · "+state(c.s))
}

// letter is what is sent: the subject, and the text or where it is.
func (c *card) letter() []slackgo.Block {
	if len(c.text) == 0 {
		return nil
	}
	blocks := append([]slackgo.Block{slackgo.NewDividerBlock()}, grouped(c.subject)...)
	blocks = append(blocks, small(fmt.Sprintf("The whole text, %d characters:", characters(c.s.DraftText))))
	if c.inThread {
		blocks = append(blocks, sections(fmt.Sprintf("It is too long for this card, and in its thread, in %s.", count(len(c.pages()), "part")))...)
	} else {
		for _, p := range c.text {
			blocks = append(blocks, Section(p.shown))
		}
	}
	return append(blocks, slackgo.NewDividerBlock())
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// foot names the draft, and what decides on it at the terminal.
func (c *card) foot() slackgo.Block {
	line := fmt.Sprintf("#%d · epoch %d", c.s.ObligationID, c.s.Epoch)
	if c.s.DraftSHA256 != "" {
		line += " · sha256 " + c.sha()
	}
	if c.s.Status == ledger.StatusDrafted {
		return small(line, fmt.Sprintf("countersign approve %d --epoch %d", c.s.ObligationID, c.s.Epoch))
	}
	return small(line, fmt.Sprintf("countersign show %d", c.s.ObligationID))
}

// actions are the buttons of the state. whole tells whether all of the draft is shown: nobody approves what they can't read.
func (c *card) actions(whole bool) []slackgo.BlockElement {
	ref := RefOf(c.s)
	var out []slackgo.BlockElement
	switch {
	case c.s.Status == ledger.StatusDrafted:
		if whole {
			out = append(out, button(ActionApprove, "Approve", ref, slackgo.StylePrimary))
		}
		return append(out, button(ActionChanges, "Request changes", ref, ""), button(ActionReject, "Reject", ref, slackgo.StyleDanger))
	case c.s.Status == ledger.StatusApproved && !claimIn(c.s, ledger.ClaimDispatching, ledger.ClaimUnknown, ledger.ClaimDelivered):
		return append(out, button(ActionUndo, "Undo", ref, ""))
	}
	return nil
}

// pages are the text's pieces, a message each.
func (c *card) pages() [][]piece { return paged(c.text) }

// parts are the text as it is shown: on the card, or each message of the thread.
func (c *card) parts() []Part {
	if len(c.text) == 0 {
		return nil
	}
	if !c.inThread {
		return []Part{{Raw: c.s.DraftText}}
	}
	var out []Part
	pages := c.pages()
	for i, page := range pages {
		label := fmt.Sprintf("Part %d of %d · #%d · sha256 %s", i+1, len(pages), c.s.ObligationID, c.sha())
		out = append(out, Part{Raw: joined(page).raw, Message: pageOf(label, page)})
	}
	return out
}

// annex are the fields that are in the thread, each whole.
func (c *card) annex() []Message {
	var out []Message
	for _, group := range [][]field{c.who, c.marks, c.subject, c.changes, c.agent, c.history} {
		for _, f := range group {
			if !f.away {
				continue
			}
			for _, page := range paged(pieces(bar+strings.ReplaceAll(f.text, "\n", "\n"+bar), maxPiece)) {
				out = append(out, *pageOf(fmt.Sprintf("#%d · epoch %d · %s", c.s.ObligationID, c.s.Epoch, f.label), page))
			}
		}
	}
	return out
}

func pageOf(label string, page []piece) *Message {
	blocks := []slackgo.Block{slackgo.NewContextBlock("", Text(shortened(label, maxHeader)))} // the card has all of it
	for _, p := range page {
		blocks = append(blocks, Section(p.shown))
	}
	return &Message{Fallback: label, Blocks: blocks}
}
