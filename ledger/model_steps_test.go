package ledger_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// mStep is one call, and what the contract says about it.
type mStep struct {
	name, what string
	call       mCall
	rule       mRule
}

type (
	mCall func(ctx context.Context, l *ledger.Ledger) (any, error)
	mRule func(m *model, now time.Time) mAnswer
)

// mOperation draws steps. Most of them are lawful, since a random call is nearly always refused; the others are anything.
type mOperation struct {
	name   string
	weight int
	ready  func(w *world) bool // a lawful one exists now; nil is always
	draw   func(w *world, lawful bool) mStep
}

func none(err error) (any, error) { return nil, err }

// operations are all there are, the simplest first: a failing sequence shrinks towards them.
func operations() []mOperation {
	return slices.Concat(filingOperations(), decidingOperations(), operatorOperations(), workerOperations(), recoveryOperations())
}

var (
	mPairs      = [][2]string{{"acme", "C1"}, {"acme", "C2"}, {"globex", "C1"}}
	mPlatforms  = []string{"smtp", "slack"}
	mAgents     = []string{"quoter", "anna"} // anna is an operator too
	mUsers      = []string{"", "", "", "ben"}
	mTexts      = []string{"Yes.", "No.", "12 pieces at 4 EUR."}
	mWorkers    = []string{"w1", "w2", "w3"}
	mReasons    = []string{"because", "no \x1b[31m\u202e\x00 reason"}
	mWords      = []string{"250 ok", "said \xff\x00\u2028 no", ""} // a provider may say anything
	mOutcomes   = []ledger.Outcome{ledger.Ambiguous, ledger.Refused, ledger.Refused, ledger.Confirmed, ""}
	mCoordinate = []string{"c1", "c2"}
)

func drawFiling(w *world, lawful bool) ledger.Filing {
	pairs := mPairs
	if free := slices.DeleteFunc(slices.Clone(mPairs), w.m.pairHeld); lawful && len(free) > 0 {
		pairs = free
	}
	settled := slices.DeleteFunc(slices.Clone(pairs), func(p [2]string) bool { return !w.m.pairSettled(p) })
	if len(settled) > 0 && !w.oneIn(3, "any pair") {
		pairs = settled
	}
	pair := choose(w, "pair", pairs)
	f := ledger.Filing{Counterparty: pair[0], Channel: pair[1], Platform: choose(w, "platform", mPlatforms), Agent: choose(w, "agent", mAgents),
		User: choose(w, "user", mUsers), Text: choose(w, "text", mTexts), Subject: choose(w, "subject", []string{"", "Offer"}),
		Thread: choose(w, "thread", []string{"", "t1"}), Priority: ledger.DefaultPriority}
	if w.oneIn(3, "key") {
		f.IdempotencyKey = fmt.Sprintf("k%d", len(w.m.events)) // fresh
	}
	if w.oneIn(3, "deadline") {
		f.AutoSendAfter = w.seat().now.Unix() + 60
	}
	if w.oneIn(4, "answers a signal") {
		f.Signal = 1
	}
	if !lawful && w.oneIn(3, "answers nothing") {
		f.Signal = 999
	}
	return f
}

// pairHeld: an active claim holds the pair, and nobody settled it.
func (m *model) pairHeld(pair [2]string) bool {
	return slices.ContainsFunc(m.obligations, func(o *mObligation) bool {
		d := m.holding(o)
		return d != nil && d.claim.settledBy == "" && o.onPair(pair[0], pair[1])
	})
}

// pairSettled: it is free only because an operator settled an unknown delivery.
func (m *model) pairSettled(pair [2]string) bool {
	return slices.ContainsFunc(m.obligations, func(o *mObligation) bool {
		d := m.holding(o)
		return d != nil && d.claim.settledBy != "" && o.onPair(pair[0], pair[1])
	})
}

func fileStep(w *world, name string, f ledger.Filing) mStep {
	gates := ledger.Gates{}
	if w.oneIn(4, "gates say") {
		gates = ledger.Gates{Markers: []string{"[" + ledger.MarkBaselineUnavailable + "]"}, Warnings: []string{"no checker"}}
	}
	raw := f
	if w.oneIn(4, "unclean") {
		raw.Text += "\r\n"
	}
	return mStep{name, fmt.Sprintf("%+v", raw), func(ctx context.Context, l *ledger.Ledger) (any, error) {
		draft, err := ledger.Clean(raw, ledger.DefaultLimits())
		if err != nil {
			return nil, err
		}
		return l.File(ctx, draft, gates)
	}, func(m *model, now time.Time) mAnswer {
		if f.Text == "" {
			return refuse(&ledger.InputError{Field: "text"})
		}
		return m.file(now, f, gates, raw != f)
	}}
}

