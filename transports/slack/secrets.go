package slack

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"countersign/transports"
)

const withheld = "the words are withheld, they repeat a secret"

// secrets are the forms, in lower case, in which the token might come back in an error
// or in the server's words.
type secrets []string

func newSecrets(token string) secrets {
	var s secrets
	for _, form := range []string{
		token, url.QueryEscape(token), url.PathEscape(token), hex.EncodeToString([]byte(token)),
		base64.RawStdEncoding.EncodeToString([]byte(token)), base64.RawURLEncoding.EncodeToString([]byte(token)),
	} {
		s = append(s, strings.ToLower(form))
	}
	return s
}

// in tells if words repeat the token.
func (s secrets) in(words string) bool {
	words = strings.ToLower(words)
	for _, form := range s {
		if form != "" && strings.Contains(words, form) {
			return true
		}
	}
	return false
}

// clean makes foreign words fit to be kept, in one line; words with the token in them
// are withheld whole, for what stands around it may be another form of it.
func (s secrets) clean(words string) string {
	if s.in(words) {
		return withheld
	}
	return transports.Words(strings.Join(strings.Fields(words), " "))
}

// scrub keeps of an error its words, and whether a context ended. What it wraps is not
// kept: errors of net/http repeat what the server said, in their fields too.
func (s secrets) scrub(err error) error {
	words := s.clean(err.Error())
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		switch {
		case words == end.Error():
			return end
		case errors.Is(err, end):
			return fmt.Errorf("%w: %s", end, words)
		}
	}
	return errors.New(words)
}
