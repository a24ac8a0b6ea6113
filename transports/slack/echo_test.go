package slack

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"countersign/transports"
	"countersign/transports/transporttest"

	"github.com/slack-go/slack/slackutilsx"
)

// What Slack makes of plain text by itself is undone; everything else is a difference.
func TestCompareEcho(t *testing.T) {
	for _, c := range []struct {
		text, echo string
		same       bool
	}{
		{"hello", "hello", true},
		{"AT&T: 5 < 6 > 4", "AT&amp;T: 5 &lt; 6 &gt; 4", true},
		{"literal &lt;b&gt;", "literal &amp;lt;b&amp;gt;", true},
		{"literal &amp;lt;", "literal &amp;amp;lt;", true},
		{"https://example.com/?a=1&b=2", "<https://example.com/?a=1&amp;b=2>", true},
		{"see https://example.com.", "see <https://example.com>.", true},
		{"see example.com, or a@example.com", "see <http://example.com|example.com>, or <mailto:a@example.com|a@example.com>", true},
		{"call +49123", "call <tel:+49123|+49123>", true},
		{"ftp://x.example/a", "<ftp://x.example/a>", true},
		{"<https://example.com>", "&lt;<https://example.com>&gt;", true},
		{"good ✅ and 👍🏽 👩‍👩‍👧", "good :white_check_mark: and :+1::skin-tone-4: :woman-woman-girl:", true},
		{"🇫🇷1️⃣⚠️™", ":flag-fr::one::warning::tm:", true},
		{":tada: ✅", ":tada: ✅", true},
		{"漢字、。", "漢字、。", true},

		{"hello", "hell", false},
		{"hello ", "hello", false},
		{"\nhello", "hello", false},
		{"pay 900", "pay 9000", false},
		{"a &lt; b", "a &lt; b", false},                             // escaped too little: the reader sees a < b
		{"a < b", "a &amp;lt; b", false},                            // and too often
		{"example.com", "<http://evil.example|example.com>", false}, // a link to elsewhere
		{"@here", "<!here>", false},                                 // a mention
		{"@jo", "<@U0X>", false},                                    // a mention
		{"#general", "<#C0X|general>", false},                       // a channel
		{"U0X", "<U0X>", false},                                     // no link
		{"https://example.com", "<https://example.com/>", false},
		{"100 €", "100 :euro:", false}, // no picture
		{"ab", "a:b:", false},          // a letter is none
		{"1", ":one:", false},          // nor a digit
		{"✅", "", false},
		{"✅", ":white_check_mark: and more", false},
		{"✅ yes", ":no such name: yes", false},
		{strings.Repeat("x", 4100), strings.Repeat("x", 4000) + "…", false},
		{"\u00e9", "e\u0301", false}, // another form is another text
		{"a\u200bb", "ab", false},
		{"a  b", "a b", false},
		{"&", "&", true}, // unescaped, as by a server in Slack's place
		{"<b>", "<b>", true},
		{"<https://example.com|example>", "<https://example.com|example>", true}, // likewise
	} {
		e := &echo{Text: &c.echo}
		m := transports.Message{Text: c.text}
		if notes, differs := e.compare(m); differs == c.same || (len(notes) > 0) != differs {
			t.Errorf("%q came back as %q: differs %v, notes %q", c.text, c.echo, differs, notes)
		}
	}
}

// Whatever the text, what the library makes of it is undone to the same text.
func TestUnescapeUndoesEscape(t *testing.T) {
	piece := rapid.SampledFrom([]string{"&", "<", ">", ";", "amp", "lt;", "gt;", "|", "https://", "a.b", "@U1", "!here", ":", "x", " ", "é"})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(piece).Draw(t, "text"), "")
		if got := unescape(slackutilsx.EscapeMessage(text)); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

// No false alarm: what any transport must carry comes back as Slack shows it.
func TestNastyTextsAreNotAltered(t *testing.T) {
	f := newFakeSlack(t)
	tr := f.transport()
	for _, nasty := range transporttest.NastyTexts() {
		m := message()
		m.Text = nasty.Text
		if tr.Validate(m) != nil {
			continue
		}
		if r, err := deliver(t, tr, m); err != nil || r.Altered || r.Detail != "" {
			t.Errorf("%s: %+v, %v", nasty.Name, r, err)
		}
	}
}

// FAULTS 14: sent, altered; never plain success, and never a second post.
func TestAltered(t *testing.T) {
	same := func(text string) string { return text }
	for name, c := range map[string]struct {
		answer  answer
		altered bool
		detail  string
	}{
		"truncation warning":           {postsWith(same, `,"warning":"message_truncated"`), true, "message_truncated"},
		"warning in the metadata":      {postsWith(same, `,"response_metadata":{"warnings":["message_truncated"]}`), true, "message_truncated"},
		"one among several":            {postsWith(same, `,"warning":"missing_charset,text_truncated"`), true, "text_truncated"},
		"cut":                          {postsWith(func(text string) string { return text[:8] }, ""), true, "from character 9 on, with 8 UTF-16 units of 17"},
		"emptied":                      {postsWith(func(string) string { return "" }, ""), true, "from character 1 on"},
		"a price":                      {postsWith(func(string) string { return "the price is 90." }, ""), true, "different"},
		"outside of the thread":        {says(200, `{"ok":true,"channel":"C0COUNTER1","ts":"1.2","message":{"text":"the price is 900."}}`), true, "not in the thread"},
		"in another thread":            {says(200, `{"ok":true,"channel":"C0COUNTER1","ts":"1.2","message":{"text":"the price is 900.","thread_ts":"1750000000.000200"}}`), true, "not in the thread"},
		"in another channel":           {says(200, `{"ok":true,"channel":"C0OTHER","ts":"1.2","message":{"text":"the price is 900.","thread_ts":"1750000000.000100"}}`), true, "channel C0OTHER"},
		"another warning":              {postsWith(same, `,"warning":"superfluous_charset","response_metadata":{"warnings":["superfluous_charset"]}`), false, "Slack warns: superfluous_charset"},
		"no echo":                      {says(200, `{"ok":true,"channel":"C0COUNTER1","ts":"1.2"}`), false, "no echo"},
		"no text in the echo":          {says(200, `{"ok":true,"channel":"C0COUNTER1","ts":"1.2","message":{}}`), false, "no echo"},
		"an echo of another kind":      {says(200, `{"ok":true,"channel":"C0COUNTER1","ts":"1.2","message":[1]}`), false, "no echo"},
		"warnings of another kind":     {postsWith(same, `,"warning":{"a":1},"response_metadata":7`), false, ""},
		"fields the library chokes on": {postsWith(same, `,"errors":[{"x":1}],"scheduled_message_id":5`), false, ""},
	} {
		f := newFakeSlack(t)
		f.on("chat.postMessage", c.answer)
		r, err := deliver(t, f.transport(), message())
		if err != nil || r.Altered != c.altered || !strings.Contains(r.Detail, c.detail) || c.detail == "" && r.Detail != "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if f.attempts() != 1 {
			t.Errorf("%s: %d requests", name, f.attempts())
		}
	}
}
