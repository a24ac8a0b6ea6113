package sweep

import "sync"

// Item is what a pass did with one message.
type Item struct {
	ObligationID int64  `json:"obligation_id"`
	DecisionID   int64  `json:"decision_id"`
	Platform     string `json:"platform"`
	Channel      string `json:"channel"`
	Coordinate   string `json:"coordinate,omitempty"` // the provider's, where there is one
	Altered      bool   `json:"altered,omitempty"`    // the provider's echo differs from the approved text
	Error        string `json:"error,omitempty"`      // why, for people; it may hold a provider's words, and no secret
}

// Kind is one of the lists of a report.
type Kind string

// The lists of a report.
const (
	Delivered   Kind = "delivered"    // confirmed, and recorded
	Refused     Kind = "refused"      // the provider said no, or provably nothing was handed over; the approval is used up
	Ambiguous   Kind = "ambiguous"    // nobody knows whether it arrived, or the ledger could not take its receipt
	NotPrepared Kind = "not_prepared" // nothing was claimed; a later pass tries again
	Skipped     Kind = "skipped"      // left alone: another worker has it, or its approval is not good any more
	Planned     Kind = "planned"      // a dry run would have tried it
)

// Report is what a deliver pass did. Its lists are never nil, but Planned, which only a dry run has. A destination that is left
// alone as a whole is named by the first message that waits there.
type Report struct {
	Delivered   []Item `json:"delivered"`
	Refused     []Item `json:"refused"`
	Ambiguous   []Item `json:"ambiguous"`
	NotPrepared []Item `json:"not_prepared"`
	Skipped     []Item `json:"skipped"`
	Planned     []Item `json:"planned,omitempty"`

	// Interrupted tells that the pass ended early, since its context was cancelled or its time was up.
	Interrupted bool `json:"interrupted,omitempty"`
}

func newReport() Report {
	return Report{Delivered: []Item{}, Refused: []Item{}, Ambiguous: []Item{}, NotPrepared: []Item{}, Skipped: []Item{}}
}

// Stopped is the report of a pass that was stopped before it began.
func Stopped() Report {
	r := newReport()
	r.Interrupted = true
	return r
}

func (r *Report) list(k Kind) *[]Item {
	switch k {
	case Delivered:
		return &r.Delivered
	case Refused:
		return &r.Refused
	case Ambiguous:
		return &r.Ambiguous
	case NotPrepared:
		return &r.NotPrepared
	case Planned:
		return &r.Planned
	default:
		return &r.Skipped
	}
}

// collector takes the items of several destinations into one report.
type collector struct {
	mu       sync.Mutex
	report   Report
	progress func(Kind, Item)
}

func (c *collector) add(k Kind, items ...Item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.report.list(k)
	*list = append(*list, items...)
	if c.progress == nil {
		return
	}
	for _, item := range items {
		c.progress(k, item)
	}
}
