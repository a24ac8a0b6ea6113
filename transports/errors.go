package transports

import (
	"fmt"
	"time"
)

// A ValidationError says why a message can't be sent exactly as it stands.
type ValidationError struct {
	Field  string // "channel", "thread", "subject", "text", "platform", "key"
	Limit  int    // 0 where no limit is concerned
	Size   int    // what the field has, in Unit
	Unit   string // "octets", "characters", "recipients", …
	Reason string // one sentence part: "is empty", "has a control character"
}

func (e *ValidationError) Error() string {
	if e.Limit == 0 {
		return e.Field + " " + e.Reason
	}
	return fmt.Sprintf("%s %s: %d %s, the limit is %d", e.Field, e.Reason, e.Size, e.Unit, e.Limit)
}

// A PrepareError says that a message could not be prepared, or a session not
// opened. No approval has been used up.
type PrepareError struct {
	Stage string // the step of the protocol: "connect", "tls", "auth", "rcpt", …
	Code  string // the provider's code, "" without one
	// Permanent tells that the provider, or the transport itself, will go on
	// saying no until somebody changes something.
	Permanent  bool
	RetryAfter time.Duration // as the provider asked; 0 is unsaid
	Err        error
}

func (e *PrepareError) Error() string { return sentence("not prepared", e.Stage, e.Code, e.Err) }
func (e *PrepareError) Unwrap() error { return e.Err }

// A RefusedError ends a Send of which nothing arrived: the provider said no, or
// provably nothing was handed over. Code is "" in the second case.
type RefusedError struct {
	Stage string
	Code  string
	// RetryAfter is what the provider asked for with a documented rate-limit
	// refusal, as its last word; 0 with every other.
	RetryAfter time.Duration
	Err        error
}

func (e *RefusedError) Error() string { return sentence("refused", e.Stage, e.Code, e.Err) }
func (e *RefusedError) Unwrap() error { return e.Err }

// An AmbiguousError ends a Send of which nobody can say whether it arrived.
type AmbiguousError struct {
	Stage string
	Code  string
	Err   error
}

func (e *AmbiguousError) Error() string {
	return sentence("unknown whether sent", e.Stage, e.Code, e.Err)
}
func (e *AmbiguousError) Unwrap() error { return e.Err }

func sentence(what, stage, code string, err error) string {
	if code != "" {
		code = " (" + code + ")"
	}
	if err == nil {
		return what + " at " + stage + code
	}
	return what + " at " + stage + code + ": " + err.Error()
}
