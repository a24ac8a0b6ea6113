package main

import (
	"context"
	"io"
	"strings"

	"countersign/ledger"
	"countersign/plaintext"
)

// confirm asks once more for what is urgent or marked, and names what the system has to say of it. errLeft is any answer but yes.
func (p *panel) confirm(ctx context.Context, s ledger.Subject) error {
	width, height := p.size()
	g := p.page(width)
	g.line("Approve #%d for %s?", s.ObligationID, s.Counterparty)
	g.line("%s", destination(s.Platform, s.Channel))
	g.blank()
	if s.Priority == "P0" {
		g.fieldsIn(func(_, _ string) ink { return inkUrgent }, field{"", "P0: it is of the highest priority"})
	}
	for _, m := range s.Markers {
		g.fieldsIn(markerInk, field{"", m})
	}
	lines := g.lines()
	if room := height - 3; len(lines) > room {
		lines = append(lines[:room-1:room-1], "… (all of it stands above the text)")
	}
	p.show(append(lines, "", ""))
	p.keys.forget() // before the question: whoever answers it at once is heard
	_, _ = io.WriteString(p.out, "y approves it. Any other key goes back.")
	pressed, err := p.keys.press(ctx)
	if err == nil && pressed != 'y' {
		err = errLeft
	}
	return err
}

// longestLine bounds what can be typed, in characters: the ledger takes no longer reasons and notes.
const longestLine = 4_000

// line asks for a line of text. errLeft is escape; an empty line is no answer.
func (p *panel) line(ctx context.Context, title string) (string, error) {
	var typed []rune
	p.keys.forget()
	for {
		p.drawLine(title, string(typed))
		pressed, err := p.keys.next(ctx)
		if err != nil {
			return "", err
		}
		switch {
		case pressed == keyEscape || pressed == keyInterrupt:
			return "", errLeft
		case pressed == keyEnter && strings.TrimSpace(string(typed)) != "":
			p.keys.forget() // the lines that were pasted behind this one are no keys
			return string(typed), nil
		case pressed == keyBackspace:
			typed = typed[:max(len(typed)-1, 0)]
		case pressed == keyClearLine:
			typed = nil
		case pressed > keyNone && len(typed) < longestLine:
			typed = append(typed, rune(pressed))
		}
	}
}

// drawLine leaves the cursor behind what was typed, of which the end is shown where it is long.
func (p *panel) drawLine(title, typed string) {
	width, height := p.size()
	width = max(width, minWidth)
	g := p.page(width)
	g.line("%s", title)
	g.line("Enter takes it, Esc goes back, Ctrl-U begins anew.")
	lines := append(g.lines(), "")
	input := g.folded(plaintext.VisibleLine(typed), width-len("> ")-1)
	input = input[max(len(input)-max(height-len(lines), 1), 0):]
	for i, part := range input {
		lead := "  "
		if i == 0 {
			lead = "> "
		}
		lines = append(lines, lead+part)
	}
	p.show(lines)
}
