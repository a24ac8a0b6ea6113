package plaintext

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// controlNames are the abbreviations of ISO/IEC 6429 for C0, as far as anybody knows them by heart.
var controlNames = map[rune]string{
	0x00: "NUL", 0x07: "BEL", 0x08: "BS", '\t': "TAB", '\n': "LF", 0x0b: "VT", 0x0c: "FF", '\r': "CR", 0x1b: "ESC", 0x7f: "DEL",
}

// Visible renders a multi-line text for an operator's eye and for a terminal: what Hidden counts and every control
// character is shown as a mark such as ⟦U+200B⟧, ⟦ESC⟧ or ⟦400 blanks⟧, bytes that aren't UTF-8 as ⟦0xFF⟧. Newline and tab
// stay. All else is returned as it is, so Hebrew, Arabic and emoji stay readable. The bracket ⟦ itself is shown as a
// mark, so that a text can't forge one. The result is not the text: it is never hashed, stored or sent.
func Visible(s string) string {
	var b strings.Builder
	for _, p := range Parts(s) {
		b.WriteString(p.Shown)
	}
	return b.String()
}

// VisibleLine is Visible for what has to stay on one line: newline and tab are marks too.
func VisibleLine(s string) string { return layoutMarks.Replace(Visible(s)) }

// Part is a stretch of a text, and how Visible shows it.
type Part struct{ Raw, Shown string }

// Parts is Visible in pieces, for whoever has to cut a text: each mark with what it stands for, and each stretch between
// marks, which is shown as it is. Together the Raw are s, and the Shown are Visible(s). A mark depends on what stands around
// it, so Visible of a piece of s need not be a piece of Visible(s).
func Parts(s string) []Part {
	var out []Part
	done := 0
	for _, sp := range scan(s) {
		if sp.start > done {
			out = append(out, Part{s[done:sp.start], s[done:sp.start]})
		}
		out = append(out, Part{s[sp.start:sp.end], sp.mark(s)})
		done = sp.end
	}
	if done < len(s) {
		out = append(out, Part{s[done:], s[done:]})
	}
	return out
}

var layoutMarks = strings.NewReplacer("\n", "⟦LF⟧", "\t", "⟦TAB⟧")

// mark is what stands in place of the span.
func (sp span) mark(s string) string {
	switch sp.kind {
	case badByte:
		return fmt.Sprintf("⟦0x%02X⟧", s[sp.start])
	case blanks:
		return fmt.Sprintf("⟦%d blanks⟧", sp.count)
	case blankLines:
		return fmt.Sprintf("\n⟦%d blank lines⟧\n", sp.count)
	}
	r, _ := utf8.DecodeRuneInString(s[sp.start:])
	return codePoint(r)
}

func codePoint(r rune) string {
	if name, ok := controlNames[r]; ok {
		return "⟦" + name + "⟧"
	}
	return fmt.Sprintf("⟦%U⟧", r)
}
