package smtp

import (
	"errors"

	"countersign/transports/secret"
)

const withheld = secret.Withheld

// secrets are those of a session, which a server might repeat.
type secrets struct{ secret.Forms }

func newSecrets(values ...string) secrets { return secrets{secret.Of(values...)} }

// clean makes a server's words fit to be kept.
func (s secrets) clean(words string) string { return s.Clean(words) }

// scrub keeps err, unless its text repeats a secret or is too long to keep.
func (s secrets) scrub(err error) error {
	text := err.Error()
	if words := s.clean(text); words != text {
		return errors.New(words)
	}
	return err
}
