package plaintext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// Which characters can't be seen, and where they are needed all the same: joiners between Persian or Indic letters and
// within emoji, variation selectors after a base that has variants, tags in the three flags that are made of them.

const (
	zwnj = '\u200c'
	zwj  = '\u200d'

	textStyle  = '\ufe0e'
	emojiStyle = '\ufe0f'
	keycap     = '\u20e3'
)

// bidiControls is Unicode's property Bidi_Control (PropList.txt).
var bidiControls = unicode.Bidi_Control

// zeroWidth holds what draws nothing and is neither a bidirectional control, a variation selector nor a tag: the rest of
// Default_Ignorable_Code_Point (DerivedCoreProperties.txt), and what is blank without being a space.
var zeroWidth = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1}, // soft hyphen
		{Lo: 0x034f, Hi: 0x034f, Stride: 1}, // combining grapheme joiner
		{Lo: 0x115f, Hi: 0x1160, Stride: 1}, // Hangul fillers
		{Lo: 0x17b4, Hi: 0x17b5, Stride: 1}, // Khmer inherent vowels
		{Lo: 0x180e, Hi: 0x180e, Stride: 1}, // Mongolian vowel separator
		{Lo: 0x200b, Hi: 0x200d, Stride: 1}, // zero-width space, non-joiner, joiner
		{Lo: 0x2028, Hi: 0x2029, Stride: 1}, // line and paragraph separator: a line end in some programs, nothing in others
		{Lo: 0x2060, Hi: 0x2065, Stride: 1}, // word joiner, invisible operators
		{Lo: 0x206a, Hi: 0x206f, Stride: 1}, // deprecated format characters
		{Lo: 0x3164, Hi: 0x3164, Stride: 1}, // Hangul filler
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1}, // zero-width no-break space, byte order mark
		{Lo: 0xffa0, Hi: 0xffa0, Stride: 1}, // half-width Hangul filler
		{Lo: 0xfff0, Hi: 0xfffb, Stride: 1}, // unassigned ignorables, interlinear annotation
	},
	R32: []unicode.Range32{
		{Lo: 0x13430, Hi: 0x1343f, Stride: 1}, // Egyptian hieroglyph format controls
		{Lo: 0x1bca0, Hi: 0x1bca3, Stride: 1}, // shorthand format controls
		{Lo: 0x1d159, Hi: 0x1d159, Stride: 1}, // musical null notehead
		{Lo: 0x1d173, Hi: 0x1d17a, Stride: 1}, // musical format controls
	},
}

// joining holds the scripts in which ZWJ and ZWNJ change how letters are drawn (The Unicode Standard, chapters 9 and 12
// to 16), so that correct spelling needs them.
var joining = []*unicode.RangeTable{
	unicode.Arabic, unicode.Syriac, unicode.Mandaic, unicode.Mongolian, unicode.Nko, unicode.Phags_Pa, unicode.Adlam,
	unicode.Hanifi_Rohingya, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya,
	unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer, unicode.Myanmar,
	unicode.Tibetan, unicode.Balinese, unicode.Javanese, unicode.Sundanese, unicode.Meetei_Mayek, unicode.Newa,
	unicode.Grantha, unicode.Tirhuta, unicode.Kaithi, unicode.Chakma, unicode.Tai_Tham,
}

// flags are the emoji tag sequences that are recommended for interchange (emoji-sequences.txt, RGI_Emoji_Tag_Sequence):
// England, Scotland, Wales. Any other tag sequence is drawn as a black flag and hides its letters.
var flags = []string{flag("gbeng"), flag("gbsct"), flag("gbwls")}

func flag(region string) string {
	tags := strings.Map(func(r rune) rune { return 0xe0000 + r }, region)
	return "\U0001f3f4" + tags + "\U000e007f"
}

// flagLength is the length in bytes of the flag sequence that s begins with, or 0.
func flagLength(s string) int {
	i := slices.IndexFunc(flags, func(f string) bool { return strings.HasPrefix(s, f) })
	if i < 0 {
		return 0
	}
	return len(flags[i])
}

