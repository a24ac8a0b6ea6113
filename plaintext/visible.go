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
func Visible(s string) string { return render(s, false) }

// VisibleLine is Visible for what has to stay on one line: newline and tab are marks too.
func VisibleLine(s string) string { return render(s, true) }

func render(s string, oneLine bool) string {
	keep := func(part string) string { return part }
	if oneLine {
		keep = markLayout
	}
	var b strings.Builder
	done := 0
	for _, sp := range scan(s) {
		b.WriteString(keep(s[done:sp.start]))
		b.WriteString(sp.mark(s, keep("\n")))
		done = sp.end
	}
	b.WriteString(keep(s[done:]))
	return b.String()
}

// markLayout shows the only control characters that a stretch without spans can hold.
func markLayout(s string) string {
	return layoutMarks.Replace(s)
}

var layoutMarks = strings.NewReplacer("\n", "⟦LF⟧", "\t", "⟦TAB⟧")

// mark is what stands in place of the span; newline is how a line end is shown.
func (sp span) mark(s, newline string) string {
	switch sp.kind {
	case badByte:
		return fmt.Sprintf("⟦0x%02X⟧", s[sp.start])
	case blanks:
		return fmt.Sprintf("⟦%d blanks⟧", sp.count)
	case blankLines:
		return fmt.Sprintf("%s⟦%d blank lines⟧%s", newline, sp.count, newline)
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
