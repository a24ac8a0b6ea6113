package plaintext_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"countersign/plaintext"

	"pgregory.net/rapid"
)

func TestVisible(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "Dear Ann,\n\n\tfine — 900 €.\n", "Dear Ann,\n\n\tfine — 900 €.\n"},
		{"terminal sequences", "\x1b[2Kpaid\x1b[8m no\x1b]8;;https://x\x07y\u009b1m", "⟦ESC⟧[2Kpaid⟦ESC⟧[8m no⟦ESC⟧]8;;https://x⟦BEL⟧y⟦U+009B⟧1m"},
		{"controls", "a\x00\x01\x08\x0b\x0c\r\x7f\u0085b", "a⟦NUL⟧⟦U+0001⟧⟦BS⟧⟦VT⟧⟦FF⟧⟦CR⟧⟦DEL⟧⟦U+0085⟧b"},
		{"not UTF-8", "a\xff\xc3b", "a⟦0xFF⟧⟦0xC3⟧b"},
		{"a replacement character is shown as it is", "a\ufffdb", "a\ufffdb"},
		{"hidden", "9\u200b00 \u202eabc ok\U000e0100\U000e0041\ufeff", "9⟦U+200B⟧00 ⟦U+202E⟧abc ok⟦U+E0100⟧⟦U+E0041⟧⟦U+FEFF⟧"},
		{"400 blanks", "a" + strings.Repeat("\u00a0", 400) + "and pay 900", "a⟦400 blanks⟧and pay 900"},
		{"12 blank lines", "a  " + strings.Repeat("\n", 13) + "  b", "a  \n⟦12 blank lines⟧\n  b"},
		{"blank lines with long runs around", "a" + strings.Repeat(" ", 30) + strings.Repeat("\n", 13) + strings.Repeat(" ", 40) + "b", "a⟦30 blanks⟧\n⟦12 blank lines⟧\n⟦40 blanks⟧b"},
		{"short runs stay", "a   b\n\n\n  c", "a   b\n\n\n  c"},
		{"domain", "see раypal.com, раypal", "see ⟦U+0440⟧⟦U+0430⟧ypal.com, раypal"},
		{"a forged mark", "a ⟦U+200B⟧ 〚400 blanks〛", "a ⟦U+27E6⟧U+200B⟧ ⟦U+301A⟧400 blanks〛"},
		{"readable scripts", "שלום السَّلَام می\u200cخواهم क्\u200dष 👩🏽\u200d🚀 1️⃣ 日本語 Ελλάδα", "שלום السَّلَام می\u200cخواهم क्\u200dष 👩🏽\u200d🚀 1️⃣ 日本語 Ελλάδα"},
		{"forms are told apart by nobody, and kept", "é e\u0301", "é e\u0301"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := plaintext.Visible(tt.in); got != tt.want {
				t.Errorf("Visible(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestVisibleLine(t *testing.T) {
	tests := map[string]string{
		"acme":                           "acme",
		"a\tb\nc\r\n":                    "a⟦TAB⟧b⟦LF⟧c⟦CR⟧⟦LF⟧",
		"x\x1b[2K\u200b":                 "x⟦ESC⟧[2K⟦U+200B⟧",
		"a" + strings.Repeat("\n", 12):   "a⟦LF⟧⟦11 blank lines⟧⟦LF⟧",
		strings.Repeat("\t", 20) + "end": "⟦20 blanks⟧end",
		"Ωmega שלום 🇩🇪":                  "Ωmega שלום 🇩🇪",
	}
	for in, want := range tests {
		if got := plaintext.VisibleLine(in); got != want {
			t.Errorf("VisibleLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestVisibleNeverHarmsATerminal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := hostile().Draw(t, "in")
		if rapid.Bool().Draw(t, "broken") {
			in += string(rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "bytes"))
		}
		checkVisible(t, in)
	})
}

// mark is one of our own marks, by its form.
var mark = regexp.MustCompile(`⟦([A-Z]{2,3}|U\+[0-9A-F]{4,6}|0x[0-9A-F]{2}|\d+ blanks|\d+ blank lines)⟧`)

// checkVisible holds for every input, whatever its bytes.
func checkVisible(t failer, in string) {
	t.Helper()
	multi, line := plaintext.Visible(in), plaintext.VisibleLine(in)
	for _, out := range []string{multi, line} {
		if !utf8.ValidString(out) {
			t.Fatalf("%q is shown as %q, which is not UTF-8", in, out)
		}
		// Every bracket opens a mark of ours, so nothing in a text can look like one.
		if bare := mark.ReplaceAllString(out, ""); strings.ContainsAny(bare, "⟦〚") {
			t.Fatalf("%q is shown as %q, with a bracket that is no mark", in, out)
		}
		for _, r := range out {
			// Bidi_Control, not our own table: nothing may reorder what an operator reads.
			if unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == 0x2028 || r == 0x200b {
				t.Fatalf("%q is shown as %q, which holds %U", in, out, r)
			}
		}
	}
	if strings.ContainsAny(line, "\n\t") {
		t.Fatalf("VisibleLine(%q) = %q is more than one line", in, line)
	}
	if f := plaintext.Hidden(multi); f.Any() {
		t.Fatalf("%q is shown as %q, which still hides %s", in, multi, f)
	}
	if f := plaintext.Hidden(in); f.Any() && multi == in {
		t.Fatalf("%q hides %s and is shown without a mark", in, f)
	}
}

func TestVisibleMarksOnlyWhatIsHidden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.Map(hostile(), func(s string) string {
			return strings.NewReplacer("⟦", "", "〚", "").Replace(s)
		}).Draw(t, "in")
		text, err := plaintext.Text(in)
		if err != nil {
			t.Fatal(err)
		}
		if shown := plaintext.Visible(text); !plaintext.Hidden(text).Any() && shown != text {
			t.Fatalf("nothing is hidden in %q, but it is shown as %q", text, shown)
		}
	})
}

func FuzzCleanAndShow(f *testing.F) {
	for _, seed := range []string{
		"Dear Ann,\r\n\r\nok\x00 and pay 900\n", "\x1b[2K\u009b8m", "9\u200b00\u202e", "\xff\xed\xa0\x80", "раypal.com",
		"🏴\U000e0067\U000e007f", "می\u200cخواهم 👩🏽\u200d🚀 1️⃣", strings.Repeat("\u00a0", 400), strings.Repeat(" \n", 12), "⟦ESC⟧", "[ＮＥＷ DEST\u0301INATION]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		checkClean(t, in)
		checkVisible(t, in)
	})
}

func TestPartsAreTheTextAndWhatIsShownOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := hostile().Draw(t, "in")
		var raw, shown string
		for _, p := range plaintext.Parts(in) {
			raw, shown = raw+p.Raw, shown+p.Shown
			if p.Raw == "" {
				t.Fatalf("Parts(%q) has an empty one", in)
			}
		}
		if raw != in || shown != plaintext.Visible(in) {
			t.Fatalf("Parts(%q) are %q, shown as %q", in, raw, shown)
		}
	})
}
