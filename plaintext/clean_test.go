package plaintext_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign/plaintext"

	"pgregory.net/rapid"
)

func TestText(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing to do", "Dear Ann,\n\n\tfine.\nBob", "Dear Ann,\n\n\tfine.\nBob"},
		{"NUL goes and joins", "ok\x00 and pay 900", "ok and pay 900"},
		{"every other control goes", "a\x01\x07\x08\x0b\x0c\x1b[2Kb\x7f\u0080\u009bc\u0085", "a[2Kbc"},
		{"tab and newline stay", "a\tb\nc", "a\tb\nc"},
		{"CRLF and lone CR", "a\r\nb\rc\n\rd\r\r\ne", "a\nb\nc\n\nd\n\ne"},
		{"a control between CR and LF makes no second line", "a\r\x00\nb", "a\nb"},
		{"blank lines around go", "\n \t\n\r\n  a\n\n b  \n \n\t\n", "  a\n\n b  "},
		{"final newline goes", "a\n", "a"},
		{"trailing spaces in lines stay", "a  \nb  ", "a  \nb  "},
		{"only blanks", " \n\t\r\n ", ""},
		{"a no-break space is no blank line", "\u00a0\na\n\u00a0", "\u00a0\na\n\u00a0"},
		{"byte order mark and zero-width characters stay", "\ufeffa\u200bb\u202ec\u2028", "\ufeffa\u200bb\u202ec\u2028"},
		{"no normalisation", "é e\u0301 ﬁ Ａ", "é e\u0301 ﬁ Ａ"},
		{"dots stay", ".\n..x\n.env\nFrom me", ".\n..x\n.env\nFrom me"},
		{"a replacement character that was sent is a character", "a\ufffdb", "a\ufffdb"},
		{"empty", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := plaintext.Text(tt.in)
			if err != nil || got != tt.want {
				t.Errorf("Text(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"nothing to do", "Re: invoice 7", "Re: invoice 7"},
		{"white space collapses", "  a \t b\r\nc\rd\n\ne  ", "a b c d e"},
		{"header injection becomes one line", "Hi\r\nBcc: all@example.com", "Hi Bcc: all@example.com"},
		{"controls go", "a\x00b\x1b[8mc\u009bd\x0be\x0cf", "ab[8mcdef"},
		{"what is left after controls is trimmed", "\x00 a \x07", "a"},
		{"hidden characters and other spaces stay", "a\u200b \u00a0b\u3000", "a\u200b \u00a0b\u3000"},
		{"no normalisation", "e\u0301é", "e\u0301é"},
		{"only white space", " \t\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := plaintext.Line(tt.in)
			if err != nil || got != tt.want {
				t.Errorf("Line(%q) = %q, %v; want %q", tt.in, got, err, tt.want)
			}
		})
	}
}

func TestNotUTF8IsRefusedWithItsOffset(t *testing.T) {
	tests := map[string]int{
		"\xff":             0,
		"ok \xff":          3,
		"é\xc3":            2,
		"a\xed\xa0\x80b":   1, // a surrogate, encoded
		"\x00\r\n\xc0\x80": 3, // overlong NUL
		"😀\xf0\x9f\x98":    4,
	}
	for in, want := range tests {
		for name, clean := range map[string]func(string) (string, error){"Line": plaintext.Line, "Text": plaintext.Text} {
			got, err := clean(in)
			var bad *plaintext.NotUTF8Error
			if !errors.As(err, &bad) || bad.Offset != want || got != "" {
				t.Errorf("%s(%q) = %q, %v; want offset %d", name, in, got, err, want)
			}
		}
	}
}

func TestNotUTF8ErrorNamesTheByte(t *testing.T) {
	_, err := plaintext.Line("ok \xff")
	if err == nil || err.Error() != "not valid UTF-8: bad byte at offset 3" {
		t.Errorf("got %v", err)
	}
}

// hostile draws strings of the characters that the rules are about, with ordinary ones between them.
func hostile() *rapid.Generator[string] {
	special := rapid.SampledFrom([]rune{
		' ', '\t', '\n', '\r', 0, 0x1b, 0x7f, 0x85, 0x9b, 'a', 'б', 'N', '.', '-', '[', ']', '⟦', '⟧', '〚',
		0xa0, 0x3000, 0x2800, 0xad, 0x200b, 0x200c, 0x200d, 0x200e, 0x202e, 0x2028, 0x2060, 0xfeff, 0xfe0f, 0xfe0e, 0xfe00,
		0x20e3, '1', 0xe0001, 0xe0067, 0xe007f, 0xe0100, 0x1f3f4, 0x1f600, 0x1f3fd, 0x2764, 'ی', 'क', 0x94d, 0x301, 0xfffd,
	})
	word := rapid.SampledFrom([]string{
		"раypal.com", "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "👩\u200d🚀", "می\u200cخواهم",
		strings.Repeat(" ", 19), strings.Repeat("\u00a0", 20), strings.Repeat("\n", 11), "[NEW DESTINATION]", "\x1b[2K",
	})
	piece := rapid.OneOf(rapid.Map(rapid.OneOf(special, rapid.Rune()), func(r rune) string { return string(r) }), word)
	return rapid.Map(rapid.SliceOf(piece), func(pieces []string) string { return strings.Join(pieces, "") })
}

func TestCleaningIsAFixedPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := hostile().Draw(t, "in")
		checkClean(t, in)
	})
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkClean holds for every input, whatever its bytes.
func checkClean(t failer, in string) {
	t.Helper()
	text, textErr := plaintext.Text(in)
	line, lineErr := plaintext.Line(in)
	if valid := utf8.ValidString(in); valid != (textErr == nil) || valid != (lineErr == nil) {
		t.Fatalf("%q: valid UTF-8 is %v, but Text says %v and Line says %v", in, valid, textErr, lineErr)
	}
	if again, err := plaintext.Text(text); err != nil || again != text {
		t.Fatalf("Text(%q) = %q, and again %q, %v", in, text, again, err)
	}
	if again, err := plaintext.Line(line); err != nil || again != line {
		t.Fatalf("Line(%q) = %q, and again %q, %v", in, line, again, err)
	}
	for _, r := range text {
		if r < 0x20 && r != '\n' && r != '\t' || 0x7f <= r && r <= 0x9f {
			t.Fatalf("Text(%q) kept %U", in, r)
		}
	}
	for _, r := range line {
		if r < 0x20 || 0x7f <= r && r <= 0x9f {
			t.Fatalf("Line(%q) kept %U", in, r)
		}
	}
	if strings.HasSuffix(text, "\n") || strings.HasPrefix(text, "\n") {
		t.Fatalf("Text(%q) = %q has a blank line at an end", in, text)
	}
	if strings.Contains(line, "  ") || strings.Trim(line, " ") != line {
		t.Fatalf("Line(%q) = %q has loose spaces", in, line)
	}
}

func TestCleaningKeepsAllElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := hostile().Draw(t, "in")
		text, err := plaintext.Text(in)
		if err != nil {
			t.Fatal(err)
		}
		line, err := plaintext.Line(in)
		if err != nil {
			t.Fatal(err)
		}
		want := ink(in)
		if got := ink(text); got != want {
			t.Fatalf("Text(%q) = %q lost or changed something", in, text)
		}
		if got := ink(line); got != want {
			t.Fatalf("Line(%q) = %q lost or changed something", in, line)
		}
	})
}

// ink is what cleaning must never touch: all but controls and ASCII white space.
func ink(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= 0x20 || 0x7f <= r && r <= 0x9f {
			return -1
		}
		return r
	}, s)
}
