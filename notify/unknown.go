package notify

import (
	"fmt"
	"strings"

	slackgo "github.com/slack-go/slack"

	"countersign/ledger"
)

// whereToLook says, for each platform, how a person finds out whether a message arrived.
var whereToLook = map[string]string{
	"smtp":     "Look into the log of the mail server, or the recipient's mailbox: the Message-ID has this key in it:",
	"slack":    "Look into the Slack channel, at about that time: the text is the approved one. Key of this attempt:",
	"telegram": "Look into the Telegram chat, at about that time: the text is the approved one. Key of this attempt:",
	"local":    "Look into the file of messages, at about that time. Key of this attempt:",
}

const lookElsewhere = "Look at what the receiver has, at about that time. Key of this attempt:"

func unknownTitle(obligation int64) string { return fmt.Sprintf("Did #%d arrive?", obligation) }

// UnknownCard shows a delivery of which nobody knows whether it arrived: what is known, where to look, and the two ways to end it; or how
// it ended.
func UnknownCard(s ledger.Subject) Message {
	open := claimIn(s, ledger.ClaimUnknown) && !s.Claim.Settled
	fallback := fmt.Sprintf("Nobody knows whether #%d for %s arrived. It is never sent again by itself; find out.", s.ObligationID, oneLine(s.Counterparty))
	if !open {
		fallback = fmt.Sprintf("#%d for %s: %s", s.ObligationID, oneLine(s.Counterparty), state(s))
	}
	blocks := []slackgo.Block{header(unknownTitle(s.ObligationID)+" For ", s.Counterparty, "")}
	blocks = append(blocks, grouped([]field{{label: "For:", text: s.Counterparty}, {label: "To: " + oneLine(s.Platform), text: s.Channel}})...)
	blocks = append(blocks, grouped(attempts(s))...)
	blocks = append(blocks, grouped(ending(s))...)
	blocks = append(blocks, small(fmt.Sprintf("#%d · epoch %d · sha256 %.8s", s.ObligationID, s.Epoch, s.DraftSHA256), fmt.Sprintf("countersign show %d", s.ObligationID)))
	if open {
		ref := RefOf(s)
		blocks = append(blocks, slackgo.NewActionBlock("find_out",
			button(ActionArrived, "It arrived", ref, ""), button(ActionNotArrived, "Did not arrive", ref, slackgo.StyleDanger)))
	}
	return Message{Fallback: fallback, Blocks: blocks}
}

// attempts are what is known: the stage, and the provider's words.
func attempts(s ledger.Subject) []field {
	var out []field
	for _, a := range s.Attempts {
		if s.Claim == nil || a.DecisionID != s.Claim.DecisionID || a.Outcome == ledger.Confirmed {
			continue
		}
		label := fmt.Sprintf("At %s: %s, at stage %s", at(a.AtTS), a.Outcome, oneLine(a.Stage))
		if a.Code != "" {
			label += ", code " + oneLine(a.Code)
		}
		out = append(out, field{label: label}, field{label: "In the provider's words, or the worker's:", text: a.Detail})
	}
	return out
}

// ending says what to do, or what became of it.
func ending(s ledger.Subject) []field {
	switch {
	case s.Status == ledger.StatusSent:
		return append([]field{{label: "It arrived."}}, received(s)...)
	case !claimIn(s, ledger.ClaimUnknown):
		return []field{{label: "It is " + string(s.Status) + "."}}
	case s.Claim.Settled:
		return []field{{label: "Settled: it did not arrive, or is not pursued. The same text may be filed again, and needs a fresh approval."}}
	}
	look := whereToLook[s.Platform]
	if look == "" {
		look = lookElsewhere
	}
	return []field{{label: look, text: s.Claim.Key}, {label: "It is never sent again by itself, and blocks this counterparty and channel until somebody knows."}}
}

// noticed is a notice as it is told in a card's thread, with the receipt's footer where it tells of one.
func noticed(s ledger.Subject, n ledger.QueuedNotice) []Message {
	first, rest, _ := strings.Cut(n.Body, "\n")
	text := first
	if rest != "" {
		text += "\n" + barred(rest)
	}
	if line := footer(s); line != "" && (n.Kind == "delivered" || n.Kind == "reconciled") {
		text += "\n" + line
	}
	var out []Message
	for _, page := range paged(pieces(text, maxPiece)) {
		m := Message{Fallback: first}
		for _, p := range page {
			m.Blocks = append(m.Blocks, Section(p.shown))
		}
		out = append(out, m)
	}
	return out
}
