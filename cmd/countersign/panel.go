package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// decider is what the panel needs of the ledger.
type decider interface {
	Waiting(ctx context.Context, f ledger.ListFilter) ([]ledger.Listed, error)
	Subject(ctx context.Context, obligation int64, channel string) (ledger.Subject, error)
	Decide(ctx context.Context, d ledger.Decision) (ledger.Decided, error)
	Steer(ctx context.Context, op operator.Operator, obligation int64, note string) (ledger.Decided, error)
}

var _ decider = (*ledger.Ledger)(nil)

// panel shows one waiting draft after the other, and takes one key for each. It knows no terminal: keys and screen are given.
type panel struct {
	ledger decider
	who    operator.Operator
	keys   *keyboard
	out    io.Writer
	size   func() (width, height int)
	paint  bool
	now    func() time.Time // its location is the zone of the times shown

	said  string // of the last key, for the next screen
	done  []string
	tally map[string]int
}

// The ends of a look at one draft.
const (
	wasApproved = "approved"
	wasRejected = "rejected"
	wasSteered  = "steered"
	wasSkipped  = "skipped"
	wasDecided  = "decided by others"
	wasQuit     = "" // and all that follow
)

// run goes through what waits and returns when nothing is left, or the operator quits. Drafts that are filed meanwhile come after
// those that waited at the beginning.
func (p *panel) run(ctx context.Context, filter ledger.ListFilter) error {
	p.tally = map[string]int{}
	looked := map[int64]bool{}
	for {
		waiting, err := p.ledger.Waiting(ctx, filter)
		if err != nil {
			return err
		}
		oldestFirst(waiting)
		waiting = slices.DeleteFunc(waiting, func(o ledger.Listed) bool { return looked[o.ObligationID] })
		if len(waiting) == 0 {
			return nil
		}
		for i, o := range waiting {
			looked[o.ObligationID] = true
			end, err := p.look(ctx, o.ObligationID, len(waiting)-i)
			if err != nil || end == wasQuit {
				return err
			}
			p.tally[end]++
		}
	}
}

// oldestFirst orders by priority, and then by how long they wait.
func oldestFirst(waiting []ledger.Listed) {
	slices.SortStableFunc(waiting, func(a, b ledger.Listed) int {
		if a.Priority != b.Priority {
			return strings.Compare(string(a.Priority), string(b.Priority))
		}
		return int(min(max(a.FiledTS-b.FiledTS, -1), 1))
	})
}

// look shows one draft until it is decided or left. left is how many wait, this one included.
func (p *panel) look(ctx context.Context, id int64, left int) (string, error) {
	var v *view
	for {
		s, err := p.ledger.Subject(ctx, id, "")
		if err != nil {
			return wasQuit, err
		}
		if s.Status != ledger.StatusDrafted {
			p.said = fmt.Sprintf("#%d is %s already, %s", id, s.Status, decidedBy(s))
			p.done = append(p.done, p.said)
			return wasDecided, nil
		}
		if v != nil && v.subject.Epoch != s.Epoch {
			p.said = fmt.Sprintf("superseded: #%d was filed anew while you read it; this is the text now", id)
		}
		if v == nil || v.subject.Epoch != s.Epoch {
			v = &view{subject: s, left: left}
			p.keys.forget()
		}
		end, again, err := p.ask(ctx, v)
		if err != nil || !again {
			return end, err
		}
	}
}

// decidedBy tells who decided, as far as somebody did.
func decidedBy(s ledger.Subject) string {
	if n := len(s.Decisions); n > 0 {
		return "by " + s.Decisions[n-1].Operator
	}
	return "without a decision"
}

