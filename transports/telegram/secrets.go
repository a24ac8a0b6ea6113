package telegram

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"countersign/transports"
)

const withheld = "the words are withheld, they repeat a secret"

// tellingPart is how much of the token's second part has to be there for it to be
// one: real ones have 35 characters, and a shorter word would be found everywhere.
const tellingPart = 8

// secrets are the forms, in lower case, in which the token might come back in an
// error or in the server's words.
type secrets []string

func newSecrets(token string) secrets {
	if token == "" {
		return nil
	}
	s := secrets{strings.ToLower(token), hex.EncodeToString([]byte(token))}
	if _, key, _ := strings.Cut(token, ":"); len(key) >= tellingPart {
		s = append(s, strings.ToLower(key), hex.EncodeToString([]byte(key)))
		s = append(s, base64Forms(key)...)
	}
	return append(s, base64Forms(token)...)
}

// base64Forms are what v looks like in base64, wherever in the encoded octets it
// stands.
func base64Forms(v string) []string {
	var forms []string
	for before := range 3 {
		octets := append(make([]byte, before), v...)
		first := (before*8 + 5) / 6       // the first digit that holds only v
		last := (before + len(v)) * 8 / 6 // behind the last such digit
		if last-first < tellingPart {
			continue
		}
		for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, strings.ToLower(e.EncodeToString(octets)[first:last]))
		}
	}
	return forms
}

// in tells if words repeat the token, percent-encoded any number of times or not.
func (s secrets) in(words string) bool {
	for {
		lower := strings.ToLower(words)
		for _, form := range s {
			if strings.Contains(lower, form) {
				return true
			}
		}
		decoded := percentDecoded(words)
		if decoded == words {
			return false
		}
		words = decoded
	}
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

// clean makes foreign words fit to be kept; words with the token in them are
// withheld whole, for what stands around it may be another form of it.
func (s secrets) clean(words string) string {
	if s.in(words) {
		return withheld
	}
	return transports.Words(words)
}

// scrub gives an error without the URL that net/http puts around it. It keeps the
// rest, unless any of what it wraps repeats the token or is too long to keep.
func (s secrets) scrub(err error) error {
	var u *url.Error
	for errors.As(err, &u) && u.Err != nil {
		err = u.Err
	}
	if s.inAny(err) {
		return errors.New(withheld)
	}
	if words := transports.Words(err.Error()); words != err.Error() {
		return errors.New(words)
	}
	return err
}

// inAny looks at an error and all it wraps, in their texts and in their fields.
func (s secrets) inAny(err error) bool {
	if err == nil {
		return false
	}
	if s.in(err.Error()) || s.in(fmt.Sprintf("%+v %#v", err, err)) {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return s.inAny(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, wrapped := range e.Unwrap() {
			if s.inAny(wrapped) {
				return true
			}
		}
	}
	return false
}
