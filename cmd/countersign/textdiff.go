package main

import (
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// edit is a stretch of text that two versions share or differ in. The texts of all that are kept or removed make the first
// version, byte for byte, those that are kept or added the second.
type edit struct {
	Op   string `json:"op"`
	Text string `json:"text"`
}

const (
	opKeep   = "keep"
	opRemove = "remove"
	opAdd    = "add"
)

// compareTexts finds what changed from one text to another, word by word.
func compareTexts(from, to string) []edit {
	const patience = 2 * time.Second // then the rest is told as one change
	d := diffmatchpatch.New()
	d.DiffTimeout = patience
	letters := alphabet{codes: map[string]rune{}, tokens: map[rune]string{}, next: 1}
	found := d.DiffCleanupSemantic(d.DiffMainRunes(letters.encode(from), letters.encode(to), false))
	edits := []edit{}
	for _, part := range found {
		if part.Text == "" {
			continue
		}
		edits = append(edits, edit{opOf(part.Type), letters.decode(part.Text)})
	}
	return edits
}

func opOf(t diffmatchpatch.Operation) string {
	switch t {
	case diffmatchpatch.DiffDelete:
		return opRemove
	case diffmatchpatch.DiffInsert:
		return opAdd
	default:
		return opKeep
	}
}

// alphabet gives each distinct word a code point of its own, since the library compares texts letter by letter. Surrogates
// are left out: a string can't hold them.
type alphabet struct {
	codes  map[string]rune
	tokens map[rune]string
	next   rune
}

func (l *alphabet) encode(text string) []rune {
	var out []rune
	for len(text) > 0 {
		token := text[:tokenLength(text)]
		text = text[len(token):]
		code, ok := l.codes[token]
		if !ok {
			code = l.next
			l.codes[token], l.tokens[code] = code, token
			l.next++
			if l.next == 0xD800 {
				l.next = 0xE000
			}
		}
		out = append(out, code)
	}
	return out
}

func (l *alphabet) decode(codes string) string {
	var out []byte
	for _, code := range codes {
		out = append(out, l.tokens[code]...)
	}
	return string(out)
}

// tokenLength is the length in bytes of the first word of text, of its first run of blanks, or of its first other
// character. A line end stands alone.
func tokenLength(text string) int {
	first, size := utf8.DecodeRuneInString(text)
	kind := kindOf(first)
	if kind == single {
		return size
	}
	for size < len(text) {
		r, n := utf8.DecodeRuneInString(text[size:])
		if kindOf(r) != kind {
			break
		}
		size += n
	}
	return size
}

type tokenKind int

const (
	single tokenKind = iota
	word
	blank
)

func kindOf(r rune) tokenKind {
	switch {
	case r == utf8.RuneError || r == '\n':
		return single
	case unicode.In(r, unicode.L, unicode.M, unicode.N):
		return word
	case unicode.IsSpace(r):
		return blank
	default:
		return single
	}
}

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
			b.add(edit{e.Op, before})
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
	return diffLine{op: opKeep, parts: []edit{{opKeep, l.text()}}}
}
