// Package textdiff answers one question: what changed from one text to another?
package textdiff

import (
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Edit is a stretch of text that two versions share or differ in. The texts of all that are kept or removed make the first
// version, byte for byte, those that are kept or added the second.
type Edit struct {
	Op   string `json:"op"`
	Text string `json:"text"`
}

// The values of Edit.Op.
const (
	Keep   = "keep"
	Remove = "remove"
	Add    = "add"
)

// Compare finds what changed, word by word. It takes two seconds at most; then the rest is told as one change.
func Compare(from, to string) []Edit {
	const patience = 2 * time.Second
	d := diffmatchpatch.New()
	d.DiffTimeout = patience
	letters := alphabet{codes: map[string]rune{}, tokens: map[rune]string{}, next: 1}
	found := d.DiffCleanupSemantic(d.DiffMainRunes(letters.encode(from), letters.encode(to), false))
	edits := []Edit{}
	for _, part := range found {
		if part.Text == "" {
			continue
		}
		edits = append(edits, Edit{opOf(part.Type), letters.decode(part.Text)})
	}
	return edits
}

func opOf(t diffmatchpatch.Operation) string {
	switch t {
	case diffmatchpatch.DiffDelete:
		return Remove
	case diffmatchpatch.DiffInsert:
		return Add
	default:
		return Keep
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
