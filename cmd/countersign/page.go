package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"countersign/plaintext"
)

// page lays out text for people. All that goes onto it is shown as plain text: control and hidden characters, from
// whatever source, become visible marks, and only quote lets a text have lines.
type page struct {
	buf   bytes.Buffer
	width int
	whole bool // for no terminal: tables are as wide as they get
	fold  bool // lines and values of fields are broken to fit the width, as quoted texts are
	paint bool // in colour
	zone  *time.Location
}

// line adds one line.
func (p *page) line(format string, args ...any) {
	for _, part := range p.folded(plaintext.VisibleLine(fmt.Sprintf(format, args...)), p.width) {
		p.buf.WriteString(part + "\n")
	}
}

// lines is what is on the page.
func (p *page) lines() []string { return strings.Split(strings.TrimSuffix(p.buf.String(), "\n"), "\n") }

// blank adds an empty line.
func (p *page) blank() { p.buf.WriteByte('\n') }

// time is a Unix time in seconds, as RFC 3339 with the offset of the reader's zone.
func (p *page) time(seconds int64) string {
	return time.Unix(seconds, 0).In(p.zone).Format(time.RFC3339)
}

// field is a label and its value.
type field struct{ label, value string }

// fields adds labelled values, one a line, aligned, and in full however long they are.
func (p *page) fields(list ...field) { p.fieldsIn(inkOf, list...) }

// fieldsIn is fields in the colours that ink tells.
func (p *page) fieldsIn(ink func(label, value string) ink, list ...field) {
	widest := 0
	for _, f := range list {
		widest = max(widest, runewidth.StringWidth(f.label))
	}
	for _, f := range list {
		lead := runewidth.FillRight(f.label, widest) + columnGap
		for _, part := range p.folded(plaintext.VisibleLine(f.value), p.width-runewidth.StringWidth(lead)-runewidth.StringWidth(brokenBar)) {
			p.buf.WriteString(lead + p.in(ink(f.label, f.value), part) + "\n")
			lead = strings.Repeat(" ", widest) + columnGap + brokenBar
		}
	}
}

// folded breaks a line for a page that must fit its width.
func (p *page) folded(line string, width int) []string {
	if !p.fold {
		return []string{line}
	}
	return strings.Split(runewidth.Wrap(line, width), "\n")
}

// quote adds a text in full behind a bar, so that none of its lines can be taken for one of ours. Lines too long for
// the terminal are broken, and the rest stands behind a broken bar: the text itself has no line break there.
func (p *page) quote(text string) {
	for line := range strings.SplitSeq(plaintext.Visible(text), "\n") {
		p.broken(bar, expandTabs(line))
	}
}

const (
	bar       = "│ "
	brokenBar = "┆ "
)

// broken adds a line behind a mark, and what doesn't fit the terminal behind broken bars.
func (p *page) broken(mark, line string) {
	for part := range strings.SplitSeq(runewidth.Wrap(line, p.width-runewidth.StringWidth(mark)), "\n") {
		p.buf.WriteString(mark + part + "\n")
		mark = brokenBar
	}
}

// expandTabs puts the blanks for a tab that a terminal would, counted from the line's own beginning.
func expandTabs(line string) string {
	const tabStop = 8
	before, rest, found := strings.Cut(line, "\t")
	for found {
		before += strings.Repeat(" ", tabStop-runewidth.StringWidth(before)%tabStop)
		var next string
		next, rest, found = strings.Cut(rest, "\t")
		before += next
	}
	return before
}

// column is one of a table's. Where the terminal is too narrow, the columns that may be cut lose their ends: nothing
// that must be copied or decided on may stand in one.
type column struct {
	title string
	cut   bool
}

// table adds rows under the columns' titles.
func (p *page) table(columns []column, rows [][]string) {
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	shown := [][]string{titles}
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = plaintext.VisibleLine(cell)
		}
		shown = append(shown, cells)
	}
	room := p.width
	if p.whole {
		room = math.MaxInt
	}
	widths := fit(columns, shown, room)
	for _, row := range shown {
		p.buf.WriteString(p.tableRow(columns, row, widths) + "\n")
	}
}

const columnGap = "  "

func (p *page) tableRow(columns []column, cells []string, widths []int) string {
	end := len(cells) // nothing is filled up behind the last cell that has text
	for end > 0 && cells[end-1] == "" {
		end--
	}
	var row strings.Builder
	for i, cell := range cells[:end] {
		if i > 0 {
			row.WriteString(columnGap)
		}
		shown := runewidth.Truncate(cell, widths[i], "…")
		row.WriteString(p.in(inkOf(columns[i].title, cell), shown))
		if i < end-1 {
			row.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(shown)))
		}
	}
	return strings.TrimRight(row.String(), " ")
}

// fit gives each column its widest cell, and takes from the widest that may be cut until a row fits in total.
func fit(columns []column, rows [][]string, total int) []int {
	const narrowest = 8
	widths := make([]int, len(columns))
	for i, c := range columns {
		for _, row := range rows {
			widths[i] = max(widths[i], runewidth.StringWidth(row[i]))
		}
		if c.cut {
			widths[i] = min(widths[i], total)
		}
	}
	used := len(columnGap) * (len(columns) - 1)
	for _, w := range widths {
		used += w
	}
	for ; used > total; used-- {
		widest := -1
		for i, c := range columns {
			if c.cut && widths[i] > narrowest && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}