// keyed are the filings that have an idempotency key.
func (m *model) keyed() (out []ledger.Filing) {
	for _, o := range m.obligations {
		for _, f := range o.filings {
			if f.IdempotencyKey != "" {
				out = append(out, f.Filing)
			}
		}
	}
	return out
}

func hasKeyed(w *world) bool { return len(w.m.keyed()) > 0 }

// drawRepeat files again with a key that was used: the same envelope, whatever else changed, or another one.
func drawRepeat(w *world, lawful bool) ledger.Filing {
	f := drawFiling(w, true)
	keyed := w.m.keyed()
	if len(keyed) == 0 {
		f.Text = ""
		return f
	}
	first := choose(w, "repeated", keyed)
	first.AutoSendAfter, first.User = f.AutoSendAfter, f.User
	if !lawful {
		first.Counterparty, first.Text = f.Counterparty, f.Text
	}
	return first
}

func filingOperations() []mOperation {
	return []mOperation{
		{"File", 6, nil, func(w *world, lawful bool) mStep { return fileStep(w, "File", drawFiling(w, lawful)) }},
		{"FileAgain", 1, hasKeyed, func(w *world, lawful bool) mStep { return fileStep(w, "FileAgain", drawRepeat(w, lawful)) }},
		{"Repeated", 1, hasKeyed, func(w *world, lawful bool) mStep {
			f := drawRepeat(w, lawful)
			return mStep{"Repeated", fmt.Sprintf("%+v", f), func(ctx context.Context, l *ledger.Ledger) (any, error) {
				draft, err := ledger.Clean(f, ledger.DefaultLimits())
				if err != nil {
					return nil, err
				}
				out, repeated, err := l.Repeated(ctx, draft)
				return [2]any{out, repeated}, err
			}, func(m *model, now time.Time) mAnswer {
				if f.Text == "" {
					return refuse(&ledger.InputError{Field: "text"})
				}
				answer, repeated := m.repeated(f)
				if answer.value == nil {
					answer.value = ledger.Filed{}
				}
				answer.value = [2]any{answer.value, repeated}
				return answer
			}}
		}},
		{"Withdraw", 1, obligations(drafted), func(w *world, lawful bool) mStep {
			wrong := w.wrong(lawful, 3)
			id := w.obligation(wrong != 1, drafted)
			o := w.known(id)
			agent, epoch := o.newest().Agent, o.epoch
			if wrong == 2 {
				agent = choose(w, "agent", []string{"quoter", "anna", ""})
			} else if wrong == 3 {
				epoch = w.epochBeside(o)
			}
			return mStep{"Withdraw", fmt.Sprintf("%d at %d by %q", id, epoch, agent), func(ctx context.Context, l *ledger.Ledger) (any, error) {
				return l.Withdraw(ctx, agent, id, epoch)
			}, func(m *model, now time.Time) mAnswer { return m.withdraw(agent, id, epoch) }}
		}},
		{"Acknowledge", 1, func(w *world) bool { return len(w.m.told) > 0 }, func(w *world, lawful bool) mStep {
			agent := choose(w, "agent", mAgents)
			var ids []int64
			for i, f := range w.m.told {
				if f.agent == agent {
					ids = append(ids, int64(i)+1)
				}
			}
			if !lawful {
				ids = append(ids, int64(w.upTo(len(w.m.told)+3, "id")))
			}
			return mStep{"Acknowledge", fmt.Sprintf("%v by %s", ids, agent), func(ctx context.Context, l *ledger.Ledger) (any, error) {
				return none(l.Acknowledge(ctx, agent, ids))
			}, func(m *model, now time.Time) mAnswer { return m.acknowledge(agent, ids) }}
		}},
	}
}

func drafted(m *model, o *mObligation) bool { return o.status == ledger.StatusDrafted }
func revocable(m *model, o *mObligation) bool {
	d := m.holding(o)
	return o.status == ledger.StatusApproved && (d == nil || d.claim.state == ledger.ClaimClaimed)
}
func closable(m *model, o *mObligation) bool {
	return m.holding(o) == nil && o.status != ledger.StatusSent && o.status != ledger.StatusClosed
}

// obligations tells whether there is one of a kind.
func obligations(kind func(*model, *mObligation) bool) func(*world) bool {
	return func(w *world) bool {
		return slices.ContainsFunc(w.m.obligations, func(o *mObligation) bool { return kind(w.m, o) && w.inFocus(o.id) })
	}
}

// approvable excludes a draft that both operators filed, one as its agent, one as its user: it waits for a third one.
func (w *world) approvable(m *model, o *mObligation) bool {
	f := o.newest()
	return drafted(m, o) && !(f.Agent == "anna" && f.User == "ben")
}

func decideStep(name string, d ledger.Decision) mStep {
	what := fmt.Sprintf("%s of %d at %d by %q, nonce %q, reason %q", d.Verdict, d.ObligationID, d.Epoch, d.Operator.ID(), d.Nonce, d.Reason)
	return mStep{name, what, func(ctx context.Context, l *ledger.Ledger) (any, error) { return l.Decide(ctx, d) },
		func(m *model, now time.Time) mAnswer { return m.decide(now, d) }}
}

