package main

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"countersign/textdiff"
)

// However the texts differ, the lines made of the edits give back both, byte for byte.
func TestDiffLinesLoseNothing(t *testing.T) {
	piece := rapid.SampledFrom([]string{"rent", "900", " ", "  ", "\t", "\n", "\n", ".", "-", "é", "e\u0301", "日本", "\u200b", "👩‍👧", "\x80", "[-x-]", "⟦+"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		from, to := text.Draw(t, "from"), text.Draw(t, "to")
		lines := linesOf(textdiff.Compare(from, to))
		if lineSide(lines, textdiff.Remove) != from || lineSide(lines, textdiff.Add) != to {
			t.Fatalf("%q from %q to %q", lines, from, to)
		}
	})
}

// lineSide is what the lines say that one of the two texts was.
func lineSide(lines []diffLine, op string) string {
	var texts []string
	for _, l := range lines {
		if l.op == textdiff.Keep || l.op == op {
			texts = append(texts, l.text())
		}
	}
	return strings.Join(texts, "\n")
}

func TestDiffPage(t *testing.T) {
	for _, test := range []struct{ name, from, to, want string }{
		{"words", "Dear Anna,\npay 900 EUR.\nBye", "Dear Anna,\npay 950 EUR.\nBye", `
│ Dear Anna,
- pay ⟦-900-⟧ EUR.
+ pay ⟦+950+⟧ EUR.
│ Bye
`},
		{"whole lines", "a\nb", "a\nnew\nb", `
│ a
+ new
│ b
`},
		{"only a blank at the end", "a", "a ", `
- a
+ a⟦+ +⟧
`},
		{"a line is split", "one two", "one\ntwo", `
- one⟦- -⟧two
+ one
+ two
`},
		{"far lines are left out", "1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n1\n2\n3\n4", "1\n2\n3\n4\n5\n6\n7\n8\n9\ny\n1\n2\n3\n4", `
⋯ 6 unchanged lines
│ 7
│ 8
│ 9
- x
+ y
│ 1
│ 2
│ 3
│ 4
`},
		{"marks can't be forged", "+ a ⟦+x+⟧ b", "+ a ⟦+x+⟧ c", `
- + a ⟦U+27E6⟧+x+⟧ ⟦-b-⟧
+ + a ⟦U+27E6⟧+x+⟧ ⟦+c+⟧
`},
		{"controls and hidden characters show", "pay \x1b[2K 9", "pay \u200b 9", `
- pay ⟦-⟦ESC⟧[2K-⟧ 9
+ pay ⟦+⟦U+200B⟧+⟧ 9
`},
		{"long lines are broken", "a", strings.Repeat("x", 50), `
- a
+ ` + strings.Repeat("x", 38) + `
┆ ` + strings.Repeat("x", 12) + `
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := testPage(minWidth, func(p *page) { p.diff(linesOf(textdiff.Compare(test.from, test.to))) })
			if want := strings.TrimPrefix(test.want, "\n"); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}
