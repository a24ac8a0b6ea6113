package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// side is what edits say that one of the two texts was.
func side(edits []edit, op string) string {
	var text strings.Builder
	for _, e := range edits {
		if e.Op == opKeep || e.Op == op {
			text.WriteString(e.Text)
		}
	}
	return text.String()
}

// However the texts differ, the edits and the lines made of them give back both, byte for byte.
func TestCompareTextsLosesNothing(t *testing.T) {
	piece := rapid.SampledFrom([]string{"rent", "900", " ", "  ", "\t", "\n", "\n", ".", "-", "é", "e\u0301", "日本", "\u200b", "👩‍👧", "\x80", "[-x-]", "⟦+"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		from, to := text.Draw(t, "from"), text.Draw(t, "to")
		edits := compareTexts(from, to)
		if side(edits, opRemove) != from || side(edits, opAdd) != to {
			t.Fatalf("%q from %q to %q", edits, from, to)
		}
		lines := linesOf(edits)
		if lineSide(lines, opRemove) != from || lineSide(lines, opAdd) != to {
			t.Fatalf("%q from %q to %q", lines, from, to)
		}
	})
}

// lineSide is what the lines say that one of the two texts was.
func lineSide(lines []diffLine, op string) string {
	var texts []string
	for _, l := range lines {
		if l.op == opKeep || l.op == op {
			texts = append(texts, l.text())
		}
	}
	return strings.Join(texts, "\n")
}

func TestCompareTexts(t *testing.T) {
	for _, test := range []struct {
		name, from, to string
		want           []edit
	}{
		{"equal", "a b", "a b", []edit{{opKeep, "a b"}}},
		{"a word", "pay 900 now", "pay 950 now", []edit{{opKeep, "pay "}, {opRemove, "900"}, {opAdd, "950"}, {opKeep, " now"}}},
		{"a whole word, though letters are shared", "unpaid", "paid", []edit{{opRemove, "unpaid"}, {opAdd, "paid"}}},
		{"a point", "1.000", "1,000", []edit{{opKeep, "1"}, {opRemove, "."}, {opAdd, ","}, {opKeep, "000"}}},
		{"composed or not", "caf\u00e9", "cafe\u0301", []edit{{opRemove, "caf\u00e9"}, {opAdd, "cafe\u0301"}}},
		{"hidden", "900", "9\u200b00", []edit{{opRemove, "900"}, {opAdd, "9\u200b00"}}},
		{"all new", "", "a", []edit{{opAdd, "a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := compareTexts(test.from, test.to)
			if len(got) != len(test.want) {
				t.Fatalf("got %q", got)
			}
			for i := range got {
				if got[i] != test.want[i] {
					t.Errorf("got %q", got)
				}
			}
		})
	}
}

// More distinct words than there are code points below the surrogates.
func TestCompareLongTexts(t *testing.T) {
	var from strings.Builder
	for i := range 60_000 {
		from.WriteRune(rune(0x10000 + i))
		from.WriteByte(' ')
	}
	to := strings.Replace(from.String(), string(rune(0x10000+59_000)), "changed", 1)
	edits := compareTexts(from.String(), to)
	if side(edits, opRemove) != from.String() || side(edits, opAdd) != to || len(edits) != 4 {
		t.Errorf("%d edits", len(edits))
	}
	if !utf8.ValidString(edits[0].Text) {
		t.Error("the words came back as others")
	}
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
			got := testPage(minWidth, func(p *page) { p.diff(linesOf(compareTexts(test.from, test.to))) })
			if want := strings.TrimPrefix(test.want, "\n"); got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}
