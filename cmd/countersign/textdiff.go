package main

import "countersign/textdiff"

type edit = textdiff.Edit

const (
	opKeep   = textdiff.Keep
	opRemove = textdiff.Remove
	opAdd    = textdiff.Add
)

// diffLine is a line of one version, or of both.
type diffLine struct {
	op    string
	parts []edit // of op, or kept; never a line end
}

func (l diffLine) text() string {
	var text string
	for _, part := range l.parts {
		text += part.Text
	}
	return text
}

// linesOf lays edits out as lines: those of both versions once; else the old ones, and then the new ones.
func linesOf(edits []edit) []diffLine {
	var out []diffLine
	b := newDiffBlock()
	for _, e := range edits {
		for text := e.Text; text != ""; {
			before, after, ended := cutLine(text)
			b.add(edit{Op: e.Op, Text: before})
			if ended && e.Op == opKeep {
				out = append(out, b.lines()...)
				b = newDiffBlock()
			} else if ended {
				b.endLine(e.Op)
			}
			text = after
		}
	}
	return append(out, b.lines()...)
}

func cutLine(text string) (before, after string, ended bool) {
	for i := range len(text) {
		if text[i] == '\n' {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// diffBlock is what lies between two line ends that both versions have.
type diffBlock struct {
	old, new []diffLine // the last of each is still open
}

func newDiffBlock() *diffBlock {
	return &diffBlock{old: []diffLine{{op: opRemove}}, new: []diffLine{{op: opAdd}}}
}

func (b *diffBlock) add(e edit) {
	if e.Text == "" {
		return
	}
	if e.Op != opAdd {
		last := &b.old[len(b.old)-1]
		last.parts = append(last.parts, e)
	}
	if e.Op != opRemove {
		last := &b.new[len(b.new)-1]
		last.parts = append(last.parts, e)
	}
}

func (b *diffBlock) endLine(op string) {
	if op == opRemove {
		b.old = append(b.old, diffLine{op: opRemove})
	} else {
		b.new = append(b.new, diffLine{op: opAdd})
	}
}

// lines are the block's, with those at its ends that are the same in both versions told once.
func (b *diffBlock) lines() []diffLine {
	var before, after []diffLine
	for len(b.old) > 0 && len(b.new) > 0 && b.old[0].text() == b.new[0].text() {
		before = append(before, b.old[0].kept())
		b.old, b.new = b.old[1:], b.new[1:]
	}
	for len(b.old) > 0 && len(b.new) > 0 && b.old[len(b.old)-1].text() == b.new[len(b.new)-1].text() {
		after = append([]diffLine{b.old[len(b.old)-1].kept()}, after...)
		b.old, b.new = b.old[:len(b.old)-1], b.new[:len(b.new)-1]
	}
	out := append(before, b.old...)
	out = append(out, b.new...)
	return append(out, after...)
}

func (l diffLine) kept() diffLine {
	return diffLine{op: opKeep, parts: []edit{{Op: opKeep, Text: l.text()}}}
}
