package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"countersign/ledger"
)

// waysOut takes one step for every obligation but one that is not finished. Each must succeed: nothing is ever stuck.
func (w *world) waysOut(but int64) {
	for _, o := range slices.Clone(w.m.obligations) {
		w.next = w.upTo(len(w.seats), "seat")
		s, finished := w.wayOut(o)
		if finished || o.id == but {
			continue
		}
		if err := w.take(s); err != nil {
			w.t.Fatalf("obligation %d is a dead end: %v", o.id, err)
		}
	}
}

// wayOut is a step that the contract promises.
func (w *world) wayOut(o *mObligation) (s mStep, finished bool) {
	w.focus = o.id
	defer func() { w.focus = 0 }()
	pick := func(ops []mOperation, name string) mStep { return named(ops, name).draw(w, true) }
	var claim ledger.ClaimState
	if d := w.m.holding(o); d != nil {
		claim = d.claim.state
	}
	switch {
	case o.status == ledger.StatusOpen:
		return pick(operatorOperations(), "CloseByHand"), false
	case drafted(w.m, o) && w.approvable(w.m, o):
		return pick(decidingOperations(), "Approve"), false
	case drafted(w.m, o):
		return pick(decidingOperations(), "Reject"), false
	case claim == ledger.ClaimClaimed:
		return pick(recoveryOperations(), "Adopt"), false
	case claim == ledger.ClaimDispatching:
		return pick(recoveryOperations(), "MarkDead"), false
	case claim == ledger.ClaimUnknown:
		return pick(operatorOperations(), "Reconcile"), false
	case o.status == ledger.StatusApproved && w.m.expired(w.seat().now, w.m.standing(o)) != nil:
		return pick(decidingOperations(), "Revoke"), false
	case o.status == ledger.StatusApproved:
		return pick(workerOperations(), "Claim"), false
	}
	return mStep{}, true
}

// race takes three steps at once on both seats, most of them about one obligation. They must end as they would have one after the other, in some order.
func (w *world) race(all []mOperation, about int64) {
	w.focus = about
	var steps []mStep
	for range 3 {
		steps = append(steps, w.draw(all, true))
	}
	results := make([]mResult, len(steps))
	var start, done sync.WaitGroup
	start.Add(1)
	for i, s := range steps {
		done.Go(func() {
			start.Wait()
			results[i].got, results[i].err = s.call(context.Background(), w.seats[i%2].Ledger)
		})
	}
	start.Done()
	done.Wait()
	var why []string
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		m, problem := w.replay(order, steps, results)
		if problem == nil {
			w.m = m
			w.cover.raced(results)
			return
		}
		why = append(why, fmt.Sprintf("in the order %v: %v", order, problem))
	}
	for i, s := range steps {
		w.t.Logf("raced %d: %s %s: %v %v", i, s.name, s.what, results[i].got, results[i].err)
	}
	w.t.Fatalf("three steps at once ended as in no order:\n%s", strings.Join(why, "\n"))
}

type mResult struct {
	got any
	err error
}

// replay runs the steps on a copy of the model, one after the other.
func (w *world) replay(order []int, steps []mStep, results []mResult) (*model, error) {
	m := w.m.clone()
	for _, i := range order {
		if problem := judge(steps[i].rule(m, w.seats[i%2].now), results[i].got, results[i].err); problem != nil {
			return nil, fmt.Errorf("%s: %w", steps[i].name, problem)
		}
	}
	return m, w.states(m)
}
