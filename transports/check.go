package transports

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxWords is the most octets of a provider's words that are kept.
	MaxWords = 1000
	// MaxKey is the length of a SHA-256 in hex.
	MaxKey = 64

	// StageHandOver is the stage of a Send that was refused before the
	// transport spoke to anybody.
	StageHandOver = "hand-over"
)

// Reasons of a refusal at StageHandOver.
var (
	ErrNotPrepared = errors.New("no message is prepared; nothing was handed over")
	ErrDiffers     = errors.New("the message is not the one that was prepared; nothing was handed over")
	ErrNoClaim     = errors.New("the message has no decision or key of a claim; nothing was handed over")
	ErrTooLate     = errors.New("the time to send was over; nothing was handed over")
)

// CheckMessage refuses what no transport carries exactly: invalid UTF-8, a NUL,
// control characters in what is one line, an empty text or channel, a key that
// isn't one. Its error is a *ValidationError.
func CheckMessage(m Message) error {
	lines := []struct{ field, value string }{
		{"platform", m.Platform}, {"channel", m.Channel}, {"thread", m.Thread}, {"subject", m.Subject},
	}
	for _, l := range lines {
		if !utf8.ValidString(l.value) {
			return &ValidationError{Field: l.field, Reason: "is not valid UTF-8"}
		}
		if strings.ContainsFunc(l.value, unicode.IsControl) {
			return &ValidationError{Field: l.field, Reason: "has a control character"}
		}
	}
	if m.Channel == "" {
		return &ValidationError{Field: "channel", Reason: "is empty"}
	}
	if err := checkKey(m.Key); err != nil {
		return err
	}
	return checkText(m.Text)
}

func checkText(text string) error {
	switch {
	case text == "":
		return &ValidationError{Field: "text", Reason: "is empty"}
	case !utf8.ValidString(text):
		return &ValidationError{Field: "text", Reason: "is not valid UTF-8"}
	case strings.ContainsRune(text, 0):
		return &ValidationError{Field: "text", Reason: "has a NUL character"}
	}
	return nil
}

func checkKey(key string) error {
	if len(key) > MaxKey {
		return &ValidationError{Field: "key", Limit: MaxKey, Size: len(key), Unit: "characters", Reason: "is too long"}
	}
	if strings.Trim(key, "0123456789abcdef") != "" {
		return &ValidationError{Field: "key", Reason: "is not lower-case hex"}
	}
	return nil
}

// CheckSend holds what every Send has to ask before it speaks to anybody: m is
// what was prepared (nil: nothing), it belongs to a claim, and there is still
// time. Its error is a *RefusedError.
func CheckSend(ctx context.Context, prepared *Message, m Message) error {
	var err error
	switch {
	case prepared == nil:
		err = ErrNotPrepared
	case !m.SameContent(*prepared):
		err = ErrDiffers
	case m.DecisionID == 0 || m.Key == "" || checkKey(m.Key) != nil:
		err = ErrNoClaim
	default:
		return CheckTime(ctx)
	}
	return &RefusedError{Stage: StageHandOver, Err: err}
}

// CheckTime refuses when ctx is done or past its deadline. It looks at the clock
// as well: a process that was stopped and goes on may run its next statement
// before the timer that ends ctx. Its error is a *RefusedError.
func CheckTime(ctx context.Context) error {
	err := ctx.Err()
	if deadline, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(deadline) {
		err = context.DeadlineExceeded
	}
	if err == nil {
		return nil
	}
	return &RefusedError{Stage: StageHandOver, Err: fmt.Errorf("%w: %w", ErrTooLate, err)}
}

// Words makes a provider's words fit to be kept: valid UTF-8, at most MaxWords
// octets. They stay untrusted.
func Words(s string) string {
	const mark = "…"
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if len(s) <= MaxWords {
		return s
	}
	cut := MaxWords - len(mark)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
