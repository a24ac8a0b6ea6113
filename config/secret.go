package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"countersign/inputfile"
)

// maxSecret is the most that a secret's file may hold, in bytes. Keys and tokens are far shorter; a device or a log isn't.
const maxSecret = 64 << 10

// Secret is where a secret is: "env:NAME", "file:/absolute/path", or, unwisely, the secret itself. It is read when it is
// used, by Resolve, and by nothing else: every way of printing or encoding a Secret shows where it is and not what it is.
// The zero value is no secret.
type Secret struct {
	// A pointer to a pointer, because fmt prints another package's unexported field without its methods, and follows one
	// pointer to a struct, for a verb that doesn't fit even below the top, but never two.
	at **location
}

type location struct {
	scheme scheme
	name   string // of the variable or the file, or the secret itself
}

type scheme string

const (
	fromEnv  scheme = "env:"
	fromFile scheme = "file:"
	literal  scheme = ""
)

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseSecret takes a Secret as the configuration writes it. Its errors don't repeat what may be a secret.
func ParseSecret(s string) (Secret, error) {
	if s == "" {
		return Secret{}, nil
	}
	at := location{scheme: literal, name: s}
	for _, known := range []scheme{fromEnv, fromFile} {
		if len(s) >= len(known) && strings.EqualFold(s[:len(known)], string(known)) {
			at = location{scheme: known, name: s[len(known):]}
		}
	}
	switch {
	case !strings.HasPrefix(s, string(at.scheme)):
		return Secret{}, fmt.Errorf("must begin with %q in lower case", at.scheme)
	case at.scheme == fromEnv && !variable.MatchString(at.name):
		return Secret{}, errors.New(`must name an environment variable after "env:"`)
	case at.scheme == fromFile && !filepath.IsAbs(at.name):
		return Secret{}, errors.New(`must name an absolute path after "file:"`)
	}
	where := &at
	return Secret{at: &where}, nil
}

// location is where the secret is; it isn't called on the zero Secret.
func (s Secret) location() *location { return *s.at }

// UnmarshalText is ParseSecret.
func (s *Secret) UnmarshalText(text []byte) error {
	parsed, err := ParseSecret(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// IsZero tells whether no secret is configured.
func (s Secret) IsZero() bool { return s.at == nil }

// IsLiteral tells whether the configuration holds the secret itself.
func (s Secret) IsLiteral() bool { return s.at != nil && s.location().scheme == literal }

// Resolve reads the secret. A file must be a regular one of at most 64 KiB; one line end after the secret is taken off.
// A variable that isn't set and a secret that is empty are errors. The zero Secret resolves to "".
func (s Secret) Resolve() (string, error) {
	if s.at == nil {
		return "", nil
	}
	switch at := s.location(); at.scheme {
	case fromEnv:
		return at.fromEnvironment()
	case fromFile:
		return at.fromFile()
	default:
		return at.name, nil
	}
}

func (l *location) fromEnvironment() (string, error) {
	value := os.Getenv(l.name)
	if value == "" {
		return "", fmt.Errorf("secret env:%s: the environment variable is not set, or empty", l.name)
	}
	return value, nil
}

func (l *location) fromFile() (string, error) {
	data, _, err := inputfile.Read(l.name, maxSecret)
	if err != nil {
		return "", fmt.Errorf("secret file:%s: %w", l.name, withoutPath(err))
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("secret file:%s: the file is empty", l.name)
	}
	return value, nil
}

// withoutPath takes the path off an error of package os, for a message that names it already.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// String shows where the secret is.
func (s Secret) String() string {
	switch {
	case s.IsZero():
		return ""
	case s.IsLiteral():
		return "(secret)"
	}
	return string(s.location().scheme) + s.location().name
}

// Format is String for every verb, those that would print the fields included.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String: JSON and TOML encoders show no more than a log does.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
