// Package secret answers one question: do these words repeat a secret?
//
// Servers repeat what they were sent, and errors repeat addresses that tokens are part
// of. Words of others are looked at before they are kept, in a log, an error, the ledger
// or a notice.
package secret

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"countersign/transports"
)

// Withheld stands for words that repeat a secret. They are withheld whole, for what
// stands around the secret may be another form of it.
const Withheld = "the words are withheld, they repeat a secret"

// shortest is how many base64 digits have to be there to mean anything: fewer are found
// in every other word.
const shortest = 4

// piece is how long a piece of a long secret is that is looked for by itself. A server
// that cuts what it repeats then shows less than two of them.
const piece = 12

// Forms are the forms, in lower case, in which secrets might come back.
type Forms []string

// Of returns the forms of secrets; "" is none.
func Of(values ...string) Forms {
	var f Forms
	for _, v := range values {
		if v == "" {
			continue
		}
		f = append(f, strings.ToLower(v), strings.ToLower(strings.Trim(strconv.Quote(v), `"`)), hex.EncodeToString([]byte(v)),
			strings.ToLower(url.QueryEscape(v)), strings.ToLower(url.PathEscape(v)))
		f = append(f, base64Forms(v)...)
	}
	for _, whole := range f {
		f = append(f, pieces(whole)...)
	}
	slices.Sort(f)
	return slices.Compact(f)
}

// pieces cuts a form that has two of them at least.
func pieces(form string) []string {
	if len(form) < 2*piece {
		return nil
	}
	var all []string
	for ; len(form) >= piece; form = form[piece:] {
		all = append(all, form[:piece])
	}
	return all
}

// base64Forms are what v looks like in base64, wherever in the encoded octets it
// stands: AUTH PLAIN and XOAUTH2 put it behind other things.
func base64Forms(v string) []string {
	var forms []string
	for before := range 3 {
		octets := append(make([]byte, before), v...)
		first := (before*8 + 5) / 6       // the first digit that holds only v
		last := (before + len(v)) * 8 / 6 // behind the last such digit
		if last-first < shortest {
			continue
		}
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, strings.ToLower(e.EncodeToString(octets)[first:last]))
		}
	}
	return forms
}

// In tells if words repeat a secret, percent-encoded any number of times or not.
func (f Forms) In(words string) bool {
	for {
		if f.within(strings.ToLower(words)) {
			return true
		}
		decoded := percentDecoded(words)
		if decoded == words {
			return false
		}
		words = decoded
	}
}

// within looks for the forms as they stand, and for long ones where they were folded: a
// reply of several lines may have a secret across them.
func (f Forms) within(lower string) bool {
	unfolded := strings.Join(strings.Fields(lower), "")
	for _, form := range f {
		if strings.Contains(lower, form) {
			return true
		}
		if bare := strings.Join(strings.Fields(form), ""); len(bare) >= piece && strings.Contains(unfolded, bare) {
			return true
		}
	}
	return false
}

// percentDecoded decodes what can be decoded, and leaves the rest. It gets shorter
// with each escape, so that repeating it ends.
func percentDecoded(words string) string {
	var b strings.Builder
	for i := 0; i < len(words); i++ {
		if words[i] == '%' && i+3 <= len(words) {
			if octet, err := url.PathUnescape(words[i : i+3]); err == nil {
				b.WriteString(octet)
				i += 2
				continue
			}
		}
		b.WriteByte(words[i])
	}
	return b.String()
}

// Clean makes foreign words fit to be kept.
func (f Forms) Clean(words string) string {
	if f.In(words) {
		return Withheld
	}
	return transports.Words(words)
}
