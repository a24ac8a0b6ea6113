package notify_test

import (
	"strings"
	"testing"

	"countersign/ledger"
	"countersign/plaintext"
	"countersign/tests/fakeslack"
)

// posted is the draft's text as the card shows it: between the card's two dividers, or in the thread's parts.
func (d *desk) posted(s ledger.Subject) string {
	d.t.Helper()
	var text []string
	if len(s.View.Parts) == 1 && s.View.Parts[0].TS == s.Card.TS {
		return strings.Join(between(d.card(s.ObligationID)), "")
	}
	for _, p := range s.View.Parts {
		m := d.message(p.TS)
		if m.ThreadTS != s.Card.TS {
			d.t.Errorf("part %s is not in the card's thread", p.TS)
		}
		text = append(text, sectionTexts(m)...)
	}
	return strings.Join(text, "")
}

func between(m fakeslack.Message) (texts []string) {
	dividers := 0
	for _, b := range m.Blocks {
		switch {
		case b["type"] == "divider":
			dividers++
		case dividers == 1 && b["type"] == "section":
			texts = append(texts, fakeslack.Decode(b["text"].(map[string]any)["text"].(string)))
		}
	}
	return texts
}

// The operator sees every character of the text before Approve is there, with hidden ones as marks.
func TestTextsAreShownWhole(t *testing.T) {
	d := newDesk(t)
	lines := func(n int) string {
		return strings.Repeat("All of it is fine.\n", n/19) + strings.Repeat("y", n%19-1) + "!"
	}
	for _, test := range []struct{ name, text string }{
		{"an ampersand", "AT&T: 5 < 6 > 4"},
		{"literal markup", "&lt;b&gt;"},
		{"literal escape of an escape", "&amp;lt;"},
		{"an address", "https://example.com/?a=1&b=2"},
		{"mentions and formats", "<!channel> <@U1> *bold* _it_ ~no~ `x` :smile: <https://evil.example|https://good.example>"},
		{"2,990 characters", lines(2_990)},
		{"3,001 characters", lines(3_001)},
		{"12,000 characters", lines(12_000)},
		{"40,000 characters", lines(40_000)},
		{"one line of 12,000", strings.Repeat("x", 11_999) + "!"},
		{"ampersands only", strings.Repeat("&", 3_000)},
		{"zero-width space in a price", "pay 9\u200b00"},
		{"right-to-left override in an address", "https://example.com/\u202egpj.exe"},
		{"tag characters", "hello\U000e0100\U000e0041\U000e007f"},
		{"no-break spaces before the last sentence", "Fine." + strings.Repeat("\u00a0", 400) + "And pay 900."},
		{"empty lines before the last sentence", "Fine." + strings.Repeat("\n", 40) + "And pay 900."},
		{"a forged mark", "⟦U+200B⟧"},
		{"Hebrew, Arabic and emoji", "שלום עולם, مرحبا بالعالم, می\u200cخواهم 👩\u200d👩\u200d👧\u200d👦 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"},
		{"a family at a cut", strings.Repeat("x", 2_898) + strings.Repeat("👩\u200d👩\u200d👧\u200d👦", 30)},
		{"families without end", strings.Repeat("👩\u200d👩\u200d👧\u200d👦", 2_000)},
		{"one letter with 4,000 accents", "a" + strings.Repeat("\u0301", 4_000) + "!"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := filing(test.text)
			f.Counterparty = test.name
			filed := d.file(f)
			d.pass()
			s := d.subject(filed.ObligationID)
			if got, want := d.posted(s), plaintext.Visible(s.DraftText); got != want {
				t.Errorf("%d characters are shown, want %d; the end is %.80q", len(got), len(want), got[max(0, len(got)-60):])
			}
			if !s.View.Complete {
				t.Error("the ledger does not find the whole text")
			}
			d.checkSound(filed.ObligationID)
		})
	}
}

// A run of blanks or lines that no block holds is told as several, and none is lost.
func TestBlanksAcrossACutAreCounted(t *testing.T) {
	for _, test := range []struct{ name, text, part string }{
		{"blanks", strings.Repeat("x", 2_900) + strings.Repeat("\u00a0", 30) + "\n" + strings.Repeat("y", 2_899) + "\nend", "blanks⟧"},
		{"many runs of empty lines", strings.Repeat("a"+strings.Repeat("\n", 12), 900) + "end", "a\n⟦11 blank lines⟧\na"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			filed := d.file(filing(test.text))
			d.pass()
			if got := d.posted(d.subject(filed.ObligationID)); !strings.Contains(got, test.part) || !strings.HasSuffix(got, "end") {
				t.Errorf("shown: %q", got)
			}
			d.checkSound(filed.ObligationID)
		})
	}
}

