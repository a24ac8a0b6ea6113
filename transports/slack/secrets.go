package slack

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"countersign/transports/secret"
)

// secrets are those of a session, which a server or an error might repeat.
type secrets struct{ secret.Forms }

func newSecrets(token string) secrets { return secrets{secret.Of(token)} }

// clean makes foreign words fit to be kept, in one line.
func (s secrets) clean(words string) string {
	if s.In(words) {
		return secret.Withheld
	}
	return s.Clean(strings.Join(strings.Fields(words), " "))
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
