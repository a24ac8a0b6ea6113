package smtp

import (
	"io"
	"mime"
	stdmail "net/mail"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
	"pgregory.net/rapid"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// composed is the letter as its receiver gets it.
func composed(t *testing.T, change func(*Config), m transports.Message) string {
	t.Helper()
	c := Config{Address: "localhost:25", From: "Desk <desk@example.com>", Now: clock}
	if change != nil {
		change(&c)
	}
	l, err := newTransport(t, c).compose(m)
	if err != nil {
		t.Fatalf("compose: %v", err)
	}
	return string(l.octets)
}

func TestLetterOctetForOctet(t *testing.T) {
	m := claimed(offer())
	m.Text = "Grüße,\n.\nDesk"
	want := strings.ReplaceAll(`From: "Desk" <desk@example.com>
To: <kim@example.org>, <lee@example.net>
Subject: Your offer
Date: Wed, 04 Mar 2026 05:06:07 +0100
Message-Id: <countersign.41.7.c0ffee@example.com>
In-Reply-To: <thread.1@example.org>
References: <thread.1@example.org>
Mime-Version: 1.0
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

R3LDvMOfZSwKLgpEZXNr
`, "\n", "\r\n")
	if got := composed(t, nil, m); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOnlyOurHeaders(t *testing.T) {
	m := claimed(offer())
	m.Subject, m.Thread = "", ""
	entity, err := message.Read(strings.NewReader(composed(t, nil, m)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for f := entity.Header.Fields(); f.Next(); {
		got = append(got, f.Key())
	}
	want := []string{"From", "To", "Date", "Message-Id", "Mime-Version", "Content-Type", "Content-Transfer-Encoding"}
	if !slices.Equal(got, want) {
		t.Errorf("fields %v, want %v", got, want)
	}
}

// FAULTS 11: decoded by go-message; the suite decodes the same texts from the
// wire with the standard library.
func TestTextsReadBackExactly(t *testing.T) {
	for _, text := range transporttest.NastyTexts() {
		m := claimed(offer())
		m.Text = text.Text
		entity, err := message.Read(strings.NewReader(composed(t, nil, m)))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(entity.Body); err != nil || string(got) != text.Text {
			t.Errorf("%s: %q became %q: %v", text.Name, text.Text, got, err)
		}
	}
}

// subjects that a mail program, or Go's encoder, shows as something else.
var subjects = []string{
	"Your offer", "", "a", "Grüße", "=?utf-8?q?x?=", "=?utf-8?q?a=0D=0ABcc:_evil@example.com?=", "=?", "a =?utf-8?b?eA==?= b", "x=?iso-8859-1?q?=E9?=",
	"two  blanks", " blank in front", "blank behind ", "Re: [x] (y) <z> \"q\" a@b, c; d: e\\", "=", "?=", "🎉🎉🎉", "שלום", "a\u2028b", "e\u0301 \u00e9", "\ufeffBOM",
	strings.Repeat("long ", 60) + "end", strings.Repeat("x", 300), strings.Repeat("é", 300), strings.Repeat("🎉", 300), strings.Repeat(" ", 100),
	strings.Repeat("x", 59) + " " + strings.Repeat("y", 61),
}

func TestSubjectsReadBackExactly(t *testing.T) {
	for _, subject := range subjects {
		checkSubject(t, subject)
	}
}

func TestAnySubjectReadsBackExactly(t *testing.T) {
	runes := rapid.RuneFrom([]rune(" =?_-utf8qb.\"\\,<>@:;()ABCxyz059éß🎉\u200b\u202e"))
	rapid.Check(t, func(rt *rapid.T) {
		checkSubject(rt, rapid.StringOfN(runes, 0, 300, -1).Draw(rt, "subject"))
	})
}

type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

func checkSubject(t tester, subject string) {
	t.Helper()
	m := claimed(offer())
	m.Subject = subject
	l, err := compose(m, sender{address: address{"desk", "example.com"}}, []address{{"kim", "example.org"}}, clock())
	if err != nil {
		t.Fatalf("%q: %v", subject, err)
	}
	raw := string(l.octets)
	header, _, _ := strings.Cut(raw, "\r\n\r\n")
	for line := range strings.SplitSeq(header, "\r\n") {
		if len(line) > 76 || !isASCII(line) {
			t.Errorf("%q: a line of %d octets: %q", subject, len(line), line)
		}
	}
	for _, word := range regexp.MustCompile(`=\?utf-8\?b\?\S+\?=`).FindAllString(encodeSubject(subject), -1) {
		// RFC 2047 section 5: a word holds whole characters.
		if part, err := new(mime.WordDecoder).Decode(word); err != nil || strings.ContainsRune(part, utf8.RuneError) {
			t.Errorf("%q: the word %s holds %q: %v", subject, word, part, err)
		}
	}
	std := stdSubject(t, raw)
	entity, err := message.Read(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%q: %v", subject, err)
	}
	h := mail.Header{Header: entity.Header}
	other, err := h.Subject()
	if std != subject || other != subject || err != nil {
		t.Errorf("%q reads %q and %q: %v", subject, std, other, err)
	}
}

// stdSubject reads the subject with the standard library only.
func stdSubject(t tester, raw string) string {
	t.Helper()
	m, err := stdmail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return subject
}

func TestSenderNames(t *testing.T) {
	for from, want := range map[string]string{
		"desk@example.com":                   `<desk@example.com>`,
		"Desk, the <desk@example.com>":       "",
		`"Desk, the" <desk@example.com>`:     `"Desk, the" <desk@example.com>`,
		"Büro <desk@bücher.example>":         `=?utf-8?q?B=C3=BCro?= <desk@xn--bcher-kva.example>`,
		`"=?utf-8?q?x?=" <desk@example.com>`: `"=?utf-8?q?x?=" <desk@example.com>`,
	} {
		c := Config{Address: "localhost:25", From: from, Now: clock}
		tr, err := New(c)
		if (err != nil) != (want == "") {
			t.Errorf("%s: %v", from, err)
		}
		if err != nil {
			continue
		}
		l, err := tr.compose(claimed(offer()))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(string(l.octets), "\r\n"); got != "From: "+want {
			t.Errorf("%s became %s, want %s", from, got, want)
		}
	}
}

// A reply that is made again after the claim has the same name, another claim's
// has not.
func TestMessageIDFollowsTheClaim(t *testing.T) {
	m := claimed(offer())
	first := messageID(m, "example.com")
	m.Text, m.Subject = "other", ""
	if messageID(m, "example.com") != first {
		t.Error("the id depends on more than the claim")
	}
	for _, change := range []func(*transports.Message){
		func(m *transports.Message) { m.ObligationID++ },
		func(m *transports.Message) { m.DecisionID++ },
		func(m *transports.Message) { m.Key = "c0ffe0" },
	} {
		other := m
		change(&other)
		if messageID(other, "example.com") == first {
			t.Errorf("the same id for %+v", other)
		}
	}
}

func TestReadBackFindsWhatIsNotExact(t *testing.T) {
	m := claimed(offer())
	l := letter{octets: []byte(composed(t, nil, m))}
	if err := readBack(l, m); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(string) string{
		"text":     func(s string) string { return strings.Replace(s, "\r\n\r\nS", "\r\n\r\nT", 1) },
		"subject":  func(s string) string { return strings.Replace(s, "Your offer", "Your  offer", 1) },
		"thread":   func(s string) string { return strings.Replace(s, "References: <t", "References: <s", 1) },
		"dot":      func(s string) string { return strings.Replace(s, "From:", ".From:", 1) },
		"lone LF":  func(s string) string { return strings.Replace(s, "\r\n", "\n", 1) },
		"no end":   func(s string) string { return strings.TrimSuffix(s, "\r\n") },
		"too long": func(s string) string { return strings.Replace(s, "Desk", strings.Repeat("x", 1000), 1) },
	} {
		raw := change(string(l.octets))
		if raw == string(l.octets) {
			t.Fatalf("%s: nothing changed", name)
		}
		if readBack(letter{octets: []byte(raw)}, m) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}
