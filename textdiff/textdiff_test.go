package textdiff_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"countersign/textdiff"
)

// side is what edits say that one of the two texts was.
func side(edits []textdiff.Edit, op string) string {
	var text strings.Builder
	for _, e := range edits {
		if e.Op == textdiff.Keep || e.Op == op {
			text.WriteString(e.Text)
		}
	}
	return text.String()
}

// However the texts differ, the edits give back both, byte for byte.
func TestCompareLosesNothing(t *testing.T) {
	piece := rapid.SampledFrom([]string{"rent", "900", " ", "  ", "\t", "\n", "\n", ".", "-", "é", "e\u0301", "日本", "\u200b", "👩‍👧", "\x80", "[-x-]", "⟦+"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) {
		from, to := text.Draw(t, "from"), text.Draw(t, "to")
		edits := textdiff.Compare(from, to)
		if side(edits, textdiff.Remove) != from || side(edits, textdiff.Add) != to {
			t.Fatalf("%q from %q to %q", edits, from, to)
		}
	})
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		name, from, to string
		want           []textdiff.Edit
	}{
		{"equal", "a b", "a b", []textdiff.Edit{{Op: textdiff.Keep, Text: "a b"}}},
		{"a word", "pay 900 now", "pay 950 now", []textdiff.Edit{{Op: textdiff.Keep, Text: "pay "}, {Op: textdiff.Remove, Text: "900"}, {Op: textdiff.Add, Text: "950"}, {Op: textdiff.Keep, Text: " now"}}},
		{"a whole word, though letters are shared", "unpaid", "paid", []textdiff.Edit{{Op: textdiff.Remove, Text: "unpaid"}, {Op: textdiff.Add, Text: "paid"}}},
		{"a point", "1.000", "1,000", []textdiff.Edit{{Op: textdiff.Keep, Text: "1"}, {Op: textdiff.Remove, Text: "."}, {Op: textdiff.Add, Text: ","}, {Op: textdiff.Keep, Text: "000"}}},
		{"composed or not", "caf\u00e9", "cafe\u0301", []textdiff.Edit{{Op: textdiff.Remove, Text: "caf\u00e9"}, {Op: textdiff.Add, Text: "cafe\u0301"}}},
		{"hidden", "900", "9\u200b00", []textdiff.Edit{{Op: textdiff.Remove, Text: "900"}, {Op: textdiff.Add, Text: "9\u200b00"}}},
		{"all new", "", "a", []textdiff.Edit{{Op: textdiff.Add, Text: "a"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := textdiff.Compare(test.from, test.to)
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
	edits := textdiff.Compare(from.String(), to)
	if side(edits, textdiff.Remove) != from.String() || side(edits, textdiff.Add) != to || len(edits) != 4 {
		t.Errorf("%d edits", len(edits))
	}
	if !utf8.ValidString(edits[0].Text) {
		t.Error("the words came back as others")
	}
}
