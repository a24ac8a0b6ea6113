package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/ledger"
)

// coverage tells what a run reached: a property that never comes to the deep states proves nothing about them.
type coverage struct {
	mu                sync.Mutex
	operations        map[string]map[string]int // by outcome
	situations        map[string]int            // sequences that had them
	walks, steps      int
	races, raceLosers int
}

func newCoverage() *coverage {
	return &coverage{operations: map[string]map[string]int{}, situations: map[string]int{}}
}

func (c *coverage) took(w *world, name string, err error) {
	outcome := "ok"
	if err != nil {
		outcome = strings.TrimPrefix(fmt.Sprintf("%T", leaf(err)), "*ledger.")
	}
	if errors.Is(err, ledger.ErrNoOperator) {
		outcome = "ErrNoOperator"
	}
	for s, there := range w.m.situations() {
		w.seen[s] = w.seen[s] || there
	}
	w.seen[name] = w.seen[name] || err == nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.steps++
	if c.operations[name] == nil {
		c.operations[name] = map[string]int{}
	}
	c.operations[name][outcome]++
}

// leaf is the refusal in an error that also had to be recorded.
func leaf(err error) error {
	for {
		many, ok := err.(interface{ Unwrap() []error })
		if !ok {
			return err
		}
		err = many.Unwrap()[0]
	}
}

func (c *coverage) raced(results []mResult) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.races++
	if slices.ContainsFunc(results, func(r mResult) bool { return r.err != nil }) {
		c.raceLosers++
	}
}

func (c *coverage) walked(w *world) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.walks++
	for s, there := range w.seen {
		if there {
			c.situations[s]++
		} else {
			c.situations[s] += 0
		}
	}
}

// unsuccessful lists the operations that no sequence saw succeed.
func (c *coverage) unsuccessful() (out []string) {
	for _, op := range operations() {
		if c.situations[op.name] == 0 {
			out = append(out, op.name)
		}
	}
	return out
}

func (c *coverage) complete() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steps >= enough && len(c.unsuccessful()) == 0
}

// long is a run, in sequences, in which every situation comes up.
const long = 100

// report prints what was reached, and fails when an operation never succeeded, or a long run left a situation out.
func (c *coverage) report(t *testing.T) {
	t.Logf("%d sequences, %d steps, %d races of which %d had a loser", c.walks, c.steps, c.races, c.raceLosers)
	if missing := c.unsuccessful(); len(missing) > 0 && c.steps >= enough {
		t.Errorf("the run proves nothing about what never succeeded: %s", strings.Join(missing, ", "))
	}
	for _, op := range operations() {
		outcomes := c.operations[op.name]
		var line []string
		for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
			line = append(line, fmt.Sprintf("%s %d", outcome, outcomes[outcome]))
		}
		t.Logf("%-18s %s; succeeded in %d sequences", op.name, strings.Join(line, ", "), c.situations[op.name])
		delete(c.situations, op.name)
	}
	for _, s := range slices.Sorted(maps.Keys(c.situations)) {
		t.Logf("%4d sequences with: %s", c.situations[s], s)
		if c.situations[s] == 0 && c.walks >= long {
			t.Errorf("in %d sequences none had: %s", c.walks, s)
		}
	}
}

// situations are the deep states.
func (m *model) situations() map[string]bool {
	out := map[string]bool{}
	see := func(what string, there bool) { out[what] = out[what] || there }
	for _, o := range m.obligations {
		see("an obligation overtaken by a newer draft", o.overtaken)
	}
	for _, d := range m.decisions {
		c, o := d.claimOrNone(), m.of(d)
		taken := c.generation > 1
		see("taken over, claimed", taken && c.state == ledger.ClaimClaimed)
		see("taken over, dispatching", taken && c.state == ledger.ClaimDispatching)
		see("taken over, delivered", taken && c.state == ledger.ClaimDelivered)
		see("taken over twice", c.generation > 2)
		see("unknown", c.state == ledger.ClaimUnknown)
		see("unknown, then a spooled receipt", c.spooled)
		see("expired before the claim", d.voided != nil && d.voided.kind == "expired" && d.claim == nil)
		see("expired before the begin", d.voided != nil && d.voided.kind == "expired" && d.claim != nil)
		see("sent after a taking back", c.state == ledger.ClaimDelivered && m.takenBack(o))
		see("settled", c.settledBy != "")
		see("settled, then reconciled", c.settledBy != "" && c.state == ledger.ClaimDelivered)
		m.seeSettled(d, see)
	}
	return out
}

func (d *mDecision) claimOrNone() mClaim {
	if d.claim == nil {
		return mClaim{}
	}
	return *d.claim
}

func (m *model) takenBack(o *mObligation) bool {
	return slices.ContainsFunc(m.decisions, func(d *mDecision) bool { return d.obligation == o.id && d.voided != nil })
}

// seeSettled looks at what became of the pair of a settled delivery.
func (m *model) seeSettled(d *mDecision, see func(string, bool)) {
	o := m.of(d)
	for _, later := range m.obligations {
		if later.id <= o.id || !later.onPair(o.counterparty, o.channel) {
			continue
		}
		held := m.holding(later)
		see("two active claims on one pair", d.claim.active() && held != nil)
		if d.claimOrNone().settledBy == "" || d.claim.state != ledger.ClaimUnknown {
			continue
		}
		see("settled, filed again", later.status == ledger.StatusDrafted)
		see("settled, filed again, approved", later.status == ledger.StatusApproved && held == nil)
		see("settled, filed again, claimed", held != nil)
		see("settled, filed again, sent", later.status == ledger.StatusSent)
	}
}
