package notify

import (
	"fmt"
	"strings"

	"countersign/ledger"
	"countersign/textdiff"
)

const (
	// around is how much of what did not change is shown on each side of what did, in characters.
	around = 40
	// maxDiff bounds the changes on a card, in characters; countersign diff shows all.
	maxDiff = 2_000
)

// changes shows what is new since an operator saw a text for this counterparty here, and what the operator said of it.
func changes(s ledger.Subject) []field {
	var out []field
	if r := s.Remark; r != nil {
		out = append(out, field{label: fmt.Sprintf("%s %s at %s:", oneLine(r.By), r.Kind, at(r.AtTS)), text: r.Note})
	}
	p := s.Previous
	if p == nil {
		return out
	}
	since := "since the filing before"
	if p.Rejected {
		since = fmt.Sprintf("since #%d, which was rejected", p.ObligationID)
	}
	var subject string
	if s.Subject != nil {
		subject = *s.Subject
	}
	if p.Subject != subject {
		out = append(out, field{label: "The subject was:", text: p.Subject})
	}
	if p.Text == s.DraftText {
		return append(out, field{label: "The text did not change " + since + "."})
	}
	shown, whole := wordDiff(textdiff.Compare(p.Text, s.DraftText))
	if !whole {
		return append(out, field{label: fmt.Sprintf("The text changed too much %s to show it here: countersign diff %d", since, s.ObligationID)})
	}
	return append(out, field{label: "The text changed " + since + ", ⟪−before−⟫ ⟪+after+⟫:", text: shown})
}

// doubled keeps a text from imitating the marks of its own changes.
var doubled = strings.NewReplacer("⟪", "⟪⟪", "⟫", "⟫⟫")

// wordDiff writes the changes with a little of what stands around them. whole is false where that is too much for a card.
func wordDiff(edits []textdiff.Edit) (shown string, whole bool) {
	var b strings.Builder
	size := 0
	for i, e := range edits {
		part := doubled.Replace(e.Text)
		switch e.Op {
		case textdiff.Remove:
			part = "⟪−" + part + "−⟫"
		case textdiff.Add:
			part = "⟪+" + part + "+⟫"
		default:
			part = nearby(part, i == 0, i == len(edits)-1)
		}
		if size += characters(part); size > maxDiff {
			return "", false
		}
		b.WriteString(part)
	}
	return b.String(), true
}

// nearby keeps the ends of an unchanged stretch that border on a change.
func nearby(text string, first, last bool) string {
	r := []rune(text)
	if len(r) <= 2*around {
		return text
	}
	head, tail := string(r[:around]), string(r[len(r)-around:])
	switch {
	case first && last:
		return ""
	case first:
		return "…" + tail
	case last:
		return head + "…"
	}
	return head + " … " + tail
}
