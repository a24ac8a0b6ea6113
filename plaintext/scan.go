package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// kind is what makes a stretch of text hidden, or dangerous to print.
type kind int

const (
	plain      kind = iota
	badByte         // not UTF-8
	control         // category Cc, without newline and tab
	forged          // the bracket that opens our own marks
	zeroWide        // draws nothing
	bidi            // turns the order of what follows
	tag             // an invisible copy of ASCII
	selector        // a variation selector that selects nothing, or of the supplement
	blanks          // a long run of blanks within a line
	blankLines      // a long run of blank lines, with the line ends around it
	lookalike       // a letter of another script in a domain
)

const (
	// minBlanks and minBlankLines say how long a run has to be to push what follows out of sight. Aligned columns and
	// paragraphs stay below.
	minBlanks     = 20
	minBlankLines = 10
)

// span is a stretch s[start:end] of one kind. count is the number of blanks or of blank lines.
type span struct {
	start, end int
	kind       kind
	count      int
}

// scan finds all that isn't plain, in order and without overlap. Hidden counts what it finds and Visible marks it, so the
// two can't disagree.
func scan(s string) []span {
	var spans []span
	foreign := foreignOffsets(hosts(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == '\n' || isBlank(r) {
			end := i + spaceLength(s[i:])
			spans = appendBlanks(spans, s, i, end)
			i = end
			continue
		}
		if n := flagLength(s[i:]); n > 0 {
			i += n
			continue
		}
		k := kindAt(s, i, r, size)
		if k == plain && foreign[i] {
			k = foreignKind(r)
		}
		if k != plain {
			spans = append(spans, span{start: i, end: i + size, kind: k})
		}
		i += size
	}
	return spans
}

func kindAt(s string, i int, r rune, size int) kind {
	switch {
	case r == utf8.RuneError && size == 1:
		return badByte
	case isControl(r):
		return control
	case r == '⟦' || r == '〚': // the second is drawn like the first
		return forged
	}
	return hiddenAt(s, i, r)
}

// foreignKind is the kind of a character that doesn't belong into its host name.
func foreignKind(r rune) kind {
	if k := invisible(r); k != plain {
		return k
	}
	return lookalike
}

// isBlank is what takes room in a line and leaves no ink. The Braille blank isn't a space to Unicode, but is drawn as one.
func isBlank(r rune) bool {
	return r == '\t' || r == '\u2800' || unicode.Is(unicode.Zs, r)
}

func spaceLength(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r != '\n' && !isBlank(r) })
	if end < 0 {
		return len(s)
	}
	return end
}

// appendBlanks takes s[start:end], which is all blanks and line ends, apart: a long run of blank lines is one span,
// and each line's own blanks are judged by themselves.
func appendBlanks(spans []span, s string, start, end int) []span {
	first := strings.IndexByte(s[start:end], '\n')
	if first < 0 {
		return appendRun(spans, s, start, end)
	}
	last := strings.LastIndexByte(s[:end], '\n')
	lines := strings.Count(s[start:end], "\n") - 1
	if start == 0 {
		lines++ // nothing stands before the first line end either
	}
	if lines >= minBlankLines {
		spans = appendRun(spans, s, start, start+first)
		spans = append(spans, span{start: start + first, end: last + 1, kind: blankLines, count: lines})
		return appendRun(spans, s, last+1, end)
	}
	for i := start; i < end; {
		line, _, _ := strings.Cut(s[i:end], "\n")
		spans = appendRun(spans, s, i, i+len(line))
		i += len(line) + 1
	}
	return spans
}

func appendRun(spans []span, s string, start, end int) []span {
	if n := utf8.RuneCountInString(s[start:end]); n >= minBlanks {
		spans = append(spans, span{start: start, end: end, kind: blanks, count: n})
	}
	return spans
}
