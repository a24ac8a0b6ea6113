package ledger

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/plaintext"
)

// Filing is what an agent hands in. Empty Thread, User, Subject, Summary, Context and IdempotencyKey mean none.
type Filing struct {
	Counterparty, Platform, Channel, Thread, User string
	Subject, Text                                 string
	Priority                                      Priority // DefaultPriority when empty
	Summary, Context                              string
	Signal                                        int64 // obligation id of the inbound item it answers; 0 is none
	AutoSendAfter                                 int64 // Unix seconds; 0 is no deadline
	Agent, IdempotencyKey                         string
	ForceDespiteSignedContract                    bool
}

// Limits bound the fields of a filing, in characters (Unicode code points).
type Limits struct {
	Text, Subject, Summary, Context, Counterparty, Channel, Thread, User int
}

// DefaultLimits are the contract's.
func DefaultLimits() Limits {
	return Limits{Text: 40_000, Subject: 300, Summary: 200, Context: 4_000, Counterparty: 120, Channel: 500, Thread: 998, User: 120}
}

// keyLimit bounds agent names and idempotency keys, which the contract does not limit.
const keyLimit = 200

// Markers that the system stamps on a draft. They begin a bracketed stamp such as "[DUPLICATE OF #7]".
const (
	MarkBaselineOverride    = "BASELINE_OVERRIDE_SIGNED_CONTRACT"
	MarkBaselineUnavailable = "BASELINE_CHECK_UNAVAILABLE"
	MarkBaselineFacts       = "BASELINE FACTS"
	MarkHiddenText          = "HIDDEN TEXT"
	MarkNewDestination      = "NEW DESTINATION"
	MarkLooksLike           = "LOOKS LIKE"
	MarkDuplicate           = "DUPLICATE OF"
	MarkUnresolved          = "UNRESOLVED_DELIVERY"
	MarkRollback            = "ROLLBACK"
	MarkUnreadable          = "UNREADABLE MARKERS" // what is stored as a draft's markers is none; nobody can approve it
)

var allMarks = []string{MarkBaselineOverride, MarkBaselineUnavailable, MarkBaselineFacts, MarkHiddenText, MarkNewDestination,
	MarkLooksLike, MarkDuplicate, MarkUnresolved, MarkRollback, MarkUnreadable}

// Draft is a filing that went through Clean: what is stored, hashed and shown from here on. The zero Draft is refused by File.
type Draft struct {
	filing   Filing
	sha256   string
	envelope string
	request  string // hash of the envelope as it was handed in, which an idempotency key binds
	cleaned  bool
}

// Filing returns the cleaned fields.
func (d Draft) Filing() Filing { return d.filing }

// TextSHA256 is the hash of the stored text.
func (d Draft) TextSHA256() string { return d.sha256 }

// EnvelopeSHA256 is the hash of the envelope.
func (d Draft) EnvelopeSHA256() string { return d.envelope }

// At returns the draft for a destination that its channel's name was resolved to. It is still the same request.
func (d Draft) At(channel string) (Draft, error) {
	moved := d.filing
	moved.Channel = channel
	out, err := seal(moved, d.cleaned)
	out.request = d.request
	return out, err
}

// Clean is the first gate: it refuses what is not UTF-8, empty or oversized, removes control characters, and neutralises imitated
// markers. Destinations are never repaired: one that would change by cleaning is refused. Errors are *InputError.
func Clean(in Filing, limits Limits) (Draft, error) {
	c := cleaner{}
	out := in
	out.Text = c.text(in.Text, limits.Text)
	out.Subject = c.line("subject", in.Subject, limits.Subject)
	out.Counterparty = c.required("counterparty", c.label("counterparty", in.Counterparty, limits.Counterparty))
	out.User = c.line("user", in.User, limits.User)
	out.Agent = c.required("agent", c.label("agent", in.Agent, keyLimit))
	out.IdempotencyKey = c.exact("idempotency-key", in.IdempotencyKey, keyLimit)
	out.Summary = c.label("summary", in.Summary, limits.Summary)
	out.Context = c.context(in.Context, limits.Context)
	out.Platform = c.required("platform", c.exact("platform", in.Platform, limits.Channel))
	out.Channel = c.required("channel", c.exact("channel", in.Channel, limits.Channel))
	out.Thread = c.exact("thread", in.Thread, limits.Thread)
	out.Priority = c.priority(in.Priority)
	c.numbers(in)
	if c.err != nil {
		return Draft{}, c.err
	}
	return seal(out, c.changed)
}

