package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"countersign/ledger"
)

// The first gate: what is refused, what is cleaned, and that nothing else is altered.

func TestEmptyOversizedAndNotUTF8InputIsRefused(t *testing.T) {
	t.Parallel()
	limits := ledger.DefaultLimits()
	for field, test := range map[string]struct {
		set      func(f *ledger.Filing, value string)
		limit    int
		required bool
	}{
		"text":            {func(f *ledger.Filing, v string) { f.Text = v }, limits.Text, true},
		"subject":         {func(f *ledger.Filing, v string) { f.Subject = v }, limits.Subject, false},
		"summary":         {func(f *ledger.Filing, v string) { f.Summary = v }, limits.Summary, false},
		"context":         {func(f *ledger.Filing, v string) { f.Context = v }, limits.Context, false},
		"counterparty":    {func(f *ledger.Filing, v string) { f.Counterparty = v }, limits.Counterparty, true},
		"channel":         {func(f *ledger.Filing, v string) { f.Channel = v }, limits.Channel, true},
		"platform":        {func(f *ledger.Filing, v string) { f.Platform = v }, limits.Channel, true},
		"thread":          {func(f *ledger.Filing, v string) { f.Thread = v }, limits.Thread, false},
		"user":            {func(f *ledger.Filing, v string) { f.User = v }, limits.User, false},
		"agent":           {func(f *ledger.Filing, v string) { f.Agent = v }, 200, true},
		"idempotency-key": {func(f *ledger.Filing, v string) { f.IdempotencyKey = v }, 200, false},
	} {
		t.Run(field, func(t *testing.T) {
			try := func(value string) error {
				f := filing("hello")
				test.set(&f, value)
				return second(ledger.Clean(f, limits))
			}
			for _, rune := range []string{"x", "é", "😀"} { // characters are counted, not bytes
				must(t, try(strings.Repeat(rune, test.limit)))
				long := want[*ledger.InputError](t, try(strings.Repeat(rune, test.limit+1)))
				if long.Field != field || long.Limit != test.limit || long.Size != test.limit+1 || long.Unit != "characters" {
					t.Errorf("%+v", long)
				}
			}
			for _, bad := range []string{"ok \xff", "a\xed\xa0\x80b", "\xc3"} { // a byte, a surrogate in UTF-8, a cut character
				if refused := want[*ledger.InputError](t, try(bad)); refused.Field != field || !strings.Contains(refused.Error(), "UTF-8") {
					t.Errorf("%q: %+v", bad, refused)
				}
			}
			for _, empty := range []string{"", " ", "\x00", "\n \t\r\n"} {
				err := try(empty)
				if !test.required {
					continue // optional, or refused because it would change by cleaning
				}
				if refused := want[*ledger.InputError](t, err); refused.Field != field {
					t.Errorf("%q: %+v", empty, refused)
				}
			}
		})
	}
}

func TestTheDefaultLimitsAreTheContracts(t *testing.T) {
	t.Parallel()
	want := ledger.Limits{Text: 40000, Subject: 300, Summary: 200, Context: 4000, Counterparty: 120, Channel: 500, Thread: 998, User: 120}
	if got := ledger.DefaultLimits(); got != want {
		t.Errorf("%+v", got)
	}
}

func TestCleaningChangesControlsAndWhiteSpaceAndNothingElse(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i, test := range []struct{ in, out string }{
		{"ok\x00 and pay 900", "ok and pay 900"},
		{"one\r\ntwo\rthree\n", "one\ntwo\nthree"},
		{"\n\n  indented\n\n\nend\n\n", "  indented\n\n\nend"},
		{"a\tb  c ", "a\tb  c "},
		{"\x1b[2Kwiped", "[2Kwiped"},
		{".\n..x\n.env\nFrom here", ".\n..x\n.env\nFrom here"},
		{"\ufeffBOM", "\ufeffBOM"},
		{"é and e\u0301", "é and e\u0301"},
		{"pay 9\u200b00 \u202e", "pay 9\u200b00 \u202e"},
		{"[NEW DESTINATION] is part of the text", "[NEW DESTINATION] is part of the text"},
	} {
		draft, err := ledger.Clean(filing(test.in), ledger.DefaultLimits())
		must(t, err)
		if got := draft.Filing().Text; got != test.out || draft.TextSHA256() != ledger.HashText(test.out) {
			t.Errorf("%q became %q, want %q", test.in, got, test.out)
		}
		d.party = fmt.Sprint("c", i)
		filed := d.file(d.filing(test.in))
		if filed.Cleaned != (test.in != test.out) {
			t.Errorf("%q: cleaned is %v", test.in, filed.Cleaned)
		}
		s := d.show(filed.ObligationID)
		if s.DraftText != test.out || ledger.HashText(s.DraftText) != filed.DraftSHA256 || s.DraftSHA256 != filed.DraftSHA256 {
			t.Errorf("%q was stored as %q with hash %s", test.in, s.DraftText, s.DraftSHA256)
		}
		if p := d.begin(d.claim(d.decide(filed, ledger.Approve))); p.Text != test.out || p.TextSHA256 != filed.DraftSHA256 {
			t.Errorf("%q is sent as %q", test.in, p.Text)
		}
	}
}

