package smtp

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"strconv"
	"strings"

	"countersign/transports"
)

const withheld = "the server's words are withheld, they repeat a secret"

// secrets are the forms, in lower case, in which a secret of this session might
// come back in a server's words.
type secrets []string

func newSecrets(values ...string) secrets {
	var s secrets
	for _, v := range values {
		if v == "" {
			continue
		}
		forms := []string{v, strings.Trim(strconv.Quote(v), `"`), url.QueryEscape(v), url.PathEscape(v), hex.EncodeToString([]byte(v))}
		for _, f := range append(forms, base64Forms(v)...) {
			s = append(s, strings.ToLower(f))
		}
	}
	return s
}

// base64Forms are what v looks like in base64, wherever in the encoded octets it
// stands: AUTH PLAIN and XOAUTH2 put it behind other things.
func base64Forms(v string) []string {
	var forms []string
	for before := range 3 {
		octets := append(make([]byte, before), v...)
		first := (before*8 + 5) / 6       // the first digit that holds only v
		last := (before + len(v)) * 8 / 6 // behind the last such digit
		if last-first < 4 {               // too short to mean anything
			continue
		}
		forms = append(forms,
			base64.RawStdEncoding.EncodeToString(octets)[first:last],
			base64.RawURLEncoding.EncodeToString(octets)[first:last])
	}
	return forms
}

// in tells if words repeat a secret.
func (s secrets) in(words string) bool {
	words = strings.ToLower(words)
	for _, form := range s {
		if strings.Contains(words, form) {
			return true
		}
	}
	return false
}

// clean makes a server's words fit to be kept; words with a secret in them are
// withheld whole, for what stands around it may be another form of it.
func (s secrets) clean(words string) string {
	if s.in(words) {
		return withheld
	}
	return transports.Words(words)
}

// scrub keeps err, unless its text repeats a secret or is too long to keep.
func (s secrets) scrub(err error) error {
	text := err.Error()
	if words := s.clean(text); words != text {
		return errors.New(words)
	}
	return err
}
