package notify

import (
	"context"
	"fmt"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
)

// tell brings one obligation up to date in the channel; the package's documentation has the order.
func (n *Notifier) tell(ctx context.Context, s ledger.Subject, out *Report) error {
	place, err := n.showCard(ctx, s, out)
	if err != nil {
		return err
	}
	for _, notice := range s.Notices {
		where := place
		switch notice.Kind {
		case "staged": // the card tells it
		case "unknown":
			where, err = n.showUnknown(ctx, &s, place)
		default:
			where, err = n.reply(ctx, s, place, notice)
		}
		if err != nil {
			return err
		}
		if err := n.ledger.NoticesTold(ctx, s.ObligationID, []int64{notice.ID}, where.Channel+"/"+where.TS); err != nil {
			return err
		}
		out.Told++
	}
	if err := n.refreshUnknown(ctx, &s, place); err != nil {
		return err
	}
	return n.ledger.Told(ctx, s.ObligationID, s.Mark)
}

// reply tells a notice in the card's thread. What the provider altered goes to the channel too.
func (n *Notifier) reply(ctx context.Context, s ledger.Subject, card ledger.CardRef, notice ledger.QueuedNotice) (ledger.CardRef, error) {
	var more []slackgo.MsgOption
	if notice.Kind == "altered" {
		more = append(more, slackgo.MsgOptionBroadcast())
	}
	where := ledger.CardRef{Channel: n.internal.Channel}
	for _, m := range noticed(s, notice) {
		r, err := n.post(ctx, card.TS, m, more...)
		if err != nil {
			return where, err
		}
		if where.TS == "" {
			where.TS = r.ts
		}
		more = nil
	}
	return where, nil
}

// showUnknown posts the card of an unknown delivery, unless this channel has one, or somebody has found out meanwhile.
func (n *Notifier) showUnknown(ctx context.Context, s *ledger.Subject, card ledger.CardRef) (ledger.CardRef, error) {
	held := claimIn(*s, ledger.ClaimUnknown)
	if s.UnknownCard != nil && (!held || s.UnknownCard.DecisionID == s.Claim.DecisionID) {
		return s.UnknownCard.CardRef, nil
	}
	if !held {
		return card, nil // its thread tells how it ended
	}
	r, err := n.post(ctx, "", UnknownCard(*s))
	if err != nil {
		return ledger.CardRef{}, err
	}
	recorded, err := n.ledger.RecordCard(ctx, ledger.Card{ObligationID: s.ObligationID, DecisionID: s.Claim.DecisionID, Kind: ledger.CardUnknown,
		Team: n.internal.Team, CardRef: ledger.CardRef{Channel: n.internal.Channel, TS: r.ts}})
	s.UnknownCard = &recorded
	return recorded.CardRef, err
}

// refreshUnknown posts the card that a held delivery lacks in this channel, and edits one whose delivery was resolved.
func (n *Notifier) refreshUnknown(ctx context.Context, s *ledger.Subject, card ledger.CardRef) error {
	if claimIn(*s, ledger.ClaimUnknown) && !s.Claim.Settled {
		_, err := n.showUnknown(ctx, s, card)
		return err
	}
	if s.UnknownCard == nil {
		return nil
	}
	if _, err := n.edit(ctx, s.UnknownCard.TS, UnknownCard(*s)); err != nil && !gone(err) {
		return fmt.Errorf("the card of the unknown delivery: %w", err)
	}
	return nil
}