func TestTwinsOfUnicodeHaveDifferentHashes(t *testing.T) {
	t.Parallel()
	one, err := ledger.Clean(filing("é"), ledger.DefaultLimits())
	must(t, err)
	two, err := ledger.Clean(filing("e\u0301"), ledger.DefaultLimits())
	must(t, err)
	if one.TextSHA256() == two.TextSHA256() || one.EnvelopeSHA256() == two.EnvelopeSHA256() {
		t.Error("normalised")
	}
}

func TestLinesAreCollapsedAndDestinationsRefused(t *testing.T) {
	t.Parallel()
	draft, err := ledger.Clean(ledger.Filing{Counterparty: " acme \t ltd\r\n", Platform: "smtp", Channel: "a@b.example", Subject: "Hi\r\nBcc: all@example.com", User: "u\x00 1",
		Summary: "a\nb", Text: "x", Agent: " quoter "}, ledger.DefaultLimits())
	must(t, err)
	f := draft.Filing()
	if f.Counterparty != "acme ltd" || f.Subject != "Hi Bcc: all@example.com" || f.User != "u 1" || f.Summary != "a b" || f.Agent != "quoter" {
		t.Errorf("%+v", f)
	}
	for field, set := range map[string]func(f *ledger.Filing, v string){
		"channel":  func(f *ledger.Filing, v string) { f.Channel = v },
		"platform": func(f *ledger.Filing, v string) { f.Platform = v },
		"thread":   func(f *ledger.Filing, v string) { f.Thread = v },
	} {
		for _, value := range []string{"a@b.example\r\nBcc: all@example.com", " a@b.example", "a@b.example\n", "a\x00@b.example", "a  b", "a\tb"} {
			f := filing("x")
			set(&f, value)
			_, err := ledger.Clean(f, ledger.DefaultLimits())
			if refused := want[*ledger.InputError](t, err); refused.Field != field {
				t.Errorf("%q: %+v", value, refused)
			}
		}
	}
}

func TestPriorityAndNumbers(t *testing.T) {
	t.Parallel()
	draft, err := ledger.Clean(filing("x"), ledger.DefaultLimits())
	must(t, err)
	if draft.Filing().Priority != "P2" {
		t.Errorf("default priority %s", draft.Filing().Priority)
	}
	for field, change := range map[string]func(f *ledger.Filing){
		"priority":        func(f *ledger.Filing) { f.Priority = "p1" },
		"signal":          func(f *ledger.Filing) { f.Signal = -1 },
		"auto-send-after": func(f *ledger.Filing) { f.AutoSendAfter = -1 },
	} {
		f := filing("x")
		change(&f)
		_, err := ledger.Clean(f, ledger.DefaultLimits())
		if refused := want[*ledger.InputError](t, err); refused.Field != field {
			t.Errorf("%+v", refused)
		}
	}
}

func TestADraftThatWasNotCleanedIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.File(t.Context(), ledger.Draft{}, ledger.Gates{})
	want[*ledger.InputError](t, err)
	if n := d.count(`SELECT count(*) FROM obligations`); n != 0 {
		t.Errorf("%d obligations", n)
	}
}

func TestASignalMustExist(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := filing("one")
	f.Signal = 7
	_, err := d.File(t.Context(), d.clean(f), ledger.Gates{})
	if refused := want[*ledger.InputError](t, err); refused.Field != "signal" {
		t.Errorf("%+v", refused)
	}
	f.Signal = d.file(filing("the item it answers")).ObligationID
	f.Channel = "other@acme.example"
	d.file(f)
	if n := d.count(`SELECT count(*) FROM obligation_drafts WHERE signal_obligation_id = $1`, f.Signal); n != 1 {
		t.Error("the signal was not stored")
	}
}

func TestTheSummaryHasTheHash(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := filing("one")
	f.Summary = "offer for 12 pieces"
	filed := d.file(f)
	if s := d.show(filed.ObligationID); s.Summary != "offer for 12 pieces (sha "+filed.DraftSHA256[:8]+")" {
		t.Errorf("summary %q", s.Summary)
	}
}

func TestARefilingReplacesEverythingThatIsShown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := filing("one")
	first.Thread, first.User, first.Priority, first.AutoSendAfter, first.Context = "<t@x>", "u", "P0", 2_000_000_000, "because"
	d.file(first)
	again := d.file(ledger.Filing{Counterparty: "acme", Platform: "local", Channel: "buyer@acme.example", Text: "two", Agent: "other"})
	s := d.show(again.ObligationID)
	if s.Thread != nil || s.Subject != nil || s.AutoSendAfter != nil || s.Priority != "P2" || s.Platform != "local" || strings.Contains(s.Context, "because") {
		t.Errorf("%+v", s.Listed)
	}
	if len(s.Filings) != 2 || s.Filings[0].Text != "one" || *s.Filings[0].Subject != "Offer" {
		t.Errorf("the history: %+v", s.Filings)
	}
	inbox, err := d.Inbox(t.Context(), "quoter")
	must(t, err)
	if len(inbox) != 1 || inbox[0].Kind != "superseded" {
		t.Errorf("the first agent hears %+v", inbox)
	}
}
