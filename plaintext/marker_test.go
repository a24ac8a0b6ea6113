package plaintext_test

import (
	"strings"
	"testing"

	"countersign/plaintext"

	"pgregory.net/rapid"
)

var markers = []string{
	"BASELINE_OVERRIDE_SIGNED_CONTRACT", "BASELINE_CHECK_UNAVAILABLE", "BASELINE FACTS", "HIDDEN TEXT", "NEW DESTINATION",
	"LOOKS LIKE", "DUPLICATE OF", "UNRESOLVED_DELIVERY",
}

func TestNeutralise(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"as the system writes it", "[NEW DESTINATION]", "(NEW DESTINATION)"},
		{"with more words", "a [DUPLICATE OF #12] b", "a (DUPLICATE OF #12) b"},
		{"with a colon", "[BASELINE FACTS: signed 2024]", "(BASELINE FACTS: signed 2024)"},
		{"several", "[NEW DESTINATION] [LOOKS LIKE Acme]", "(NEW DESTINATION) (LOOKS LIKE Acme)"},
		{"any case", "[New destination]", "(New destination)"},
		{"underscores or spaces", "[baseline override signed contract] [NEW_DESTINATION]", "(baseline override signed contract) (NEW_DESTINATION)"},
		{"full width", "［ＮＥＷ　ＤＥＳＴＩＮＡＴＩＯＮ］", "(ＮＥＷ　ＤＥＳＴＩＮＡＴＩＯＮ)"},
		{"other brackets", "【NEW DESTINATION】〔HIDDEN TEXT〕⟦HIDDEN TEXT⟧ ⁅HIDDEN TEXT⁆", "(NEW DESTINATION)(HIDDEN TEXT)(HIDDEN TEXT) (HIDDEN TEXT)"},
		{"zero-width between letters", "[N\u200bEW DES\u2060TINATION]", "(N\u200bEW DES\u2060TINATION)"},
		{"hidden before the words", "[\u200b\u202eNEW DESTINATION]", "(\u200b\u202eNEW DESTINATION)"},
		{"combining between letters", "[NE\u0301W D\u0336ESTINATION]", "(NE\u0301W D\u0336ESTINATION)"},
		{"composed", "[NÉW DESTÍNATION]", "(NÉW DESTÍNATION)"},
		{"Cyrillic look-alikes", "[НЕW DЕЅТІNАТІОN] [NЕW DЕSТINАТIОN]", "[НЕW DЕЅТІNАТІОN] (NЕW DЕSТINАТIОN)"},
		{"Greek look-alikes", "[ΝΕW DESΤΙΝΑΤΙΟΝ]", "(ΝΕW DESΤΙΝΑΤΙΟΝ)"},
		{"digits for letters", "[NEW DEST1NAT|0N]", "(NEW DEST1NAT|0N)"},
		{"mathematical, circled, boxed, flags", "[𝐍𝐄𝐖 ⒹⒺⓈⓉⒾⓃⒶⓉⒾⓄⓃ] [🄽🄴🅆 🅳🅴🆂🆃🅸🅽🅰🆃🅸🅾🅽] [🇳 🇪 🇼 🇩🇪🇸🇹🇮🇳🇦🇹🇮🇴🇳]",
			"(𝐍𝐄𝐖 ⒹⒺⓈⓉⒾⓃⒶⓉⒾⓄⓃ) (🄽🄴🅆 🅳🅴🆂🆃🅸🅽🅰🆃🅸🅾🅽) (🇳 🇪 🇼 🇩🇪🇸🇹🇮🇳🇦🇹🇮🇴🇳)"},
		{"small capitals", "[ɴᴇᴡ ᴅᴇꜱᴛɪɴᴀᴛɪᴏɴ]", "(ɴᴇᴡ ᴅᴇꜱᴛɪɴᴀᴛɪᴏɴ)"},
		{"spread out and dotted", "[ N.E.W -- D E S T I N A T I O N ]", "( N.E.W -- D E S T I N A T I O N )"},
		{"nested", "[[ [NEW DESTINATION]]]", "(( (NEW DESTINATION)]]"},
		{"a round one within", "[(NEW DESTINATION)]", "((NEW DESTINATION))"},
		{"not closed", "[NEW DESTINATION", "(NEW DESTINATION"},
		{"closed on another line", "[NEW DESTINATION\n]", "(NEW DESTINATION\n]"},
		{"over two lines", "[NEW\nDESTINATION]", "(NEW\nDESTINATION]"},

		{"no brackets", "a NEW DESTINATION for us", "a NEW DESTINATION for us"},
		{"round ones", "(NEW DESTINATION) {NEW DESTINATION} （NEW DESTINATION）", "(NEW DESTINATION) {NEW DESTINATION} （NEW DESTINATION）"},
		{"innocent brackets", "see [1], [sic] and [the new destination is Rome]", "see [1], [sic] and [the new destination is Rome]"},
		{"only a beginning", "[NEW] [NEW DEST] [DUPLICATE]", "[NEW] [NEW DEST] [DUPLICATE]"},
		{"a longer word", "[DUPLICATE OFFERS] [NEW DESTINATIONS]", "[DUPLICATE OFFERS] [NEW DESTINATIONS]"},
		{"words in front", "[a NEW DESTINATION]", "[a NEW DESTINATION]"},
		{"empty", "[] [ ] [", "[] [ ] ["},
		{"Markdown", "[x] done, [link](https://example.com/[a])", "[x] done, [link](https://example.com/[a])"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, changed := plaintext.Neutralise(tt.in, markers)
			if got != tt.want || changed != (tt.in != tt.want) {
				t.Errorf("Neutralise(%q) = %q, %v; want %q", tt.in, got, changed, tt.want)
			}
		})
	}
}

