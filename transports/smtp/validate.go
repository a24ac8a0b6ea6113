package smtp

import (
	"math"
	"strings"

	"countersign/transports"
)

// Validate refuses what could not be sent exactly to any server; what depends on
// the server's extensions is refused by Prepare.
func (t *Transport) Validate(m transports.Message) error {
	_, err := t.compose(widest(m))
	return err
}

// widest stands in for m before the claim, when its Message-ID isn't known: the
// letter of the real one has no more octets.
func widest(m transports.Message) transports.Message {
	m.DecisionID = math.MaxInt64
	m.Key = strings.Repeat("0", transports.MaxKey)
	return m
}

// compose checks m and makes its letter; all its errors are *ValidationError.
func (t *Transport) compose(m transports.Message) (letter, error) {
	if err := transports.CheckMessage(m); err != nil {
		return letter{}, err
	}
	to, err := parseRecipients(m.Channel)
	if err != nil {
		return letter{}, err
	}
	if err := checkThread(m.Thread); err != nil {
		return letter{}, err
	}
	l, err := compose(m, t.from, to, t.config.Now())
	if err != nil {
		return letter{}, &transports.ValidationError{Field: "message", Reason: "can't be sent exactly: " + err.Error()}
	}
	return l, nil
}

// checkThread takes a Message-ID as it stands in the mail that is answered, in
// its brackets. Ids in use break RFC 5322 section 3.6.4 in many ways, and are copied
// unread; so only what would end the field's syntax is refused.
func checkThread(thread string) error {
	if thread == "" {
		return nil
	}
	if n := len(thread); n > maxThread {
		return &transports.ValidationError{
			Field: "thread", Limit: maxThread, Size: n, Unit: "octets", Reason: "is too long",
		}
	}
	id, opened := strings.CutPrefix(thread, "<")
	id, closed := strings.CutSuffix(id, ">")
	left, right, ok := strings.Cut(id, "@")
	odd := strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' })
	if !opened || !closed || !ok || left == "" || right == "" || odd {
		return &transports.ValidationError{Field: "thread", Reason: "is not a Message-ID like <id@example.com>"}
	}
	return nil
}
