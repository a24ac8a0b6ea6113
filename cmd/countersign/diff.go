package main

import (
	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
	"countersign/plaintext"
	"countersign/textdiff"
)

func (a *app) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what changed from the previous filing to the current one",
		ArgsUsage: "ID",
		Category:  categoryOperators,
		Description: manual{
			text: `Lines of both texts stand behind │, lines of the previous one only behind -, lines of the
current one only behind +, with what changed in them in marks: ⟦-before-⟧ ⟦+after+⟧. A line
that was broken to fit goes on behind ┆.`,
			examples: []string{"countersign diff 431", "countersign diff 431 --json"},
		}.String(),
		Action: a.diff,
	}
}

// compared is what changed between the two newest filings of an obligation.
type compared struct {
	ObligationID int64    `json:"obligation_id"`
	Epoch        int64    `json:"epoch"`      // current: the one to decide on
	FromEpoch    *int64   `json:"from_epoch"` // of the previous filing; null where there is none
	ToEpoch      int64    `json:"to_epoch"`   // of the current filing
	Changes      []change `json:"changes"`
}

// change is one field that differs.
type change struct {
	Field string          `json:"field"` // platform, channel, thread, subject, text
	From  *string         `json:"from"`
	To    *string         `json:"to"`
	Edits []textdiff.Edit `json:"edits,omitempty"` // of the text
}

func (a *app) diff(c *cli.Context) error {
	id, err := oneID(c)
	if err != nil {
		return err
	}
	return a.withDesk(c, func(d *desk.Desk) error {
		o, err := d.Ledger.Show(c.Context, id)
		if err != nil {
			return err
		}
		if len(o.Filings) == 0 {
			return exitf(exitUsage, "no_draft", "obligation %d is %s and has no draft", id, o.Status)
		}
		found := compareFilings(o)
		return a.out.show(found, func(p *page) { showCompared(p, found) })
	})
}

func compareFilings(o ledger.Shown) compared {
	current := o.Filings[len(o.Filings)-1]
	out := compared{ObligationID: o.ObligationID, Epoch: o.Epoch, ToEpoch: current.Epoch, Changes: []change{}}
	if len(o.Filings) == 1 {
		return out
	}
	before := o.Filings[len(o.Filings)-2]
	out.FromEpoch = &before.Epoch
	out.Changes = append(out.Changes, changedFields(before, current)...)
	if before.Text != current.Text {
		edits := textdiff.Compare(before.Text, current.Text)
		out.Changes = append(out.Changes, change{Field: "text", From: &before.Text, To: &current.Text, Edits: edits})
	}
	return out
}

// changedFields are the parts of the envelope that differ, but for the text.
func changedFields(before, current ledger.FilingShown) []change {
	var out []change
	for _, f := range []change{
		{Field: "platform", From: &before.Platform, To: &current.Platform},
		{Field: "channel", From: &before.Channel, To: &current.Channel},
		{Field: "thread", From: before.Thread, To: current.Thread},
		{Field: "subject", From: before.Subject, To: current.Subject},
	} {
		if !sameValue(f.From, f.To) {
			out = append(out, f)
		}
	}
	return out
}

func sameValue(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func showCompared(p *page, found compared) {
	if found.FromEpoch == nil {
		p.line("obligation %d was filed once (epoch %d): there is nothing to compare with", found.ObligationID, found.ToEpoch)
		return
	}
	p.line("obligation %d: from epoch %d to epoch %d", found.ObligationID, *found.FromEpoch, found.ToEpoch)
	if len(found.Changes) == 0 {
		p.line("destination, subject and text are the same")
	}
	for _, f := range found.Changes {
		p.blank()
		if f.Field == "text" {
			p.line("text:")
			p.diff(linesOf(f.Edits))
			continue
		}
		p.fields(field{f.Field + " was", optional(f.From)}, field{f.Field + " is", optional(f.To)})
	}
	if found.Epoch != found.ToEpoch {
		p.blank()
		p.line("the epoch is %d now: an approval of this filing was taken back", found.Epoch)
	}
}

// diffContext is how many unchanged lines are shown around a change.
const diffContext = 3

// diff adds lines of two versions. Like in quote, each line of a text stands behind a mark of ours; so does the rest of one
// that is broken.
func (p *page) diff(lines []diffLine) {
	for i := 0; i < len(lines); {
		end := i
		for end < len(lines) && lines[end].op == textdiff.Keep {
			end++
		}
		if end > i {
			p.unchanged(lines[i:end], i == 0, end == len(lines))
			i = end
			continue
		}
		p.diffLine(lines[i])
		i++
	}
}

// unchanged adds a run of lines that both versions have, without its middle where that is far from any change.
func (p *page) unchanged(run []diffLine, first, last bool) {
	head, tail := diffContext, diffContext
	if first {
		head = 0
	}
	if last {
		tail = 0
	}
	left := len(run) - head - tail
	if left <= 1 { // a note would take as much room
		head, tail, left = len(run), 0, 0
	}
	for _, l := range run[:head] {
		p.diffLine(l)
	}
	if left > 0 {
		p.line("⋯ %d unchanged lines", left)
	}
	for _, l := range run[len(run)-tail:] {
		p.diffLine(l)
	}
}

func (p *page) diffLine(l diffLine) {
	marks := map[string]string{textdiff.Keep: bar, textdiff.Remove: "- ", textdiff.Add: "+ "}
	p.broken(marks[l.op], expandTabs(l.visible()))
}

// visible is the line as plain text. The brackets can't be forged: in a text they are shown as marks themselves.
func (l diffLine) visible() string {
	whole := true
	for _, part := range l.parts {
		whole = whole && part.Op == l.op
	}
	if whole {
		return plaintext.Visible(l.text())
	}
	var out string
	for _, part := range l.parts {
		shown := plaintext.Visible(part.Text)
		switch part.Op {
		case textdiff.Remove:
			shown = "⟦-" + shown + "-⟧"
		case textdiff.Add:
			shown = "⟦+" + shown + "+⟧"
		}
		out += shown
	}
	return out
}