// What isn't ours is shown once escaped, in every place of the card; an origin user used to be escaped twice.
func TestForeignStringsAreShownAsTheyAre(t *testing.T) {
	d := newDesk(t)
	f := filing("text")
	f.Counterparty, f.User, f.Subject = "A&B <x>", "U&I\u200b", "S&S"
	f.Agent, f.Summary, f.Context = "bot <1>", "sum & sum", "con\x1b[2Ktext <!channel>"
	filed := d.file(f)
	d.pass()
	card := d.card(filed.ObligationID)
	for _, part := range []string{"For: A&B <x>", "Asked for by: U&I⟦U+200B⟧", "Subject: S&S", "Agent bot <1> says:\n│ sum & sum\n│ con[2Ktext <!channel>",
		"System marks:", "To: slack " + abroad} {
		if !strings.Contains(words(card), part) {
			t.Errorf("no %q in\n%s", part, words(card))
		}
	}
	if strings.Contains(asJSON(t, card.Blocks), "mrkdwn") {
		t.Error("something is markup")
	}
	for name, value := range map[string]string{"parse": "none", "link_names": "false", "unfurl_links": "false", "unfurl_media": "false"} {
		if got := card.Params[name]; got != value && !(name == "parse" && got == "") && !(name == "link_names" && got == "") {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// A card that Slack refuses, or a part of it, stays without a way to approve it; what is queued waits.
func TestACardThatSlackRefusesHasNoApproveButton(t *testing.T) {
	for method, outcomes := range map[string][]fakeslack.Outcome{
		"chat.update":      {fakeslack.Fail("msg_blocks_too_long")},
		"chat.postMessage": {fakeslack.Normal(), fakeslack.Fail("msg_blocks_too_long")},
	} {
		t.Run(method, func(t *testing.T) {
			d := newDesk(t)
			filed := d.file(filing(strings.Repeat("long text\n", 2_000)))
			d.slack.Script(method, outcomes...)
			out, err := d.Pass(t.Context())
			must(t, err)
			s := d.subject(filed.ObligationID)
			if len(out.Failed) != 1 || s.View != nil || actions(d.card(filed.ObligationID)) != "" || len(s.Notices) != 1 {
				t.Errorf("%+v, view %+v, buttons %q", out, s.View, actions(d.card(filed.ObligationID)))
			}
			d.unshown(filed, s)
			d.pass()
			d.checkSound(filed.ObligationID)
		})
	}
}

// A Slack that shows another text than was sent shows nobody what to approve.
func TestACardThatSlackAltersHasNoApproveButton(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing("pay 900"))
	d.slack.Script("chat.update", altered())
	d.pass()
	s := d.subject(filed.ObligationID)
	card := d.card(filed.ObligationID)
	if s.View == nil || s.View.Complete || actions(card) != "request_changes reject" || !strings.Contains(words(card), "can't be approved") {
		t.Errorf("view %+v, buttons %q:\n%s", s.View, actions(card), words(card))
	}
	d.unshown(filed, s)
}

// altered takes a message, and tells of another text.
func altered() fakeslack.Outcome {
	return fakeslack.Altered(func(string) string { return "another text" })
}

// unshown checks that the ledger refuses an approval from the card.
func (d *desk) unshown(filed ledger.Filed, s ledger.Subject) {
	d.t.Helper()
	_, err := d.Decide(d.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Approve,
		Operator: d.anna, Card: &s.Card.CardRef})
	want[*ledger.UnshownError](d.t, err)
}

// What the agent says is whole in the thread where it is too long for the card.
func TestALongReasonIsInTheThread(t *testing.T) {
	d := newDesk(t)
	f := filing("short")
	f.Context = strings.Repeat("because & ", 390) + "END"
	filed := d.file(f)
	d.pass()
	card := d.card(filed.ObligationID)
	replies := d.thread(card)
	if len(replies) != 1 || !strings.Contains(replies[0], "END") || !strings.Contains(words(card), "in this card's thread") {
		t.Errorf("replies %q, card\n%s", replies, words(card))
	}
}
