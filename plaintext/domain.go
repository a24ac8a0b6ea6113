package plaintext

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mtibben/confusables"
)

// Which host names mix scripts so that they can be taken for another, such as one with a Cyrillic а in a Latin name.
// The measure is "highly restrictive" of UTS 39 section 5.2, taken for each part between dots, hyphens and underscores:
// prose glues scripts together with a hyphen ("ב-example.com") and forgets the space after a full stop, and neither is a
// disguise. Across parts only letters that all pass for ASCII are.

// host is a host-like word of a text that mixes scripts.
type host struct {
	start   int    // byte offset in the text
	text    string // as it stands there
	foreign []int  // byte offsets in the text of the letters that don't belong, and of all that is hidden in and around it
}

// hosts finds the host-like words of s that mix scripts.
func hosts(s string) []host {
	var found []host
	for i := 0; i < len(s); {
		end := i + wordLength(s[i:])
		if word := strings.TrimFunc(s[i:end], isEdge); mayMix(word) {
			start := i + strings.Index(s[i:end], word)
			if foreign := foreignIn(word, start); len(foreign) > 0 {
				found = append(found, host{start: start, text: word, foreign: append(foreign, hiddenIn(s[i:end], i)...)})
			}
		}
		_, size := utf8.DecodeRuneInString(s[end:])
		i = end + size
	}
	return found
}

// foreignOffsets holds the offsets of all that doesn't belong into the host names.
func foreignOffsets(hosts []host) map[int]bool {
	all := map[int]bool{}
	for _, h := range hosts {
		for _, offset := range h.foreign {
			all[offset] = true
		}
	}
	return all
}

// visible shows at most limit characters of the name, what is foreign in it as marks.
func (h host) visible(limit int) string {
	var b strings.Builder
	n := 0
	for i, r := range h.text {
		if n++; n > limit {
			b.WriteString("…")
			break
		}
		if slices.Contains(h.foreign, h.start+i) {
			b.WriteString(codePoint(r))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func wordLength(s string) int {
	end := strings.IndexFunc(s, func(r rune) bool { return !isHostRune(r) })
	if end < 0 {
		return len(s)
	}
	return end
}

// isHostRune takes hidden characters in: they would otherwise split the name and hide what it mixes.
func isHostRune(r rune) bool {
	return isJoint(r) || unicode.In(r, unicode.L, unicode.M, unicode.Nd) || invisible(r) != plain
}

// isDot follows IDNA (RFC 3490 section 3.1): all four separate labels.
func isDot(r rune) bool {
	return r == '.' || r == '\u3002' || r == '\uff0e' || r == '\uff61'
}

func isJoint(r rune) bool { return isDot(r) || r == '-' || r == '_' }

// isEdge is what no name begins or ends with: "раypal.com." with something hidden after its full stop is the same name.
func isEdge(r rune) bool { return isJoint(r) || invisible(r) != plain }

// mayMix is the cheap question first.
func mayMix(word string) bool {
	return strings.ContainsFunc(word, isDot) && !isASCII(word)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// letter is a letter of a host name that belongs to one script.
type letter struct {
	offset int
	script string
	ascii  bool // looks like ASCII, or is
}

// foreignIn returns the offsets of the letters of word that don't belong. The word begins at start.
func foreignIn(word string, start int) []int {
	parts := partsOf(word, start)
	latin := slices.ContainsFunc(parts, func(part []letter) bool { return uses(part, "Latin") })
	var foreign []int
	for _, part := range parts {
		switch {
		case !mayStandTogether(part):
			foreign = append(foreign, othersThan(homeScript(part), part)...)
		case latin && !uses(part, "Latin") && allLookASCII(part):
			foreign = append(foreign, othersThan("", part)...)
		}
	}
	return foreign
}

// hiddenIn returns the offsets of the hidden characters of word, joiners in any script included: in a name that deceives
// none of them is spelling.
func hiddenIn(word string, start int) []int {
	var hidden []int
	for i, r := range word {
		if invisible(r) != plain {
			hidden = append(hidden, start+i)
		}
	}
	return hidden
}

// partsOf splits word at its joints and keeps what has a script.
func partsOf(word string, start int) [][]letter {
	parts := make([][]letter, 1)
	for i, r := range word {
		if isJoint(r) {
			parts = append(parts, nil)
			continue
		}
		script := scriptOf(r)
		if script == "" {
			continue
		}
		last := len(parts) - 1
		parts[last] = append(parts[last], letter{
			offset: start + i,
			script: script,
			ascii:  isASCII(confusables.Skeleton(string(r))),
		})
	}
	return parts
}

func uses(part []letter, script string) bool {
	return slices.ContainsFunc(part, func(l letter) bool { return l.script == script })
}

func allLookASCII(part []letter) bool {
	return !slices.ContainsFunc(part, func(l letter) bool { return !l.ascii })
}

// eastAsian may be mixed with each other and with Latin (UTS 39 section 5.2: Japanese, Chinese and Korean write so).
var eastAsian = []string{"Latin", "Han", "Hiragana", "Katakana", "Bopomofo", "Hangul"}

func mayStandTogether(part []letter) bool {
	one := !slices.ContainsFunc(part, func(l letter) bool { return l.script != part[0].script })
	return one || !slices.ContainsFunc(part, func(l letter) bool { return !slices.Contains(eastAsian, l.script) })
}

// homeScript is the script that a reader takes the part for.
func homeScript(part []letter) string {
	if uses(part, "Latin") {
		return "Latin"
	}
	return part[0].script
}

func othersThan(script string, part []letter) []int {
	var offsets []int
	for _, l := range part {
		if l.script != script {
			offsets = append(offsets, l.offset)
		}
	}
	return offsets
}

// frequent scripts are asked first: unicode.Scripts has more than 160.
var frequent = []string{"Latin", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Hebrew", "Devanagari", "Thai"}

// scriptOf names the one script that r belongs to, or "" for digits, marks and whatever else scripts share.
func scriptOf(r rune) string {
	if invisible(r) != plain || unicode.In(r, unicode.Common, unicode.Inherited) {
		return ""
	}
	for _, name := range frequent {
		if unicode.Is(unicode.Scripts[name], r) {
			return name
		}
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return ""
}
