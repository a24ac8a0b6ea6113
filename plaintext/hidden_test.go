package plaintext_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/plaintext"
)

func TestHidden(t *testing.T) {
	const england = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
	tests := []struct{ name, in, want string }{
		{"plain", "Dear Ann,\n\n\tthe price is 900 EUR.\n", ""},
		{"zero-width space in a price", "9\u200b00 EUR", "1 zero-width"},
		{"right-to-left override in a URL", "https://example.com/\u202egpj.exe", "1 bidi control"},
		{"every bidirectional control", "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", "12 bidi controls"},
		{"supplement selector", "ok\U000e0100\U000e01ef", "2 variation selectors"},
		{"supplement selector after a Han character", "葛\U000e0100", "1 variation selector"},
		{"tag characters", "ok\U000e0041\U000e0042\U000e0001\U000e007f", "4 tag characters"},
		{"soft hyphen, joiners, fillers, marks", "a\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u2060\u2061\u2062\u2063\u2064\u3164\uffa0\ufeff", "15 zero-width"},
		{"line and paragraph separator", "a\u2028b\u2029c", "2 zero-width"},
		{"noncharacters", "a\ufdd0\uffff", "2 zero-width"},
		{"order of kinds is fixed", "раypal.com\U000e0100\U000e0041\u202e\u200b" + strings.Repeat(" ", 20) + "x",
			"1 zero-width, 1 bidi control, 1 tag character, 1 variation selector, 1 long run of blanks, 1 mixed-script domain (⟦U+0440⟧⟦U+0430⟧ypal.com)"},

		{"19 blanks", "a" + strings.Repeat(" ", 19) + "b", ""},
		{"20 blanks", "a" + strings.Repeat(" ", 20) + "b", "1 long run of blanks"},
		{"400 no-break spaces", "a" + strings.Repeat("\u00a0", 400) + "and pay 900", "1 long run of blanks"},
		{"blanks of many kinds are one run", "a" + strings.Repeat(" \u00a0\t\u3000\u2800\u2003\u202f", 3) + "b", "1 long run of blanks"},
		{"a run on each line", strings.Repeat("a"+strings.Repeat(" ", 20)+"\n", 3) + "b", "3 long runs of blanks"},
		{"9 blank lines", "a" + strings.Repeat("\n", 10) + "b", ""},
		{"10 blank lines", "a" + strings.Repeat("\n", 11) + "b", "1 long run of blanks"},
		{"10 blank lines at the start", strings.Repeat("\n", 10) + "b", "1 long run of blanks"},
		{"lines of spaces are blank", "a\n" + strings.Repeat(" \u00a0\n", 10) + "b", "1 long run of blanks"},

		{"Hebrew", "שלום, המחיר הוא 900", ""},
		{"Arabic with vowel signs", "السَّلَامُ عَلَيْكُمْ", ""},
		{"Persian needs the non-joiner", "می\u200cخواهم کتاب\u200cها را ببینم", ""},
		{"Persian plural of a Latin word", "PDF\u200cها", ""},
		{"Persian plural of a number", "۳\u200cها", ""},
		{"final joiner in Arabic", "ه\u200d", ""},
		{"non-joiner after a vowel sign", "نَ\u200cما", ""},
		{"Hindi, Malayalam, Sinhala joiners", "क्\u200dष ക്\u200d ශ්\u200dරී", ""},
		{"non-joiner between digits spells nothing", "۱\u200c۰", "1 zero-width"},
		{"joiner between Latin letters", "pay\u200dpal", "1 zero-width"},
		{"of two joiners only the first belongs", "می\u200c\u200cخواهم", "1 zero-width"},
		{"a joiner at the end after Latin", "pay\u200c", "1 zero-width"},
		{"Mongolian selector", "ᠠ\u180b", ""},
		{"Mongolian selector elsewhere", "a\u180b", "1 variation selector"},

		{"emoji families and professions", "👨\u200d👩\u200d👧\u200d👦 👩🏽\u200d🚀 🏳️\u200d🌈 ❤️\u200d🔥 🧑🏻\u200d❤️\u200d🧑🏿", ""},
		{"emoji and text style", "☎️ ❤︎ ©️ ™️ ↔️", ""},
		{"keycaps", "1️⃣ #️⃣", ""},
		{"flags", "🇩🇪 🏴 " + england, ""},
		{"joiner between emoji and letter", "😀\u200da", "1 zero-width"},
		{"joiner after an emoji", "😀\u200d", "1 zero-width"},
		{"emoji style after a letter, a digit, a space", "a\ufe0f 5\ufe0f \ufe0f", "3 variation selectors"},
		{"emoji style twice", "☎\ufe0f\ufe0f", "1 variation selector"},
		{"text under a black flag", "🏴\U000e0070\U000e0061\U000e0079\U000e007f", "4 tag characters"},
		{"a flag without its end", strings.TrimSuffix(england, "\U000e007f"), "5 tag characters"},
		{"mathematical and Han variants", "∩\ufe00 㐂\ufe00", ""},
		{"other selectors", "a\ufe00 b\ufe05", "2 variation selectors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := plaintext.Hidden(tt.in)
			if got.String() != tt.want || got.Any() != (tt.want != "") {
				t.Errorf("Hidden(%q) = %q (any: %v), want %q", tt.in, got, got.Any(), tt.want)
			}
		})
	}
}

