package plaintext

import (
	"strings"
	"unicode"

	"github.com/mtibben/confusables"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Skeleton is a key for names: two names with the same skeleton look alike. It is the skeleton of UTS 39 section 4,
// without case, white space and hidden characters, and with i, l, 1 and I as one letter, because a capital I is an l to
// the eye and an i to the alphabet. It is no name: only compare it.
//
// Outside of the Latin script a lower-case letter often resembles other letters than its capital does (Ν is N, but ν is
// v), so names there may differ only in case and still have two skeletons. Compare Folded too, or use LooksAlike.
func Skeleton(name string) string {
	key := dropUnseen(name)
	for range maxRounds {
		next := strings.ReplaceAll(norm.NFD.String(Folded(confusables.Skeleton(key))), "i", "l")
		if next == key {
			break
		}
		key = next
	}
	return key
}

// maxRounds is more than any character needs: folding can lay open a look-alike (M, m, rn), and a look-alike a capital.
const maxRounds = 6

// Folded is a key for names: two names with the same key differ at most in case, white space, hidden characters and
// compatibility forms, such as full-width letters.
func Folded(name string) string {
	folded := foldCase(norm.NFKC.String(dropUnseen(name)))
	// Folding can leave a letter and its mark apart that compose, and compatibility forms can bring spaces.
	return dropUnseen(norm.NFKC.String(folded))
}

// foldCase folds by way of the capitals: cases.Fold by itself swaps the two cases of Cherokee instead of joining them.
func foldCase(s string) string {
	return strings.ToLower(strings.ToUpper(cases.Fold().String(s)))
}

// LooksAlike tells whether a person could take one name for the other: same skeleton, or different only in case or spaces.
func LooksAlike(a, b string) bool {
	return Skeleton(a) == Skeleton(b) || Folded(a) == Folded(b)
}

// dropUnseen removes what takes no part in a name: white space and what is hidden, joiners in any script included.
func dropUnseen(s string) string {
	return strings.Map(func(r rune) rune {
		if isUnseen(r) {
			return -1
		}
		return r
	}, s)
}

func isUnseen(r rune) bool {
	return unicode.IsSpace(r) || isBlank(r) || isControl(r) || invisible(r) != plain
}
