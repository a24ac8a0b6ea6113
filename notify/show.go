package notify

import (
	"context"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
)

// Why a card has no Approve button, for its reader.
const (
	notTheText = "This card can't be approved from: Slack does not show the draft as it was sent. Decide at the terminal."
	notWhole   = "This card can't be approved from: it does not show the whole text. Decide at the terminal."
)

// showCard posts or edits the obligation's card, and records what it shows.
func (n *Notifier) showCard(ctx context.Context, s ledger.Subject, out *Report) (ledger.CardRef, error) {
	about, err := n.opts.Describe(ctx, s.Platform, s.Channel)
	if err != nil {
		n.opts.Log.Info("a provider did not say what it calls a destination", "platform", s.Platform, "error", err)
		about = Destination{Failed: true}
	}
	fresh := s.Card == nil
	if fresh {
		if err := n.postCard(ctx, &s); err != nil {
			return ledger.CardRef{}, err
		}
	}
	changed, err := n.fill(ctx, s, about)
	if err != nil {
		return ledger.CardRef{}, err
	}
	if fresh {
		out.Posted = append(out.Posted, s.ObligationID)
	} else if changed {
		out.Edited = append(out.Edited, s.ObligationID)
	}
	return s.Card.CardRef, nil
}

// postCard posts a card that can do nothing yet, and records where it is.
func (n *Notifier) postCard(ctx context.Context, s *ledger.Subject) error {
	c := &card{s: *s}
	r, err := n.post(ctx, "", Message{Fallback: c.fallback(), Blocks: []slackgo.Block{c.title(), small("The draft follows.")}})
	if err != nil {
		return err
	}
	recorded, err := n.ledger.RecordCard(ctx, ledger.Card{ObligationID: s.ObligationID, Kind: ledger.CardDraft, Team: n.internal.Team,
		CardRef: ledger.CardRef{Channel: n.internal.Channel, TS: r.ts}})
	s.Card, s.View = &recorded, nil
	return err
}

// fill makes the card show all of its obligation, with the buttons that this allows, and records the manifest. It reports whether anything
// had to be edited. Until the manifest is recorded, the ledger refuses an approval from the card, whatever its buttons.
func (n *Notifier) fill(ctx context.Context, s ledger.Subject, about Destination) (bool, error) {
	whole := Card(s, about, "")
	content, err := whole.Card.hash()
	if err != nil {
		return false, err
	}
	if v := s.View; v != nil && v.ContentSHA256 == content && v.Epoch == s.Epoch {
		return false, nil
	}
	parts, missing, err := n.thread(ctx, s, whole)
	if err != nil {
		return false, err
	}
	if missing == "" {
		r, err := n.edit(ctx, s.Card.TS, whole.Card)
		if err != nil {
			return false, err
		}
		if r.differs {
			missing = notTheText
		}
	}
	if missing != "" {
		return true, n.withhold(ctx, s, about, missing)
	}
	return true, n.record(ctx, s, about, parts, content)
}

// thread posts what is too long for the card, unless it is there already. It returns where the text's parts are, and why nobody should
// approve what Slack shows of them.
func (n *Notifier) thread(ctx context.Context, s ledger.Subject, r Rendered) (parts []ledger.Part, missing string, err error) {
	var wanted []Message
	if v := s.View; v == nil || v.Epoch != s.Epoch {
		wanted = r.Annex
	}
	for _, m := range wanted {
		sent, err := n.post(ctx, s.Card.TS, m)
		if err != nil {
			return nil, "", err
		}
		if sent.differs {
			missing = notTheText
		}
	}
	if parts := postedBefore(s, r.Text); parts != nil {
		return parts, missing, nil
	}
	for _, p := range r.Text {
		where := s.Card.TS
		if p.Message != nil {
			sent, err := n.post(ctx, s.Card.TS, *p.Message)
			if err != nil {
				return nil, "", err
			}
			if where = sent.ts; sent.differs {
				missing = notTheText
			}
		}
		parts = append(parts, ledger.Part{TS: where, Text: p.Raw})
	}
	return parts, missing, nil
}

// postedBefore returns the parts of an earlier complete view of the same text in the card's thread, nil where there is none.
func postedBefore(s ledger.Subject, text []Part) []ledger.Part {
	v := s.View
	if v == nil || !v.Complete || v.TextSHA256 != s.DraftSHA256 || len(v.Parts) != len(text) {
		return nil
	}
	var parts []ledger.Part
	for i, p := range text {
		if p.Message == nil || v.Parts[i].TS == s.Card.TS || v.Parts[i].SHA256 != ledger.HashText(p.Raw) {
			return nil
		}
		parts = append(parts, ledger.Part{TS: v.Parts[i].TS, Text: p.Raw})
	}
	return parts
}

// record keeps the manifest. What the ledger doesn't find to be the whole text loses its Approve button.
func (n *Notifier) record(ctx context.Context, s ledger.Subject, about Destination, parts []ledger.Part, content string) error {
	if len(parts) == 0 {
		return nil // nothing was filed, and there is nothing to decide
	}
	shown, err := n.ledger.RecordView(ctx, ledger.View{CardID: s.Card.ID, Epoch: s.Epoch, EnvelopeSHA256: s.EnvelopeSHA256,
		Parts: parts, ContentSHA256: content})
	if err != nil || shown.Complete {
		return err
	}
	return n.withhold(ctx, s, about, notWhole)
}

// withhold takes the Approve button off, and says why. A view without parts takes the place of a complete one: nobody may approve from a
// card after Slack showed it wrongly.
func (n *Notifier) withhold(ctx context.Context, s ledger.Subject, about Destination, missing string) error {
	m := Card(s, about, missing).Card
	if _, err := n.edit(ctx, s.Card.TS, m); err != nil {
		return err
	}
	content, err := m.hash()
	if err != nil || len(s.Filings) == 0 {
		return err
	}
	_, err = n.ledger.RecordView(ctx, ledger.View{CardID: s.Card.ID, Epoch: s.Epoch, EnvelopeSHA256: s.EnvelopeSHA256, ContentSHA256: content})
	return err
}