func seal(f Filing, cleaned bool) (Draft, error) {
	d := Draft{filing: f, sha256: HashText(f.Text), cleaned: cleaned}
	var err error
	d.envelope, err = Envelope{f.Platform, f.Channel, f.Thread, f.Subject, d.sha256}.Hash()
	d.request = d.envelope
	return d, err
}

// cleaner collects whether anything changed, and keeps the first error.
type cleaner struct {
	changed bool
	err     error
}

func (c *cleaner) fail(err *InputError) {
	if c.err == nil {
		c.err = err
	}
}

func (c *cleaner) clean(field, in string, limit int, with func(string) (string, error)) string {
	out, err := with(in)
	var bad *plaintext.NotUTF8Error
	switch {
	case errors.As(err, &bad):
		c.fail(&InputError{Field: field, Reason: fmt.Sprintf("is not valid UTF-8 at byte %d of %d; send UTF-8", bad.Offset, len(in))})
	case err != nil:
		c.fail(&InputError{Field: field, Reason: err.Error()})
	}
	if size := utf8.RuneCountInString(out); size > limit {
		c.fail(&InputError{Field: field, Limit: limit, Size: size, Unit: "characters", Reason: "is too long"})
	}
	c.changed = c.changed || out != in
	return out
}

func (c *cleaner) text(in string, limit int) string {
	out := c.clean("text", in, limit, plaintext.Text)
	if strings.TrimSpace(out) == "" {
		c.fail(&InputError{Field: "text", Reason: fmt.Sprintf("is empty after cleaning (%d bytes came in, the limit is %d characters, at least 1)", len(in), limit)})
	}
	return out
}

func (c *cleaner) line(field, in string, limit int) string {
	return c.clean(field, in, limit, plaintext.Line)
}

// label is a line that operators read as a fact of the system's, so that it must not imitate one of its markers.
func (c *cleaner) label(field, in string, limit int) string {
	out, changed := plaintext.Neutralise(c.line(field, in, limit), allMarks)
	c.changed = c.changed || changed
	return out
}

func (c *cleaner) context(in string, limit int) string {
	out, changed := plaintext.Neutralise(c.clean("context", in, limit, plaintext.Text), allMarks)
	c.changed = c.changed || changed
	return out
}

// exact refuses instead of repairing: an address that changes by cleaning is another address.
func (c *cleaner) exact(field, in string, limit int) string {
	out := c.line(field, in, limit)
	if out != in {
		c.fail(&InputError{Field: field, Reason: "has control characters or surplus white space; it is never repaired, correct it"})
	}
	return out
}

func (c *cleaner) required(field, value string) string {
	if strings.TrimSpace(value) == "" {
		c.fail(&InputError{Field: field, Reason: "is empty; it needs at least 1 character"})
	}
	return value
}

func (c *cleaner) priority(p Priority) Priority {
	if p == "" {
		return DefaultPriority
	}
	if !p.valid() {
		c.fail(&InputError{Field: "priority", Reason: fmt.Sprintf("is %q; it must be P0, P1, P2 or P3", string(p))})
	}
	return p
}

func (c *cleaner) numbers(in Filing) {
	if in.Signal < 0 {
		c.fail(&InputError{Field: "signal", Reason: fmt.Sprintf("is %d; it must be the id of an obligation", in.Signal)})
	}
	if in.AutoSendAfter < 0 {
		c.fail(&InputError{Field: "auto-send-after", Reason: fmt.Sprintf("is %d; it must be a time in Unix seconds", in.AutoSendAfter)})
	}
}
