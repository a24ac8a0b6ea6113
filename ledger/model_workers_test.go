package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// What operators do beside deciding, what workers do, and what recovers from dead workers.

// byOperator is a step that an operator takes on an obligation, with a reason, note or evidence.
func byOperator(name string, weight int, kind func(*model, *mObligation) bool,
	call func(ctx context.Context, l *ledger.Ledger, op operator.Operator, id int64, why string) (any, error),
	rule func(m *model, now time.Time, op operator.Operator, id int64, why string) mAnswer) mOperation {
	return mOperation{name, weight, obligations(kind), func(w *world, lawful bool) mStep {
		wrong := w.wrong(lawful, 3)
		id, op, why := w.obligation(wrong != 1, kind), w.operator(wrong != 2), w.reason(wrong != 3)
		return mStep{name, fmt.Sprintf("%d by %q: %q", id, op.ID(), why),
			func(ctx context.Context, l *ledger.Ledger) (any, error) { return call(ctx, l, op, id, why) },
			func(m *model, now time.Time) mAnswer { return rule(m, now, op, id, why) }}
	}}
}

func claimIs(states ...ledger.ClaimState) func(*model, *mObligation) bool {
	return func(m *model, o *mObligation) bool {
		d := m.holding(o)
		return d != nil && slices.Contains(states, d.claim.state)
	}
}

func unsettled(m *model, o *mObligation) bool {
	d := m.holding(o)
	return d != nil && d.claim.state == ledger.ClaimUnknown && d.claim.settledBy == ""
}

func operatorOperations() []mOperation {
	return []mOperation{
		byOperator("Steer", 1, drafted,
			func(ctx context.Context, l *ledger.Ledger, op operator.Operator, id int64, why string) (any, error) {
				return l.Steer(ctx, op, id, why)
			}, func(m *model, now time.Time, op operator.Operator, id int64, why string) mAnswer {
				return m.steer(op, id, why)
			}),
		byOperator("CloseByHand", 1, closable,
			func(ctx context.Context, l *ledger.Ledger, op operator.Operator, id int64, why string) (any, error) {
				return l.CloseByHand(ctx, op, id, why)
			}, (*model).closeByHand),
		byOperator("CancelByOperator", 2, claimIs(ledger.ClaimClaimed),
			func(ctx context.Context, l *ledger.Ledger, op operator.Operator, id int64, why string) (any, error) {
				return l.CancelByOperator(ctx, op, id, why)
			}, (*model).cancelByOperator),
		byOperator("Reconcile", 2, claimIs(ledger.ClaimUnknown),
			func(ctx context.Context, l *ledger.Ledger, op operator.Operator, id int64, why string) (any, error) {
				return l.Reconcile(ctx, op, id, "seen "+why, why)
			}, func(m *model, now time.Time, op operator.Operator, id int64, why string) mAnswer {
				return m.reconcile(now, op, id, "seen "+why, why)
			}),
		byOperator("Settle", 8, unsettled,
			func(ctx context.Context, l *ledger.Ledger, op operator.Operator, id int64, why string) (any, error) {
				return l.Settle(ctx, op, id, why)
			}, func(m *model, now time.Time, op operator.Operator, id int64, why string) mAnswer {
				return m.settle(op, id, why)
			}),
		{"DeclareDead", 1, nil, func(w *world, lawful bool) mStep {
			wrong := w.wrong(lawful, 2)
			op, worker := w.operator(wrong != 1), "w1"
			if wrong == 2 {
				worker = ""
			}
			return mStep{"DeclareDead", fmt.Sprintf("%q by %q", worker, op.ID()), func(ctx context.Context, l *ledger.Ledger) (any, error) {
				return none(l.DeclareDead(ctx, op, worker))
			}, func(m *model, now time.Time) mAnswer { return m.declareDead(op, worker) }}
		}},
	}
}

func claimable(m *model, d *mDecision) bool {
	o := m.of(d)
	return m.standing(o) == d && o.status == ledger.StatusApproved && d.claim == nil
}

func stateIs(state ledger.ClaimState) func(*model, *mDecision) bool {
	return func(m *model, d *mDecision) bool { return d.claim != nil && d.claim.state == state }
}