func drawDecision(w *world, verdict ledger.Verdict, lawful bool) ledger.Decision {
	kind := drafted
	if verdict == ledger.Approve {
		kind = w.approvable
	}
	wrong := w.wrong(lawful, 8)
	id := w.obligation(wrong != 1, kind)
	o := w.known(id)
	d := ledger.Decision{ObligationID: id, Epoch: o.epoch, Verdict: verdict, Operator: w.approverOf(o), Reason: w.reason(wrong != 2)}
	if w.oneIn(2, "nonce") {
		d.Nonce = fmt.Sprintf("n%d", len(w.m.events)) // fresh
	}
	switch wrong {
	case 3:
		d.Epoch = w.epochBeside(o)
	case 4:
		d.Operator = operator.Operator{}
	case 5:
		d.Verdict = "maybe"
	case 6, 7, 8:
		d.Operator = w.filerOf(o)
	}
	return d
}

// named are the decisions and revocations that have a nonce of their caller's.
func (m *model) named() (decisions, revocations []*mDecision) {
	for _, d := range m.decisions {
		if d.nonce != "" {
			decisions = append(decisions, d)
		}
		if d.voided != nil && d.voided.nonce != "" {
			revocations = append(revocations, d)
		}
	}
	return decisions, revocations
}

func decidingOperations() []mOperation {
	verdict := func(name string, v ledger.Verdict) func(*world, bool) mStep {
		return func(w *world, lawful bool) mStep { return decideStep(name, drawDecision(w, v, lawful)) }
	}
	return []mOperation{
		{"Approve", 10, func(w *world) bool { return obligations(w.approvable)(w) }, verdict("Approve", ledger.Approve)},
		{"Reject", 1, obligations(drafted), verdict("Reject", ledger.Reject)},
		{"DecideAgain", 1, func(w *world) bool { d, _ := w.m.named(); return len(d) > 0 }, func(w *world, lawful bool) mStep {
			d := drawDecision(w, ledger.Approve, true)
			if decisions, revocations := w.m.named(); len(decisions) > 0 {
				old := choose(w, "repeated", decisions)
				d.Nonce = old.nonce
				if lawful {
					d = ledger.Decision{ObligationID: old.obligation, Epoch: old.epoch, Verdict: old.verdict, Operator: w.operatorNamed(old.operator),
						Reason: old.reason, Nonce: old.nonce}
				} else if len(revocations) > 0 && w.oneIn(2, "of a revocation") {
					d.Nonce = choose(w, "revocation", revocations).voided.nonce
				}
			}
			return decideStep("DecideAgain", d)
		}},
		{"Revoke", 2, obligations(revocable), func(w *world, lawful bool) mStep {
			wrong := w.wrong(lawful, 3)
			r := ledger.Revocation{ObligationID: w.obligation(wrong != 1, revocable), Operator: w.operator(wrong != 2),
				Reason: w.reason(wrong != 3), Reject: w.oneIn(3, "reject")}
			if w.oneIn(2, "nonce") {
				r.Nonce = fmt.Sprintf("n%d", len(w.m.events))
			}
			return revokeStep("Revoke", r)
		}},
		{"RevokeAgain", 1, func(w *world) bool { _, r := w.m.named(); return len(r) > 0 }, func(w *world, lawful bool) mStep {
			r := ledger.Revocation{ObligationID: w.obligation(true, revocable), Operator: w.operator(true), Reason: w.reason(true), Reject: w.oneIn(2, "reject")}
			decisions, revocations := w.m.named()
			if len(revocations) > 0 {
				d := choose(w, "repeated", revocations)
				same := ledger.Revocation{ObligationID: d.obligation, Operator: w.operatorNamed(d.voided.actor), Reason: d.voided.reason,
					Reject: d.voided.reject, Nonce: d.voided.nonce}
				if r.Nonce = same.Nonce; lawful {
					r = same
				} else if w.oneIn(2, "only the verdict differs") {
					r = same
					r.Reject = !r.Reject
				}
			}
			if len(decisions) > 0 && !lawful && w.oneIn(3, "of a decision") {
				r.Nonce = choose(w, "decision", decisions).nonce
			}
			return revokeStep("RevokeAgain", r)
		}},
	}
}

func revokeStep(name string, r ledger.Revocation) mStep {
	what := fmt.Sprintf("%d by %q, reject %t, nonce %q, reason %q", r.ObligationID, r.Operator.ID(), r.Reject, r.Nonce, r.Reason)
	return mStep{name, what, func(ctx context.Context, l *ledger.Ledger) (any, error) { return l.Revoke(ctx, r) },
		func(m *model, now time.Time) mAnswer { return m.revoke(now, r) }}
}
