package notify

import (
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"
	"pgregory.net/rapid"

	"countersign/plaintext"
)

// Whatever the text, its pieces are the text, together show what the one renderer shows of it, fit, and none is blank.
func TestPiecesAreTheText(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "word ", "&", "<", ">", "\n", "\n\n\n\n\n\n\n\n\n\n\n\n", "\u00a0", strings.Repeat(" ", 25), "\u200b", "⟦",
		"👩\u200d👩\u200d👧\u200d👦", "שלום", "e\u0301", strings.Repeat("\u0301", 60), "🏴\U000e0067\U000e0062\U000e007f"})
	rapid.Check(t, func(t *rapid.T) {
		text := "ink" + strings.Join(rapid.SliceOfN(part, 0, 120).Draw(t, "parts"), "")
		limit := rapid.IntRange(60, 200).Draw(t, "limit")
		found := pieces(text, limit)
		if joined(found).raw != text || joined(found).shown != slackutilsx.EscapeMessage(plaintext.Visible(text)) {
			t.Fatalf("%q became %q", text, found)
		}
		for _, p := range found {
			if n := characters(p.shown); n == 0 || n > limit+len("amp;") || isBlank(p) {
				t.Fatalf("%d characters at most %d: %q", n, limit, p.shown)
			}
		}
	})
}

func TestPieces(t *testing.T) {
	family := "👩\u200d👩\u200d👧\u200d👦"
	for _, test := range []struct {
		name, text string
		limit      int
		want       []string
	}{
		{"nothing", "", 30, nil},
		{"it fits", "a\nb\n", 30, []string{"a\nb\n"}},
		{"after a line end", "aaaa\nbbbb\ncccc", 10, []string{"aaaa\nbbbb\n", "cccc"}},
		{"an escape is not cut", "aa&&", 7, []string{"aa&amp;", "&amp;"}},
		{"a family is not cut", "aaaa" + family + family, 11, []string{"aaaa" + family, family}},
		{"a mark is not cut", "aaaa\u200b", 11, []string{"aaaa", "⟦U+200B⟧"}},
		{"between two words", "aaaa bbbb cccc", 10, []string{"aaaa bbbb ", "cccc"}},
		{"a letter longer than a block", "a" + strings.Repeat("\u0301", 12), 10, []string{"a" + strings.Repeat("\u0301", 9), "\u0301\u0301\u0301"}},
		{"empty lines are one mark", "a" + strings.Repeat("\n", 13) + "b", 30, []string{"a\n⟦12 blank lines⟧\nb"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Pieces(test.text, test.limit); strings.Join(got, "|") != strings.Join(test.want, "|") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// Half an escape at a header's end used to be shown as letters.
func TestAHeaderCutsNoEscape(t *testing.T) {
	for n := range 8 {
		got := header("P2 · ", strings.Repeat("x", 120+n)+"&&&&&&&&", " · waits").(*slackgo.HeaderBlock).Text.Text
		if characters(got) > maxHeader || strings.Contains(strings.ReplaceAll(got, "&amp;", ""), "&") || !strings.HasSuffix(got, " · waits") {
			t.Errorf("got %q", got)
		}
	}
}

func TestTheHashTellsEveryDifference(t *testing.T) {
	hash := func(fallback, text string) string {
		out, err := Message{Fallback: fallback, Blocks: sections(text)}.hash()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	one := hash("a", "b")
	for _, other := range []string{hash("a", "c"), hash("c", "b"), hash("ab", "")} {
		if one == other {
			t.Error("two contents have one hash")
		}
	}
	if one != hash("a", "b") || len(one) != 64 {
		t.Errorf("got %q", one)
	}
}

func FuzzParseRef(f *testing.F) {
	for _, seed := range []string{Ref{ID: 431, Epoch: 7, SHA: "9f2c8a1b"}.Encode(), `{}`, `null`, `{"id":1,"epoch":1,"sha":"00000000"}}`, `{"id":1,"epoch":1,"sha":"0000000g"}`,
		` {"id":1,"epoch":1,"sha":"00000000"}`, `{"ID":1,"epoch":1,"sha":"00000000"}`, `{"id":9999999999999999999,"epoch":1,"sha":"00000000"}`,
		`{"id":-1,"epoch":1,"sha":"00000000"}`, `{"id":1,"id":2,"epoch":1,"sha":"00000000"}`, "\xff", strings.Repeat("[", 10_000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		r, err := ParseRef(value)
		if err != nil && r != (Ref{}) || err == nil && (r.ID < 1 || r.Epoch < 1 || len(r.SHA) != 8) {
			t.Errorf("%q is %+v, %v", value, r, err)
		}
	})
}

// A value with something after its end used to be taken.
func TestParseRefTakesOnlyWhatWeMake(t *testing.T) {
	ours := Ref{ID: 431, Epoch: 7, SHA: "9f2c8a1b"}
	if r, err := ParseRef(ours.Encode()); err != nil || r != ours {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, value := range []string{`{"ID":1,"epoch":2,"sha":"0123abcd"}`, `{"id":7,"id":1,"epoch":2,"sha":"0123abcd"}`, `{"id": 1,"epoch":2,"sha":"0123abcd"}`,
		ours.Encode() + "}", ours.Encode() + "{}", strings.ToUpper(ours.Encode()),
		strings.Replace(ours.Encode(), "431", "0", 1), strings.Replace(ours.Encode(), "431", "9223372036854775808", 1)} {
		if r, err := ParseRef(value); err == nil {
			t.Errorf("%s is %+v", value, r)
		}
	}
}