func decisions(kind func(*model, *mDecision) bool) func(*world) bool {
	return func(w *world) bool {
		return slices.ContainsFunc(w.m.decisions, func(d *mDecision) bool { return kind(w.m, d) && w.inFocus(d.obligation) })
	}
}

// holders tells whether somebody has a claim in the state and may go on with it.
func holders(state ledger.ClaimState) func(*world) bool {
	return func(w *world) bool { return len(w.goodClaims(state)) > 0 }
}

func (w *world) goodClaims(state ledger.ClaimState) (out []ledger.Claim) {
	for _, c := range w.handed {
		if d, err := w.m.held(c); err == nil && d.claim.state == state && w.inFocus(d.obligation) {
			out = append(out, c)
		}
	}
	return out
}

// claimHeld is a claim that may go on from the state, or one of which something is forged, or any that was ever handed out.
func (w *world) claimHeld(lawful bool, state ledger.ClaimState) ledger.Claim {
	wrong := w.wrong(lawful, 6)
	c := ledger.Claim{ObligationID: 1, DecisionID: 1, Worker: "w1", Generation: 1} // of which nobody has the token
	if good := w.goodClaims(state); len(good) > 0 && wrong != 1 {
		c = choose(w, "claim", good)
	} else if len(w.handed) > 0 {
		c = choose(w, "any claim", w.handed)
	}
	switch wrong {
	case 2:
		c.Generation++
	case 3:
		c.Token = "t" + c.Token
	case 4:
		c.Worker += "x"
	case 5:
		c.ObligationID++
	case 6:
		c.Token = ""
	}
	return c
}

// byHolder is a step that a claim's holder takes.
func byHolder(name string, weight int, state ledger.ClaimState,
	draw func(w *world, lawful bool, c ledger.Claim) (what string, call mCall, rule mRule)) mOperation {
	return mOperation{name, weight, holders(state), func(w *world, lawful bool) mStep {
		held := lawful || !w.oneIn(4, "only the rest is wrong")
		c := w.claimHeld(lawful || !held, state)
		what, call, rule := draw(w, lawful || held, c)
		return mStep{name, fmt.Sprintf("of %d by %s in generation %d %s", c.DecisionID, c.Worker, c.Generation, what), call, rule}
	}}
}

func drawReceipt(w *world, lawful bool) ledger.Receipt {
	r := ledger.Receipt{Coordinate: choose(w, "coordinate", mCoordinate), Altered: w.oneIn(5, "altered"), Detail: choose(w, "detail", mWords)}
	if !lawful {
		r.Coordinate = choose(w, "coordinate", []string{" ", "c1", "c2"})
	}
	return r
}

func complete(again bool) func(*world, bool, ledger.Claim) (string, mCall, mRule) {
	return func(w *world, lawful bool, c ledger.Claim) (string, mCall, mRule) {
		r := drawReceipt(w, lawful)
		if d := w.m.decision(c.DecisionID); again && lawful && d != nil && d.claim != nil {
			r.Coordinate = d.claim.coordinate
		}
		return fmt.Sprintf("%+v", r), func(ctx context.Context, l *ledger.Ledger) (any, error) { return none(l.Complete(ctx, c, r)) },
			func(m *model, now time.Time) mAnswer { return m.complete(now, c, r) }
	}
}

func markUnknown(w *world, _ bool, c ledger.Claim) (string, mCall, mRule) {
	f := ledger.Failure{Outcome: choose(w, "outcome", mOutcomes), Stage: "data", Code: "451", Detail: choose(w, "detail", mWords)}
	return fmt.Sprintf("%+v", f), func(ctx context.Context, l *ledger.Ledger) (any, error) { return none(l.MarkUnknown(ctx, c, f)) },
		func(m *model, now time.Time) mAnswer { return m.markUnknown(now, c, f) }
}

