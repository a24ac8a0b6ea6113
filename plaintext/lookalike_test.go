package plaintext_test

import (
	"testing"
	"unicode"

	"countersign/plaintext"

	"pgregory.net/rapid"
)

func TestLooksAlike(t *testing.T) {
	tests := []struct {
		a, b string
		want bool
	}{
		{"Acme", "Acme", true},
		{"Acme", "ACME", true},
		{"ACME INC", "acme inc", true},
		{"Acme Corp", " acme  corp\u00a0", true},
		{"Acme", "Ac\u200bme", true},
		{"PayPal", "PayPaI", true},          // capital i
		{"paypal", "рауpаl", true},          // Cyrillic
		{"PAYPAL", "ΡΑΥΡΑL", true},          // Greek capitals
		{"Nike", "Νike", true},              // Greek capital Nu, whose small form is no n
		{"Acme", "Ａｃｍｅ", true},              // full width
		{"Acme", "𝐀𝐜𝐦𝐞", true},              // mathematical
		{"modern", "rnodern", true},         // two letters for one
		{"o0", "0O", true},                  //
		{"Müller", "Mu\u0308ller", true},    // one or two code points
		{"Straße", "STRASSE", true},         //
		{"ΝΙΚΗ", "νικη", true},              // only case, outside of Latin
		{"РОМАШКА", "Ромашка", true},        //
		{"Ꭰ", "ꭰ", true},                    // Cherokee, whose small letters came later
		{"INÉS", "inés", true},              //
		{"ÍRIS", "íris", true},              //
		{"", "\u200b", true},                // both are nothing
		{"Acme", "Acne", false},             //
		{"Müller", "Muller", false},         //
		{"Acme", "Acme Ltd", false},         //
		{"Acme-Corp", "Acme Corp", false},   //
		{"Ромашка", "Ромашки", false},       //
		{"operator-a", "operator-b", false}, //
	}
	for _, tt := range tests {
		if got := plaintext.LooksAlike(tt.a, tt.b); got != tt.want {
			t.Errorf("LooksAlike(%q, %q) = %v; skeletons %q and %q", tt.a, tt.b, got, plaintext.Skeleton(tt.a), plaintext.Skeleton(tt.b))
		}
	}
}

// The keys are stored and compared later, so a key must not change when it is made again.
func TestKeysAreFixedPoints(t *testing.T) {
	for r := rune(0); r <= 0x1ffff; r++ {
		if unicode.In(r, unicode.Han, unicode.Hangul) {
			continue // 60,000 characters without case
		}
		s := string(r)
		if key := plaintext.Skeleton(s); plaintext.Skeleton(key) != key {
			t.Errorf("Skeleton(%q) = %q, and again %q", s, key, plaintext.Skeleton(key))
		}
		if key := plaintext.Folded(s); plaintext.Folded(key) != key {
			t.Errorf("Folded(%q) = %q, and again %q", s, key, plaintext.Folded(key))
		}
	}
}

func TestSpacesAndHiddenCharactersDontMakeAName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := []rune(rapid.StringOfN(rapid.RuneFrom([]rune("aIlмΝ0é日 ")), 0, 12, -1).Draw(t, "name"))
		at := rapid.IntRange(0, len(name)).Draw(t, "at")
		extra := rapid.SampledFrom([]rune{' ', '\u00a0', '\t', '\u200b', '\u202e', '\ufeff', '\U000e0041', '\u3164'}).Draw(t, "extra")
		longer := string(name[:at]) + string(extra) + string(name[at:])
		if plaintext.Skeleton(longer) != plaintext.Skeleton(string(name)) || plaintext.Folded(longer) != plaintext.Folded(string(name)) {
			t.Fatalf("%q and %q have different keys", longer, string(name))
		}
	})
}