func TestNeutraliseWithoutMarkers(t *testing.T) {
	for _, none := range [][]string{nil, {""}, {" - "}} {
		if got, changed := plaintext.Neutralise("[NEW DESTINATION] []", none); changed || got != "[NEW DESTINATION] []" {
			t.Errorf("with markers %q: %q, %v", none, got, changed)
		}
	}
}

func TestNeutraliseIsAFixedPointAndChangesOnlyBrackets(t *testing.T) {
	pieces := rapid.SampledFrom([]string{
		"[", "]", "［", "】", "(", ")", " ", "\n", "|", "\u200b", "\u0301", "NEW", "new destination", "DUPLICATE OF", "ΝΕW", "1", "x", "⟦", "🇳",
	})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOf(pieces).Draw(t, "in"), "")
		once, changed := plaintext.Neutralise(in, markers)
		if again, more := plaintext.Neutralise(once, markers); more || again != once {
			t.Fatalf("Neutralise(%q) = %q, and again %q", in, once, again)
		}
		if changed == (once == in) {
			t.Fatalf("Neutralise(%q) = %q, changed: %v", in, once, changed)
		}
		before, after := []rune(in), []rune(once)
		if len(before) != len(after) {
			t.Fatalf("Neutralise(%q) = %q has another length", in, once)
		}
		for i := range before {
			if before[i] != after[i] && after[i] != '(' && after[i] != ')' {
				t.Fatalf("Neutralise(%q) = %q changed %q", in, once, before[i])
			}
		}
	})
}

// In a first version each bracket read on through all the others: a field of nothing but brackets took hours.
func TestNeutraliseReadsNestedBracketsOnce(t *testing.T) {
	deep := strings.Repeat("[", 200_000) + "NEW DESTINATION" + strings.Repeat("]", 200_000)
	got, changed := plaintext.Neutralise(deep, markers)
	if !changed || strings.Contains(got, "[") {
		t.Errorf("an opening bracket is left before a marker")
	}
}