func workerOperations() []mOperation {
	return []mOperation{
		{"Claim", 10, decisions(claimable), func(w *world, lawful bool) mStep {
			id, worker := w.decision(lawful, claimable), choose(w, "worker", mWorkers)
			return mStep{"Claim", fmt.Sprintf("%d for %s", id, worker), func(ctx context.Context, l *ledger.Ledger) (any, error) {
				return l.Claim(ctx, id, worker)
			}, func(m *model, now time.Time) mAnswer { return m.claim(now, id, worker) }}
		}},
		byHolder("BeginDispatch", 12, ledger.ClaimClaimed, func(w *world, _ bool, c ledger.Claim) (string, mCall, mRule) {
			return "", func(ctx context.Context, l *ledger.Ledger) (any, error) { return l.BeginDispatch(ctx, c) },
				func(m *model, now time.Time) mAnswer { return m.begin(now, c) }
		}),
		byHolder("Complete", 6, ledger.ClaimDispatching, complete(false)),
		byHolder("CompleteAgain", 1, ledger.ClaimDelivered, complete(true)),
		byHolder("MarkUnknown", 8, ledger.ClaimDispatching, markUnknown),
		byHolder("MarkUnknownAgain", 2, ledger.ClaimUnknown, markUnknown),
		byHolder("Cancel", 2, ledger.ClaimClaimed, func(w *world, _ bool, c ledger.Claim) (string, mCall, mRule) {
			why := choose(w, "reason", mWords)
			return fmt.Sprintf("%q", why), func(ctx context.Context, l *ledger.Ledger) (any, error) { return none(l.Cancel(ctx, c, why)) },
				func(m *model, now time.Time) mAnswer { return m.cancel(now, c, why) }
		}),
	}
}

// recoverer is a step that a worker takes on a dead one's claim.
func recoverer(name string, weight int, state ledger.ClaimState,
	call func(ctx context.Context, l *ledger.Ledger, id int64, dead, worker string) (any, error),
	rule func(m *model, now time.Time, id int64, dead, worker string) mAnswer) mOperation {
	kind := stateIs(state)
	return mOperation{name, weight, decisions(kind), func(w *world, lawful bool) mStep {
		wrong := w.wrong(lawful, 2)
		id, dead, worker := w.decision(wrong != 1, kind), "w1", choose(w, "worker", mWorkers)
		if d := w.m.decision(id); d != nil && d.claim != nil && wrong != 2 {
			dead = d.claim.worker
		}
		return mStep{name, fmt.Sprintf("of %d from %s by %s", id, dead, worker), func(ctx context.Context, l *ledger.Ledger) (any, error) {
			return call(ctx, l, id, dead, worker)
		}, func(m *model, now time.Time) mAnswer { return rule(m, now, id, dead, worker) }}
	}}
}

func recoveryOperations() []mOperation {
	return []mOperation{
		recoverer("Adopt", 4, ledger.ClaimClaimed, func(ctx context.Context, l *ledger.Ledger, id int64, dead, worker string) (any, error) {
			return l.Adopt(ctx, id, dead, worker)
		}, func(m *model, now time.Time, id int64, dead, worker string) mAnswer { return m.adopt(id, dead, worker) }),
		recoverer("MarkDead", 4, ledger.ClaimDispatching, func(ctx context.Context, l *ledger.Ledger, id int64, dead, worker string) (any, error) {
			return none(l.MarkDead(ctx, id, dead, worker))
		}, (*model).markDead),
		confirm("ConfirmSpooled", 2, ledger.ClaimDispatching, ledger.ClaimUnknown),
		confirm("ConfirmAgain", 1, ledger.ClaimDelivered),
	}
}

func confirm(name string, weight int, states ...ledger.ClaimState) mOperation {
	kind := func(m *model, d *mDecision) bool { return d.claim != nil && slices.Contains(states, d.claim.state) }
	return mOperation{name, weight, decisions(kind), func(w *world, lawful bool) mStep {
		wrong := w.wrong(lawful, 3)
		id, r := w.decision(wrong != 1, kind), drawReceipt(w, wrong != 2)
		bound := "no claim's"
		if d := w.m.decision(id); d != nil && d.claim != nil && wrong != 3 {
			bound = d.claim.token
			if d.claim.state == ledger.ClaimDelivered && wrong == 0 {
				r.Coordinate = d.claim.coordinate
			}
		}
		return mStep{name, fmt.Sprintf("of %d, authentic %t: %+v", id, bound != "no claim's", r), func(ctx context.Context, l *ledger.Ledger) (any, error) {
			return none(l.ConfirmSpooled(ctx, id, "w3", r, func(token string) bool { return token == bound }))
		}, func(m *model, now time.Time) mAnswer {
			return m.confirmSpooled(now, id, "w3", r, bound != "no claim's")
		}}
	}}
}