// ask takes keys for one draft until one of them does something. again says that the draft is to be read anew, for the next key.
func (p *panel) ask(ctx context.Context, v *view) (end string, again bool, err error) {
	for {
		p.draw(v)
		pressed, err := p.keys.press(ctx)
		if err != nil {
			return wasQuit, false, err
		}
		p.said = ""
		switch {
		case pressed == 'q' || pressed == keyInterrupt:
			return wasQuit, false, nil
		case !v.fits:
		case v.scroll(pressed):
		case pressed == 'n' || pressed == ' ':
			return wasSkipped, false, nil
		case pressed == '?':
			if err := p.help(ctx); err != nil {
				return wasQuit, false, err
			}
		case pressed == 'a' && !v.read():
			p.said = "not approved: the text goes on below; read it to its end first (space)"
		case pressed == 'a' || pressed == 'r' || pressed == 's':
			return p.act(ctx, v.subject, pressed)
		}
	}
}

// act does what an operator chose. What is refused leaves the draft on the screen, with the reason.
func (p *panel) act(ctx context.Context, s ledger.Subject, chosen key) (end string, again bool, err error) {
	var did ledger.Decided
	steps := map[key]func(context.Context, ledger.Subject) (ledger.Decided, error){'a': p.approve, 'r': p.reject, 's': p.steer}
	did, err = steps[chosen](ctx, s)
	switch {
	case errors.Is(err, errLeft):
		p.said = "nothing was done"
		return "", true, nil
	case err != nil && isRefusal(err):
		p.said = err.Error()
		return "", true, nil
	case err != nil:
		return wasQuit, false, err
	}
	end = map[key]string{'a': wasApproved, 'r': wasRejected, 's': wasSteered}[chosen]
	p.said = fmt.Sprintf("#%d %s", s.ObligationID, end)
	p.done = append(p.done, fmt.Sprintf("%s %d, epoch %d: %s", end, did.ObligationID, s.Epoch, s.Counterparty))
	return end, false, nil
}

// isRefusal tells what an operator can go on after, from a failure of the machine.
func isRefusal(err error) bool {
	switch explain(err).code {
	case exitRefused, exitConflict, exitUnauthorised, exitHeld, exitTryLater:
		return true
	}
	return false
}

// errLeft says that the operator thought better of it.
var errLeft = errors.New("left")

func (p *panel) approve(ctx context.Context, s ledger.Subject) (ledger.Decided, error) {
	if s.Priority == "P0" || len(s.Markers) > 0 {
		if err := p.confirm(ctx, s); err != nil {
			return ledger.Decided{}, err
		}
	}
	return p.ledger.Decide(ctx, p.decision(s, ledger.Approve, ""))
}

func (p *panel) reject(ctx context.Context, s ledger.Subject) (ledger.Decided, error) {
	reason, err := p.line(ctx, fmt.Sprintf("Reject #%d. The agent is told why:", s.ObligationID))
	if err != nil {
		return ledger.Decided{}, err
	}
	return p.ledger.Decide(ctx, p.decision(s, ledger.Reject, reason))
}

// steer leaves a note on the text that was shown: if another was filed meanwhile, it may say the wrong thing.
func (p *panel) steer(ctx context.Context, s ledger.Subject) (ledger.Decided, error) {
	note, err := p.line(ctx, fmt.Sprintf("Steer #%d: it keeps waiting, and its agent gets this note:", s.ObligationID))
	if err != nil {
		return ledger.Decided{}, err
	}
	now, err := p.ledger.Subject(ctx, s.ObligationID, "")
	if err != nil {
		return ledger.Decided{}, err
	}
	if now.Epoch != s.Epoch {
		return ledger.Decided{}, &ledger.StaleEpochError{ObligationID: s.ObligationID, Want: now.Epoch, Got: s.Epoch}
	}
	return p.ledger.Steer(ctx, p.who, s.ObligationID, note)
}

func (p *panel) decision(s ledger.Subject, verdict ledger.Verdict, reason string) ledger.Decision {
	return ledger.Decision{ObligationID: s.ObligationID, Epoch: s.Epoch, Verdict: verdict, Operator: p.who, Reason: reason}
}

// summary tells in one line what became of what was looked at.
func (p *panel) summary(waiting int) string {
	var parts []string
	for _, end := range []string{wasApproved, wasRejected, wasSteered, wasSkipped, wasDecided} {
		if n := p.tally[end]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, end))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing decided"}
	}
	return fmt.Sprintf("%s; %s still waiting", strings.Join(parts, ", "), count(waiting, "draft"))
}
