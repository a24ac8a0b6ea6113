package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"countersign/ledger"
	"countersign/plaintext"
)

const (
	minHeight = 10 // lines: fewer show too little at once to be read

	clearScreen = "\x1b[H\x1b[2J"
	otherScreen = "\x1b[?1049h" // what was on the terminal comes back at the end
	firstScreen = "\x1b[?1049l"
)

// view is one draft on the screen, and how far it was read.
type view struct {
	subject ledger.Subject
	left    int

	brief brief
	width int
	rows  int  // of the draft that the screen has room for
	top   int  // first line on the screen
	seen  int  // lines that were on the screen, from the first on without a gap
	fits  bool // the screen is large enough
}

// read tells whether the whole text was on the screen.
func (v *view) read() bool { return v.fits && v.seen >= v.brief.end }

// fit lays the draft out for the page's width, in that many rows. Other lines are another text to the eye: it is to be read again.
func (v *view) fit(p *page, rows int, now time.Time) {
	v.rows = rows
	if v.width != p.width {
		v.width, v.top, v.seen = p.width, 0, 0
		v.brief = layOut(p, v.subject, now)
	}
	v.move(v.top)
}

// move puts a line at the top of the screen, or as near to it as there are lines.
func (v *view) move(top int) { v.top = max(min(top, len(v.brief.lines)-v.rows), 0) }

// shown are the lines on the screen. They count as seen if those before them were.
func (v *view) shown() []string {
	end := min(v.top+v.rows, len(v.brief.lines))
	if v.top <= v.seen {
		v.seen = max(v.seen, end)
	}
	return v.brief.lines[v.top:end]
}

func (v *view) more() bool { return v.top+v.rows < len(v.brief.lines) }

// scroll moves, and tells whether the key was for that. No key jumps over lines that were not on the screen; space goes on to the next
// draft where nothing is left to show.
func (v *view) scroll(pressed key) bool {
	page := max(v.rows-1, 1)
	switch pressed {
	case ' ':
		if !v.more() {
			return false
		}
		v.move(v.top + page)
	case keyPageDown:
		v.move(v.top + page)
	case 'b', keyPageUp:
		v.move(v.top - page)
	case 'j', keyDown, keyEnter:
		v.move(v.top + 1)
	case 'k', keyUp:
		v.move(v.top - 1)
	case 'g', keyHome:
		v.move(0)
	case 'G', keyEnd:
		v.move(v.seen) // as far as it was read, and a screen on
	default:
		return false
	}
	return true
}

// draw shows the draft, below it what the last key led to, where we are, and what can be done.
func (p *panel) draw(v *view) {
	width, height := p.size()
	if v.fits = width >= minWidth && height >= minHeight; !v.fits {
		p.show([]string{fmt.Sprintf("Too small: %d columns and", minWidth), fmt.Sprintf("%d lines are needed. q quits.", minHeight)})
		return
	}
	said := p.folded(p.said, width, height/2)
	v.fit(p.page(width), height-len(said)-2, p.now())
	body := slices.Clone(v.shown())
	for len(body) < v.rows {
		body = append(body, "")
	}
	body = append(append(body, said...), p.position(v), p.keyLine(v))
	p.show(body)
}

// page is an empty one of the screen's width.
func (p *panel) page(width int) *page {
	return &page{width: width, fold: true, paint: p.paint, zone: p.now().Location()}
}

// folded is a line of ours in as many as it takes, and no more than most.
func (p *panel) folded(line string, width, most int) []string {
	if line == "" {
		return nil
	}
	lines := p.page(width).folded(plaintext.VisibleLine(line), width)
	return lines[:min(len(lines), most)]
}

// show replaces what is on the screen, in one write. Raw mode makes no carriage return of a line end.
func (p *panel) show(lines []string) {
	_, _ = io.WriteString(p.out, clearScreen+strings.Join(lines, "\r\n")) // a terminal that is gone gives no key either
}

// position is the line that is ours: which draft this is, and how much of it.
func (p *panel) position(v *view) string {
	s := v.subject
	where := fmt.Sprintf("#%d  %s  %s waiting", s.ObligationID, s.Priority, count(v.left, "draft"))
	if v.more() || v.top > 0 {
		where += fmt.Sprintf("  lines %d-%d of %d", v.top+1, min(v.top+v.rows, len(v.brief.lines)), len(v.brief.lines))
	}
	return p.page(v.width).in(inkBar, runewidth.FillRight(runewidth.Truncate(where, v.width, "…"), v.width))
}

// keyLine are the keys that do something now.
func (p *panel) keyLine(v *view) string {
	keys := "r reject  s steer  n next  q quit  ?"
	if v.read() {
		keys = "a approve  " + keys
	}
	if v.more() {
		keys = "space more  " + keys
	}
	return runewidth.Truncate(keys, v.width, "…")
}

var helpLines = []string{
	"a      approve exactly this text for exactly this destination; asked once more for P0 and marked drafts.",
	"       Only once the text was on the screen to its end.",
	"r      reject it; the agent is told the reason that you write",
	"s      steer: it keeps waiting without a deadline, and the agent gets your note",
	"n      leave it as it is and go on; so does space where nothing is left to show",
	"q      quit; what was decided stays decided",
	"",
	"space  a page on     b  a page back     j k  a line     g  the beginning",
	"",
	"Any key goes on.",
}

// help shows as much at once as the screen has room for.
func (p *panel) help(ctx context.Context) error {
	width, height := p.size()
	g := p.page(width)
	for _, line := range helpLines {
		g.line("%s", line)
	}
	for part := range slices.Chunk(g.lines(), max(height, 1)) {
		p.show(part)
		if _, err := p.keys.next(ctx); err != nil {
			return err
		}
	}
	return nil
}
