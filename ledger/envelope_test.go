package ledger_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"countersign/ledger"

	"pgregory.net/rapid"
)

// These were computed with Python's json and hashlib.
func TestEnvelopeHashesAreThoseOfAnotherImplementation(t *testing.T) {
	for want, e := range map[string]ledger.Envelope{
		"17c5b5a734ff263bc8726681a5ec9bf95e421104b0d9bc5e968dda95e46ea361": {Platform: "smtp", Channel: "buyer@acme.example", Subject: "Offer", TextSHA256: ledger.HashText("hello")},
		"081ff2e266a9be0b7fd9f551e0d8eb2c332f91f30f6ca54ca77853c3216e6a75": {Platform: "slack", Channel: "C0123", Thread: "1700000000.000100", TextSHA256: ledger.HashText("12 pieces at 4 €")},
		"347f945707cb3dadd9db326a44845a8b4c242a8edf459d6b2e355b1fe84b2bef": {Platform: "local", Channel: `a"b\c/d`, Thread: "<t@x>", Subject: "Angebot für Ä & <b> \u2028 \u20ac 😀", TextSHA256: ledger.HashText("x\ny")},
		"deba022f0bd80f6a5270c4a3357b7b692a895dea883c1a3084265d58f297dac8": {Platform: "telegram", Channel: "-1001234567890", Subject: "\x7f tab", TextSHA256: ledger.HashText("")},
	} {
		got, err := e.Hash()
		if err != nil || got != want {
			t.Errorf("%+v: %s, %v, want %s", e, got, err, want)
		}
	}
}

// canonical is RFC 8785 for this one object, written from sections 3.2.2 and 3.2.3: keys sorted, no white space, the shortest escapes.
func canonical(e ledger.Envelope) string {
	orNull := func(s string) string {
		if s == "" {
			return "null"
		}
		return quoted(s)
	}
	return `{"attachments":[],"channel":` + quoted(e.Channel) + `,"platform":` + quoted(e.Platform) + `,"schema":"countersign.envelope/v1","subject":` +
		orNull(e.Subject) + `,"text_sha256":` + quoted(e.TextSHA256) + `,"thread":` + orNull(e.Thread) + `}`
}

func quoted(s string) string {
	var b strings.Builder
	short := map[rune]string{'\b': `\b`, '\t': `\t`, '\n': `\n`, '\f': `\f`, '\r': `\r`, '"': `\"`, '\\': `\\`}
	for _, r := range s {
		switch {
		case short[r] != "":
			b.WriteString(short[r])
		case r < 0x20:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

func envelopes() *rapid.Generator[ledger.Envelope] {
	// Characters that a joining of fields or a careless encoder would confuse, and few others, so that collisions are likely to be drawn.
	letters := rapid.SampledFrom([]rune{'a', 'b', '"', '\\', ',', ':', '{', '}', '\n', '\x00', '\x1f', '<', '>', '&', '\u2028', 'é', '😀', '\ufffd'})
	field := rapid.OneOf(rapid.StringOfN(letters, 0, 4, -1), rapid.SampledFrom([]string{"", "null", "[]", "a", "ab", `","`, `","platform":"`}))
	return rapid.Custom(func(t *rapid.T) ledger.Envelope {
		return ledger.Envelope{Platform: field.Draw(t, "platform"), Channel: field.Draw(t, "channel"), Thread: field.Draw(t, "thread"),
			Subject: field.Draw(t, "subject"), TextSHA256: field.Draw(t, "hash")}
	})
}

func TestEnvelopesAreCanonical(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := envelopes().Draw(t, "envelope")
		got, err := e.Canonical()
		if err != nil || string(got) != canonical(e) || !utf8.Valid(got) {
			t.Fatalf("%+v: %s, %v, want %s", e, got, err, canonical(e))
		}
		sum := sha256.Sum256(got)
		if hash, err := e.Hash(); err != nil || hash != hex.EncodeToString(sum[:]) {
			t.Fatalf("%s, %v", hash, err)
		}
	})
}

func TestDifferentEnvelopesHaveDifferentHashes(t *testing.T) {
	seen := map[string]ledger.Envelope{}
	rapid.Check(t, func(t *rapid.T) {
		e := envelopes().Draw(t, "envelope")
		hash, err := e.Hash()
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[hash]; ok && other != e {
			t.Fatalf("%+v and %+v", e, other)
		}
		seen[hash] = e
	})
	base := ledger.Envelope{Platform: "smtp", Channel: "ab", Thread: "c", Subject: "d", TextSHA256: ledger.HashText("x")}
	first, err := base.Hash()
	must(t, err)
	for name, moved := range map[string]ledger.Envelope{ // characters move from one field to the next
		"channel to thread": {Platform: "smtp", Channel: "a", Thread: "bc", Subject: "d", TextSHA256: base.TextSHA256},
		"thread to subject": {Platform: "smtp", Channel: "ab", Subject: "cd", TextSHA256: base.TextSHA256},
		"swapped":           {Platform: "smtp", Channel: "ab", Thread: "d", Subject: "c", TextSHA256: base.TextSHA256},
		"null as a word":    {Platform: "smtp", Channel: "ab", Thread: "c", Subject: "null", TextSHA256: base.TextSHA256},
		"another text":      {Platform: "smtp", Channel: "ab", Thread: "c", Subject: "d", TextSHA256: ledger.HashText("y")},
	} {
		if hash, err := moved.Hash(); err != nil || hash == first {
			t.Errorf("%s: the same hash, %v", name, err)
		}
	}
}

// The JSON encoder replaces bad bytes silently: two envelopes used to get one hash.
func TestAnEnvelopeThatIsNotUTF8HasNoHash(t *testing.T) {
	for _, e := range []ledger.Envelope{{Platform: "\xff"}, {Channel: "a\xfe"}, {Thread: "\xc3"}, {Subject: "\xed\xa0\x80"}, {TextSHA256: "\x80"}} {
		hash, err := e.Hash()
		if want[*ledger.InputError](t, err); hash != "" {
			t.Errorf("%+v has hash %s", e, hash)
		}
	}
}

func TestAnApprovalBindsTheEnvelopeThatWasFiled(t *testing.T) {
	d := newDesk(t)
	f := filing("hello")
	f.Thread = "<t@acme.example>"
	filed := d.file(f)
	hash, err := ledger.Envelope{Platform: f.Platform, Channel: f.Channel, Thread: f.Thread, Subject: f.Subject, TextSHA256: ledger.HashText("hello")}.Hash()
	must(t, err)
	if filed.EnvelopeSHA256 != hash {
		t.Errorf("filed %s, recomputed %s", filed.EnvelopeSHA256, hash)
	}
	v := d.decide(filed, ledger.Approve)
	if s := d.show(v.ObligationID); s.Snapshot.EnvelopeSHA256 != hash || s.EnvelopeSHA256 != hash || *s.Snapshot.Subject != "Offer" || *s.Snapshot.Thread != f.Thread {
		t.Errorf("%+v", s.Snapshot)
	}
	if p := d.begin(d.claim(v)); p.EnvelopeSHA256 != hash || p.Thread != f.Thread {
		t.Errorf("%+v", p)
	}
}
