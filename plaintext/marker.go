package plaintext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Neutralise keeps an agent's input from reading like a mark of the system: where an opening bracket is followed by the
// words of one of the markers ("NEW DESTINATION", "DUPLICATE OF"; a marker may be the beginning of a longer one), the
// bracket becomes a round one, and so does its partner: "(NEW DESTINATION)". Case, spaces, punctuation, hidden and
// combining characters don't matter, and look-alikes of letters and brackets count as what they look like. Nothing else
// changes; the second result tells whether anything did. Neutralise of its own result changes nothing.
//
// It expects UTF-8 (see Line and Text).
func Neutralise(s string, markers []string) (string, bool) {
	brackets := offsets(s, opensMarker)
	if len(brackets) == 0 {
		return s, false
	}
	words := foldMarkers(markers)
	round := map[int]rune{} // what replaces the bracket at an offset
	// From the right, so that a bracket before another one is judged by it.
	for _, open := range slices.Backward(brackets) {
		_, size := utf8.DecodeRuneInString(s[open:])
		inside := open + size
		nested := func(offset int) bool { return round[inside+offset] != 0 }
		if !opensOne(s[inside:], words, nested) {
			continue
		}
		round[open] = '('
		if end := partner(s[inside:]); end >= 0 {
			round[inside+end] = ')'
		}
	}
	return replaceAt(s, round), len(round) > 0
}

func offsets(s string, is func(rune) bool) []int {
	var found []int
	for i, r := range s {
		if is(r) {
			found = append(found, i)
		}
	}
	return found
}

func replaceAt(s string, replacements map[int]rune) string {
	var b strings.Builder
	for i, r := range s {
		if replacement, ok := replacements[i]; ok {
			r = replacement
		}
		b.WriteRune(r)
	}
	return b.String()
}

func foldMarkers(markers []string) []string {
	var words []string
	for _, marker := range markers {
		var word strings.Builder
		for _, r := range marker {
			if isAlphanumeric(r) {
				word.WriteString(Skeleton(string(r)))
			}
		}
		if word.Len() > 0 {
			words = append(words, word.String())
		}
	}
	return words
}

// opensMarker takes every opening bracket for a square one, but for round and curly ones and quotation marks.
func opensMarker(r rune) bool {
	return r == '[' || r > utf8.RuneSelf && unicode.Is(unicode.Ps, r) && !isOtherBracket(r)
}

func closesMarker(r rune) bool {
	return r == ']' || r > utf8.RuneSelf && unicode.Is(unicode.Pe, r) && !isOtherBracket(r)
}

// isOtherBracket tells whether no reader takes r for square. NFKC makes small, full-width, raised and vertical forms the same.
func isOtherBracket(r rune) bool {
	return strings.ContainsAny(norm.NFKC.String(string(r)), "(){}‚„❨❩❪❫❴❵⦅⦆⸨⸩﴾﴿")
}

func isAlphanumeric(r rune) bool { return unicode.In(r, unicode.L, unicode.N) }

// partner is the offset in s of the bracket that closes the one before s, or -1. A marker stands on one line.
func partner(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return r == '\n' || opensMarker(r) || closesMarker(r) })
	if end < 0 {
		return -1
	}
	if r, _ := utf8.DecodeRuneInString(s[end:]); !closesMarker(r) {
		return -1
	}
	return end
}

// opensOne tells whether s begins with one of the words, or with another bracket that does; nested knows of that one.
func opensOne(s string, words []string, nested func(offset int) bool) bool {
	for i, r := range s {
		if isAlphanumeric(r) || closesMarker(r) {
			break
		}
		if opensMarker(r) {
			return nested(i)
		}
	}
	return slices.ContainsFunc(words, func(word string) bool { return reads(s, word) })
}

// reads tells whether the letters of s begin with word, as an eye reads them. A letter can be read in several ways (Ν is
// an N, its small form a v), so all of them are followed: reached holds how much of word each way has matched.
func reads(s, word string) bool {
	reached := []int{0}
	for i, r := range s {
		if opensMarker(r) || closesMarker(r) {
			return false
		}
		read := readings(r)
		if len(read) == 0 {
			continue
		}
		on := advance(reached, word, read)
		if !isAlphanumeric(r) {
			on = append(on, reached...) // punctuation may be a letter in disguise ("|"), or nothing
			slices.Sort(on)
			on = slices.Compact(on)
		}
		if len(on) == 0 {
			return false
		}
		// A word ends where no letter follows at once: "DUPLICATE OFFERS" marks no duplicate.
		if next, _ := utf8.DecodeRuneInString(s[i+utf8.RuneLen(r):]); slices.Contains(on, len(word)) && !isAlphanumeric(next) {
			return true
		}
		reached = on
	}
	return false
}

// advance returns how much of word is matched when each of reached is followed by one of the readings.
func advance(reached []int, word string, readings []string) []int {
	var on []int
	for _, at := range reached {
		for _, read := range readings {
			if strings.HasPrefix(word[at:], read) && !slices.Contains(on, at+len(read)) {
				on = append(on, at+len(read))
			}
		}
	}
	return on
}

// readings returns the keys of the letters that r may be taken for: its own, and those of its other case.
func readings(r rune) []string {
	var read []string
	for _, form := range []rune{r, unicode.ToLower(r), unicode.ToUpper(r)} {
		letters := strings.Map(bare, Skeleton(string(unboxed(form))))
		if key := Skeleton(letters); key != "" && !slices.Contains(read, key) {
			read = append(read, key)
		}
	}
	return read
}

// unboxed takes the letter out of its box, circle or flag. Unicode has no compatibility form for these, as it has for ⓐ.
func unboxed(r rune) rune {
	for _, first := range []rune{0x1f130, 0x1f150, 0x1f170, 0x1f1e6} {
		if first <= r && r < first+26 {
			return 'a' + r - first
		}
	}
	return r
}

// smallCapitals aren't look-alikes in UTS 39, and read as well as capitals do.
var smallCapitals = []rune("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡxʏᴢ")

// bare drops combining marks and makes capitals of small capitals.
func bare(r rune) rune {
	if unicode.Is(unicode.M, r) {
		return -1
	}
	if i := slices.Index(smallCapitals, r); i >= 0 {
		return 'a' + rune(i)
	}
	return r
}