// invisible tells what kind of hidden character r is by itself, or plain.
func invisible(r rune) kind {
	switch {
	case r < 0xad:
		return plain
	case unicode.Is(bidiControls, r):
		return bidi
	case unicode.Is(unicode.Variation_Selector, r):
		return selector
	case 0xe0000 <= r && r <= 0xe0fff:
		return tag
	case unicode.Is(zeroWidth, r), unicode.Is(unicode.Noncharacter_Code_Point, r):
		return zeroWide
	}
	return plain
}

// hiddenAt is invisible for the rune r at s[i:], without what its neighbours need for their own shape.
func hiddenAt(s string, i int, r rune) kind {
	k := invisible(r)
	switch {
	case k == selector && selectorBelongs(s, i, r):
		return plain
	case (r == zwj || r == zwnj) && joinerBelongs(s, i, r):
		return plain
	}
	return k
}

// joinerBelongs tells whether the joiner at s[i:] stands beside a letter of a joining script, or holds two emoji together.
func joinerBelongs(s string, i int, joiner rune) bool {
	next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(joiner):])
	before := lastBase(s[:i])
	if takesJoiner(before) || takesJoiner(next) && !isJoiner(before) {
		return true
	}
	return joiner == zwj && isPictograph(before) && isPictograph(next)
}

// takesJoiner is about letters and their marks only: between digits a joiner spells nothing, whatever the script.
func takesJoiner(r rune) bool {
	return unicode.In(r, unicode.L, unicode.M) && unicode.In(r, joining...)
}

func isJoiner(r rune) bool { return r == zwj || r == zwnj }

// lastBase is the last rune of s that doesn't just modify the one before it. A hidden character counts as a base, so that
// of several joiners in a row only the first belongs.
func lastBase(s string) rune {
	for end := len(s); end > 0; {
		r, size := utf8.DecodeLastRuneInString(s[:end])
		end -= size
		if !modifies(s, end, r) {
			return r
		}
	}
	return utf8.RuneError
}

// modifies tells whether the rune r at s[i:] is a vowel sign or accent that scripts share, a skin tone, or a variation
// selector in its place.
func modifies(s string, i int, r rune) bool {
	if k := invisible(r); k != plain {
		return k == selector && selectorBelongs(s, i, r)
	}
	return unicode.Is(unicode.Inherited, r) || 0x1f3fb <= r && r <= 0x1f3ff
}

// selectorBelongs tells whether the variation selector at s[i:] follows a base that has such a variant
// (StandardizedVariants.txt, emoji-variation-sequences.txt). The supplement from U+E0100 on never does: it takes 240
// values after any base without a visible trace, which is how texts are smuggled.
func selectorBelongs(s string, i int, r rune) bool {
	base, _ := utf8.DecodeLastRuneInString(s[:i])
	switch {
	case r == textStyle || r == emojiStyle:
		return isPictograph(base) || r == emojiStyle && isKeycap(base, s[i:])
	case 0x180b <= r && r <= 0x180f:
		return unicode.Is(unicode.Mongolian, base) && unicode.IsLetter(base)
	case 0xfe00 <= r && r <= 0xfe02:
		return unicode.In(base, unicode.Han, unicode.Myanmar, unicode.Phags_Pa, unicode.Sm)
	}
	return false
}

// isKeycap tells whether base, with the emoji style that rest begins with, is a key such as 1️⃣.
func isKeycap(base rune, rest string) bool {
	return strings.ContainsRune("0123456789#*", base) && strings.HasPrefix(rest, string(emojiStyle)+string(keycap))
}

// isPictograph is the property Extended_Pictographic, which package unicode lacks. The grapheme rule GB11 of UAX 29 joins
// two characters over a ZWJ exactly if both have it, so the segmenter knows the answer.
func isPictograph(r rune) bool {
	if r < 0xa9 || r == utf8.RuneError {
		return false
	}
	sequence := string(r) + string(zwj) + "\u2764"
	cluster := graphemes.FromString(sequence)
	return cluster.Next() && cluster.Value() == sequence
}
