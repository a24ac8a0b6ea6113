package transports

import (
	"context"
	"time"
)

// A Message is one approved text with its destination: what the ledger's
// snapshot binds. Strings are UTF-8.
type Message struct {
	ObligationID int64
	DecisionID   int64 // 0 before the claim

	Platform string
	Channel  string // the destination, in the transport's own syntax
	Thread   string // "" is none
	Subject  string // "" is none
	Text     string // lines end in LF

	// Key names this delivery: stable for one claim, lower-case hex, safe to
	// publish. It is "" before the claim, for Validate and Prepare.
	Key string
}

// SameContent tells if m and other are one approved message. DecisionID and Key
// are left out: they are known only after the claim.
func (m Message) SameContent(other Message) bool {
	m.DecisionID, other.DecisionID = 0, 0
	m.Key, other.Key = "", ""
	return m == other
}

// A Transport reaches one provider. It is safe for concurrent use; its sessions
// are not.
type Transport interface {
	// Validate refuses a message that could not be sent exactly as it stands:
	// it is called at filing, does no I/O, and returns a *ValidationError. A
	// text is never split, trimmed or reformatted to fit.
	Validate(Message) error

	// Connect opens and authenticates a session, which serves any number of
	// messages one after another. Its errors are *PrepareError: nothing was
	// claimed. ctx bounds only the connecting.
	Connect(ctx context.Context) (Session, error)
}

// A Resolver is a Transport whose channels have names besides their ids. Resolve
// returns the id of a name, or the channel as it is; it is asked once, at
// filing, so that the id is what is approved. Its errors are *ValidationError
// (there is no such channel) or *PrepareError.
type Resolver interface {
	Resolve(ctx context.Context, channel string) (string, error)
}

// A Pacer is a Transport whose provider limits how often it may be called. Pace
// returns the limits that a Send of m counts against.
type Pacer interface {
	Pace(m Message) []Pace
}

// A Pace is one limit: a call each interval, in a scope that is unique within
// the platform ("channel C024BE91L").
type Pace struct {
	Scope string
	Every time.Duration
}

// A Session carries messages one at a time: Prepare, then Send or Reset. It
// belongs to one goroutine.
type Session interface {
	// Prepare asks the provider, before the claim, for everything it can refuse
	// without the counterparty seeing anything. It gives up a message prepared
	// earlier. Its errors are *PrepareError; after one nothing is prepared, and
	// the session serves the next message, or fails at once in its next Prepare
	// if it is finished.
	Prepare(ctx context.Context, m Message) error

	// Send hands the prepared message over, at most once. It is called after
	// dispatch was recorded, with the payload that was recorded: m must have the
	// prepared content, a DecisionID and a Key, else it is refused and nothing is
	// handed over. The same holds for a ctx that is done, or past its deadline,
	// before the first octet of the content went out.
	//
	// A nil error is a confirmation with a coordinate. Otherwise the error is a
	// *RefusedError or *AmbiguousError; see [Classify]. Whatever it returns, the
	// preparation is used up.
	Send(ctx context.Context, m Message) (Receipt, error)

	// Reset gives up a prepared message whose Send won't follow. After nil the
	// session is ready for the next Prepare; after an error it is to be closed.
	// With nothing prepared it does nothing.
	Reset(ctx context.Context) error

	// Close ends the session within a short time of its own. Its error never
	// changes the outcome of an earlier Send.
	Close() error
}

// A Receipt is the provider's yes.
type Receipt struct {
	// Coordinate is where the message can be found at the provider or receiver.
	// It is never empty, and one line.
	Coordinate string
	// Altered tells that the provider's echo differs from what was approved, in
	// its text, its destination or its thread; Detail says how.
	Altered bool
	// Detail is what else the provider said, for people; it may be empty.
	Detail string
}
