package telegram

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"countersign/transports"
	"countersign/transports/secret"
)

const withheld = secret.Withheld

// tellingPart is how much of the token's second part has to be there for it to be
// one: real ones have 35 characters, and a shorter word would be found everywhere.
const tellingPart = 8

// secrets are those of a session, which a server or an error might repeat.
type secrets struct{ secret.Forms }

func newSecrets(token string) secrets {
	if _, key, _ := strings.Cut(token, ":"); len(key) >= tellingPart {
		return secrets{secret.Of(token, key)}
	}
	return secrets{secret.Of(token)}
}

// clean makes foreign words fit to be kept.
func (s secrets) clean(words string) string { return s.Clean(words) }

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
	if s.In(err.Error()) || s.In(fmt.Sprintf("%+v %#v", err, err)) {
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