func TestMixedScriptDomains(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"Cyrillic in Latin", "see https://раypal.com/login", []string{"⟦U+0440⟧⟦U+0430⟧ypal.com"}},
		{"one letter", "exаmple.com", []string{"ex⟦U+0430⟧mple.com"}},
		{"Greek in Latin", "gοοgle.com", []string{"g⟦U+03BF⟧⟦U+03BF⟧gle.com"}},
		{"in the top-level domain", "example.сom", []string{"example.⟦U+0441⟧om"}},
		{"in a mail address", "ann@раypal.com", []string{"⟦U+0440⟧⟦U+0430⟧ypal.com"}},
		{"split by a hidden character", "pаy\u200bpal.com", []string{"p⟦U+0430⟧y⟦U+200B⟧pal.com"}},
		{"between hyphens", "my-раypal-shop.com", []string{"my-⟦U+0440⟧⟦U+0430⟧ypal-shop.com"}},
		{"a whole part of look-alikes", "рау-pal.com аррӏе.com", []string{"⟦U+0440⟧⟦U+0430⟧⟦U+0443⟧-pal.com", "⟦U+0430⟧⟦U+0440⟧⟦U+0440⟧⟦U+04CF⟧⟦U+0435⟧.com"}},
		{"ideographic full stop", "раypal。com", []string{"⟦U+0440⟧⟦U+0430⟧ypal。com"}},
		{"at the end of a sentence", "Go to раypal.com.", []string{"⟦U+0440⟧⟦U+0430⟧ypal.com"}},
		{"no Latin at all", "αб.рф", []string{"α⟦U+0431⟧.рф"}},
		{"the same twice is named once", "раypal.com раypal.com", []string{"⟦U+0440⟧⟦U+0430⟧ypal.com"}},
		{"all ASCII", "example.com, a.b.c, 1.5, v2.0-rc", nil},
		{"one script in each label", "пример.рф müller.de 日本語.jp παράδειγμα.com", nil},
		{"Japanese with Latin", "東京tokyoタワー.jp", nil},
		{"Korean with Latin", "한국korea.kr", nil},
		{"Hebrew prefix before a name", "ב-example.com", nil},
		{"no space after the full stop", "Привет.Hello.Как", nil},
		{"Russian compounds", "IT-отдел.рф docker-контейнер.yml", nil},
		{"no dot", "раypal", nil},
		{"a dot and nothing", "раypal. com", nil},
		{"in a name that mixes, no joiner is spelling", "раypal.comمی\u200cخ", []string{"⟦U+0440⟧⟦U+0430⟧ypal.com⟦U+0645⟧⟦U+06CC⟧⟦U+200C⟧⟦U+062E⟧"}},
		{"Persian with its non-joiner", "می\u200cخواهم.ایران", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := plaintext.Hidden(tt.in).Domains; !slices.Equal(got, tt.want) {
				t.Errorf("Hidden(%q).Domains = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestFindingsNameFewDomainsAndCountAll(t *testing.T) {
	var text strings.Builder
	for i := range 5 {
		fmt.Fprintf(&text, "раy%d.com ", i)
	}
	text.WriteString("раy0.com")
	f := plaintext.Hidden(text.String())
	const pay = "⟦U+0440⟧⟦U+0430⟧y"
	want := "6 mixed-script domains (" + pay + "0.com, " + pay + "1.com, " + pay + "2.com, …)"
	if f.String() != want {
		t.Errorf("got %q, want %q", f, want)
	}
}

// A marker that holds the findings must not grow with the text.
func TestFindingsStayShort(t *testing.T) {
	text := strings.Repeat(strings.Repeat("а", 1000)+"b."+strings.Repeat("c", 5000)+" ", 4)
	if got := len(plaintext.Hidden(text).String()); got > 1500 {
		t.Errorf("the findings of a long text take %d bytes", got)
	}
}
