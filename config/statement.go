package config

import "strings"

// statement is a table's header or a "key = value" of a TOML text, by where it stands. The TOML library keeps positions to itself.
type statement struct {
	header      bool
	key         string // of a header with its brackets; without blanks and quotes
	start, next int    // its lines: where the first begins, and where the next statement's may
	value, end  int    // the value, without what is around it; of a header its own end
}

// statements finds those of a text, in order. It knows as much of TOML v1.0.0 as tells where a value ends: comments, the four kinds of
// strings, and brackets, which may hold line ends.
func statements(text string) []statement {
	var out []statement
	for at := 0; at < len(text); {
		s := readStatement(text, at)
		if s.end > at {
			out = append(out, s)
		}
		at = s.next
	}
	return out
}

// readStatement reads the one that begins on the line at text[at:]. One without an end is a blank line or a comment.
func readStatement(text string, at int) statement {
	s := statement{start: at, next: len(text)}
	depth := 0
	for i := at; i < len(text); {
		c := text[i]
		switch {
		case c == '#':
			i += lineLength(text[i:])
			continue
		case c == '"' || c == '\'':
			i += stringLength(text[i:])
			s.end = i
			continue
		case c == '\n' && depth == 0:
			s.next = i + 1
			return s.named(text)
		case c == '[' || c == '{':
			depth++
		case c == ']' || c == '}':
			depth--
		case c == '=' && s.value == 0:
			s.value = i + 1
		}
		i++
		if !isBlank(c) {
			s.end = i
		}
	}
	return s.named(text)
}

func isBlank(c byte) bool { return strings.IndexByte(" \t\r\n", c) >= 0 }

// named fills in what the bounds tell.
func (s statement) named(text string) statement {
	if s.end <= s.start {
		return s
	}
	whole := text[s.start:s.end]
	if s.header = s.value == 0; s.header {
		s.key = bare(strings.TrimPrefix(whole, byteOrderMark))
		return s
	}
	s.key = bare(text[s.start : s.value-1])
	s.value = s.end - len(strings.TrimLeft(text[s.value:s.end], " \t"))
	return s
}

const byteOrderMark = "\ufeff"

// lineLength is how far it is to the line's end, which is left for who comes next.
func lineLength(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// stringLength is the length of the string that text begins with, quotes included.
func stringLength(text string) int {
	mark := text[:1]
	if long := strings.Repeat(mark, 3); strings.HasPrefix(text, long) {
		mark = long
	}
	for i := len(mark); i < len(text); i++ {
		switch {
		case text[i] == '\\' && mark[0] == '"':
			i++
		case strings.HasPrefix(text[i:], mark):
			end := i + len(mark)
			// Up to two quotes may stand right before the three that end a long string.
			for n := 0; len(mark) == 3 && n < 2 && strings.HasPrefix(text[end:], mark[:1]); n++ {
				end++
			}
			return end
		}
	}
	return len(text)
}

// pastComments skips the lines at text[at:] that are comments. A blank line ends them: what follows it belongs to something else.
func pastComments(text string, at int) int {
	for strings.HasPrefix(strings.TrimLeft(text[at:], " \t"), "#") {
		at += lineLength(text[at:])
		if at < len(text) {
			at++
		}
	}
	return at
}
