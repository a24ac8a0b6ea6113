package main

import "countersign/textdiff"

// diffLine is a line of one version, or of both.
type diffLine struct {
	op    string
	parts []textdiff.Edit // of op, or kept; never a line end
}

func (l diffLine) text() string {
	var text string
	for _, part := range l.parts {
		text += part.Text
	}
	return text
}

// linesOf lays edits out as lines: those of both versions once; else the old ones, and then the new ones.
func linesOf(edits []textdiff.Edit) []diffLine {
	var out []diffLine
	b := newDiffBlock()
	for _, e := range edits {
		for text := e.Text; text != ""; {
			before, after, ended := cutLine(text)
			b.add(textdiff.Edit{Op: e.Op, Text: before})
			if ended && e.Op == textdiff.Keep {
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
	return &diffBlock{old: []diffLine{{op: textdiff.Remove}}, new: []diffLine{{op: textdiff.Add}}}
}

func (b *diffBlock) add(e textdiff.Edit) {
	if e.Text == "" {
		return
	}
	if e.Op != textdiff.Add {
		last := &b.old[len(b.old)-1]
		last.parts = append(last.parts, e)
	}
	if e.Op != textdiff.Remove {
		last := &b.new[len(b.new)-1]
		last.parts = append(last.parts, e)
	}
}

func (b *diffBlock) endLine(op string) {
	if op == textdiff.Remove {
		b.old = append(b.old, diffLine{op: textdiff.Remove})
	} else {
		b.new = append(b.new, diffLine{op: textdiff.Add})
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
	return diffLine{op: textdiff.Keep, parts: []textdiff.Edit{{Op: textdiff.Keep, Text: l.text()}}}
}
