// Package plaintext answers one question: what is in this text, and how is it shown?
//
// Line and Text clean what comes in, and change nothing but control characters and white space, because the hash that
// an operator approves is the hash of the stored text. Hidden tells what a reader would not see in it. Visible and
// VisibleLine are the one renderer for every string that isn't ours: what they return can be printed on a terminal.
// Skeleton, Folded and LooksAlike compare names the way an eye does. Neutralise keeps an agent from writing the
// system's own markers.
//
// The package keeps no state and imports nothing else of the project.
package plaintext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// NotUTF8Error refuses an input whose bytes are not UTF-8. Replacing the bad bytes would approve a text that nobody wrote.
type NotUTF8Error struct {
	Offset int // of the first bad byte, counted from 0
}

func (e *NotUTF8Error) Error() string {
	return fmt.Sprintf("not valid UTF-8: bad byte at offset %d", e.Offset)
}

// crlf turns the two other line ends into the one that is stored.
var crlf = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// Line cleans a single-line field: control characters go, every run of spaces, tabs and line ends becomes one space, and
// none is left at either end. White space outside of ASCII stays, and so do hidden characters: they are counted by
// Hidden and shown by VisibleLine, not removed. The result is a fixed point. The error is a *NotUTF8Error.
func Line(s string) (string, error) {
	if err := checkUTF8(s); err != nil {
		return "", err
	}
	words := strings.FieldsFunc(dropControls(s), isLineSpace)
	return strings.Join(words, " "), nil
}

// Text cleans a multi-line text: control characters go, except newline and tab; CRLF and lone CR become LF; leading
// and trailing blank lines (of spaces and tabs only) go, and the final newline. Nothing else changes: no Unicode
// normalisation, no trimming within a line. The result is a fixed point. The error is a *NotUTF8Error.
func Text(s string) (string, error) {
	if err := checkUTF8(s); err != nil {
		return "", err
	}
	return trimBlankLines(crlf.Replace(dropControls(s))), nil
}

func checkUTF8(s string) error {
	if utf8.ValidString(s) {
		return nil
	}
	offset := 0
	for offset < len(s) {
		r, size := utf8.DecodeRuneInString(s[offset:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		offset += size
	}
	return &NotUTF8Error{Offset: offset}
}

// dropControls leaves the line ends and the tab to its callers. It runs before line ends are joined, so that a control
// character between CR and LF doesn't make two lines of one.
func dropControls(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) && !isLineSpace(r) {
			return -1
		}
		return r
	}, s)
}

func trimBlankLines(s string) string {
	for {
		line, rest, found := strings.Cut(s, "\n")
		if !found || !isBlankLine(line) {
			break
		}
		s = rest
	}
	for {
		last := strings.LastIndexByte(s, '\n')
		if !isBlankLine(s[last+1:]) {
			return s
		}
		if last < 0 {
			return ""
		}
		s = s[:last]
	}
}

func isBlankLine(line string) bool {
	return strings.Trim(line, " \t") == ""
}

// isLineSpace is what separates words in a single-line field. Vertical tab and form feed are not among them: they are
// control characters, and go in a line as they go in a text.
func isLineSpace(r rune) bool {
	return r == ' ' || r == '\t' || r == '\n' || r == '\r'
}

// isControl is Unicode's category Cc: C0, DEL and C1. A terminal acts on all three.
func isControl(r rune) bool {
	return r < 0x20 || 0x7f <= r && r <= 0x9f
}
