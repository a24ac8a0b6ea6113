package smtp

import (
	"net/mail"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"countersign/transports"
)

// Limits of RFC 5321 section 4.5.3.1: a local part, a path with its brackets,
// and the recipients every server must take.
const (
	maxLocalPart  = 64
	maxAddress    = 254
	maxRecipients = 100
)

// An address goes on the wire and into the header as local@domain. The domain is
// in A-labels, which every server understands.
type address struct{ local, domain string }

func (a address) String() string { return a.local + "@" + a.domain }

// ascii tells if the address can be used without SMTPUTF8 (RFC 6531).
func (a address) ascii() bool { return isASCII(a.local) }

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// parseRecipients reads a channel: addresses with commas between them.
func parseRecipients(channel string) ([]address, error) {
	parts := strings.Split(channel, ",")
	if len(parts) > maxRecipients {
		return nil, &transports.ValidationError{
			Field: "channel", Limit: maxRecipients, Size: len(parts), Unit: "recipients", Reason: "has too many recipients",
		}
	}
	seen := make(map[address]bool)
	var list []address
	for _, part := range parts {
		a, err := parseAddress("channel", strings.Trim(part, " "))
		if err != nil {
			return nil, err
		}
		if seen[a] {
			return nil, &transports.ValidationError{Field: "channel", Reason: "names a recipient twice"}
		}
		seen[a] = true
		list = append(list, a)
	}
	return list, nil
}

// parseAddress reads a bare addr-spec. net/mail takes comments, names, brackets
// and quoted local parts as well and drops what it doesn't need, so what it
// understood has to be what was written.
func parseAddress(field, s string) (address, error) {
	fail := func(reason string) (address, error) {
		return address{}, &transports.ValidationError{Field: field, Reason: reason}
	}
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || parsed.Name != "" {
		return fail("is not a plain address like name@example.com, without name, brackets, comment or quotes")
	}
	at := strings.LastIndexByte(s, '@')
	local, domain := s[:at], s[at+1:]
	if strings.ContainsFunc(local, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fail("has a character in its local part that can't be seen")
	}
	ascii, ok := asciiDomain(domain)
	if !ok {
		return fail("has a domain that is not one, or is not in its normal form")
	}
	return checkLengths(field, address{local, ascii})
}

func checkLengths(field string, a address) (address, error) {
	if n := len(a.local); n > maxLocalPart {
		return a, &transports.ValidationError{
			Field: field, Limit: maxLocalPart, Size: n, Unit: "octets", Reason: "has too long a local part",
		}
	}
	if n := len(a.String()); n > maxAddress {
		return a, &transports.ValidationError{
			Field: field, Limit: maxAddress, Size: n, Unit: "octets", Reason: "has too long an address",
		}
	}
	return a, nil
}

// asciiDomain gives the A-label form (RFC 5891). The look-up profile maps full-width
// letters and the like to what they look like; a domain that is changed by more
// than case would not be the one that was approved.
func asciiDomain(domain string) (string, bool) {
	ascii, err := idna.Lookup.ToASCII(domain)
	if err != nil {
		return "", false
	}
	unicodeForm, err := idna.Lookup.ToUnicode(ascii)
	if err != nil {
		return "", false
	}
	lower := strings.ToLower(domain)
	return ascii, lower == ascii || lower == unicodeForm
}
