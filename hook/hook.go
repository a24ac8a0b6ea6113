// Package hook answers one question: how is an agent told without asking?
//
// Every follow-up lies in its agent's inbox. Where a hook is configured, each is also handed to a command or posted to a URL, as one JSON
// object, at least once: until the receiver says that it took it. An agent's follow-ups are handed over in their order; one that fails
// holds up only later ones of the same agent, and those for the rest of the pass. A receiver tells repeats by the id, which rises.
package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"countersign/ledger"
)

// Queue holds the follow-ups that no receiver has taken yet. *ledger.Ledger is one.
type Queue interface {
	ID() string
	HookDue(ctx context.Context, limit int) ([]ledger.FollowUpDue, error)
	HookTaken(ctx context.Context, id int64) error
	HookFailed(ctx context.Context, id int64, wait func(failures int) time.Duration, cause string) error
}

var _ Queue = (*ledger.Ledger)(nil)

// Receiver takes follow-ups.
type Receiver interface {
	// Ready tells whether anything can be handed over at all. An error is the configuration's fault: no follow-up is to wait longer for it.
	Ready() error
	// Hand hands over one follow-up, within a time of its own. nil says that it was taken. The error is kept in the ledger, and so repeats
	// no secret and nothing that the receiver said.
	Hand(ctx context.Context, body []byte) error
}

// Message is what a receiver gets, as JSON.
type Message struct {
	ID           int64  `json:"id"` // unique in the ledger, rising
	Agent        string `json:"agent"`
	ObligationID int64  `json:"obligation_id"`
	Kind         string `json:"kind"` // see ledger.FollowUp
	Body         string `json:"body"`
	CreatedTS    int64  `json:"created_ts"` // Unix seconds
	LedgerID     string `json:"ledger_id"`
}

// Report tells what a pass did.
type Report struct {
	Taken  []FollowUp `json:"taken"`
	Failed []FollowUp `json:"failed"`
	Behind []FollowUp `json:"behind"` // not tried: they wait behind a failed one of the same agent
}

// FollowUp names one in a report.
type FollowUp struct {
	ID           int64  `json:"id"`
	Agent        string `json:"agent"`
	ObligationID int64  `json:"obligation_id"`
	Kind         string `json:"kind"`
	Error        string `json:"error,omitempty"`
}

// NotReadyError says that the receiver can't be used as it is configured. Nothing was handed over, and nothing was put off.
type NotReadyError struct{ Err error }

func (e *NotReadyError) Error() string {
	return fmt.Sprintf("follow-ups can't be handed over: %v", e.Err)
}

// Unwrap returns the reason.
func (e *NotReadyError) Unwrap() error { return e.Err }

// Hook hands follow-ups to a receiver.
type Hook struct {
	queue    Queue
	receiver Receiver
}

// New returns the hook that hands what is queued to the receiver.
func New(queue Queue, receiver Receiver) *Hook { return &Hook{queue: queue, receiver: receiver} }

// batch is how many follow-ups are read at once.
const batch = 100

// Pass hands over what is due: whatever becomes due during the pass too, as long as anything is taken. Passes may overlap, and a follow-up
// may then be handed over twice. When ctx ends, the follow-up in hand is finished first. The error is the ledger's, ctx's, or a
// *NotReadyError; that a receiver took nothing is only in the report.
func (h *Hook) Pass(ctx context.Context) (Report, error) {
	p := pass{Hook: h, failed: map[string]bool{}, report: Report{Taken: []FollowUp{}, Failed: []FollowUp{}, Behind: []FollowUp{}}}
	for {
		before := len(p.report.Taken)
		due, err := h.queue.HookDue(ctx, batch)
		if err != nil || len(due) == 0 {
			return p.report, err
		}
		if err := h.receiver.Ready(); err != nil {
			return p.report, &NotReadyError{err}
		}
		p.report.Behind = []FollowUp{} // those of the batch before are in this one again
		if err := p.hand(ctx, due); err != nil || len(p.report.Taken) == before {
			return p.report, err
		}
	}
}

// pass is one run over the queue.
type pass struct {
	*Hook
	failed map[string]bool // agents
	report Report
}

func (p *pass) hand(ctx context.Context, due []ledger.FollowUpDue) error {
	for _, f := range due {
		if p.failed[f.Agent] {
			p.report.Behind = append(p.report.Behind, named(f, nil))
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.one(context.WithoutCancel(ctx), f); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) one(ctx context.Context, f ledger.FollowUpDue) error {
	body, err := json.Marshal(Message{ID: f.ID, Agent: f.Agent, ObligationID: f.ObligationID, Kind: f.Kind, Body: f.Body, CreatedTS: f.CreatedTS,
		LedgerID: p.queue.ID()})
	if err != nil {
		return err
	}
	if err := p.receiver.Hand(ctx, body); err != nil {
		p.failed[f.Agent] = true
		p.report.Failed = append(p.report.Failed, named(f, err))
		return p.queue.HookFailed(ctx, f.ID, backoff, err.Error())
	}
	p.report.Taken = append(p.report.Taken, named(f, nil))
	return p.queue.HookTaken(ctx, f.ID)
}

func named(f ledger.FollowUpDue, err error) FollowUp {
	out := FollowUp{ID: f.ID, Agent: f.Agent, ObligationID: f.ObligationID, Kind: f.Kind}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

const (
	firstBackoff = time.Minute
	maxBackoff   = 6 * time.Hour
)

// backoff is how long a follow-up is left alone after so many failures (1 is the first): a minute, doubling up to six hours.
func backoff(failures int) time.Duration {
	doublings := max(failures, 1) - 1
	if doublings >= 9 { // 2^9 minutes are more than six hours
		return maxBackoff
	}
	return firstBackoff << doublings
}
