package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// Section 6: deciding.

func (m *model) decide(now time.Time, d ledger.Decision) mAnswer {
	switch {
	case !d.Operator.Known():
		return refuse(ledger.ErrNoOperator)
	case d.Verdict != ledger.Approve && d.Verdict != ledger.Reject:
		return refuse(&ledger.InputError{Field: "verdict"})
	case d.Verdict == ledger.Reject && strings.TrimSpace(d.Reason) == "":
		return refuse(&ledger.InputError{Field: "reason"})
	}
	if answer, used := m.usedNonce(d); used {
		return answer
	}
	o := m.obligation(d.ObligationID)
	if o == nil {
		return refuse(&ledger.NotFoundError{ObligationID: d.ObligationID})
	}
	if o.epoch != d.Epoch {
		return refuse(&ledger.StaleEpochError{ObligationID: o.id, Want: o.epoch, Got: d.Epoch})
	}
	if o.status != ledger.StatusDrafted {
		return refuse(m.decidedBy(o))
	}
	if f := o.newest(); d.Verdict == ledger.Approve && (f.Agent == d.Operator.ID() || f.User == d.Operator.ID()) {
		return refuse(&ledger.OwnDraftError{ObligationID: o.id, Operator: d.Operator.ID()})
	}
	return mAnswer{value: m.record(now, o, d)}
}

func (m *model) record(now time.Time, o *mObligation, d ledger.Decision) ledger.Decided {
	made := &mDecision{id: int64(len(m.decisions)) + 1, obligation: o.id, epoch: o.epoch, verdict: d.Verdict, operator: d.Operator.ID(),
		reason: d.Reason, nonce: d.Nonce, at: now, filing: o.newest()}
	m.decisions = append(m.decisions, made)
	o.status = ledger.StatusRejected
	if d.Verdict == ledger.Approve {
		o.status = ledger.StatusApproved
	}
	m.tell(o, string(o.status))
	m.event(string(o.status), o.id, made.id)
	return ledger.Decided{ObligationID: o.id, DecisionID: made.id, Epoch: o.epoch, Operator: made.operator, Status: o.status}
}

// usedNonce: the same nonce twice is a no-op, with other content an error. A decision and a taking back have other content.
func (m *model) usedNonce(d ledger.Decision) (answer mAnswer, used bool) {
	for _, old := range m.decisions {
		if d.Nonce != "" && old.voided != nil && old.voided.nonce == d.Nonce {
			return refuse(&ledger.NonceError{Nonce: d.Nonce}), true
		}
		if d.Nonce == "" || old.nonce != d.Nonce {
			continue
		}
		if old.obligation != d.ObligationID || old.verdict != d.Verdict || old.operator != d.Operator.ID() || old.epoch != d.Epoch ||
			old.reason != d.Reason {
			return refuse(&ledger.NonceError{Nonce: d.Nonce}), true
		}
		return mAnswer{value: ledger.Decided{ObligationID: old.obligation, DecisionID: old.id, Epoch: old.epoch, Operator: old.operator,
			Status: m.of(old).status}}, true
	}
	return mAnswer{}, false
}

// decidedBy tells the loser who won.
func (m *model) decidedBy(o *mObligation) error {
	out := &ledger.DecidedError{ObligationID: o.id, Status: o.status}
	for _, d := range m.decisions {
		if d.obligation == o.id && d.epoch == o.epoch {
			out.By, out.At = d.operator, time.Unix(d.at.Unix(), 0)
		}
	}
	return out
}

func (m *model) revoke(now time.Time, r ledger.Revocation) mAnswer {
	switch {
	case !r.Operator.Known():
		return refuse(ledger.ErrNoOperator)
	case strings.TrimSpace(r.Reason) == "":
		return refuse(&ledger.InputError{Field: "reason"})
	}
	if answer, used := m.usedRevocation(r); used {
		return answer
	}
	o := m.obligation(r.ObligationID)
	if o == nil {
		return refuse(&ledger.NotFoundError{ObligationID: r.ObligationID})
	}
	if d := m.holding(o); d != nil && d.claim.state != ledger.ClaimClaimed {
		return refuse(&ledger.TooLateError{ObligationID: o.id, State: d.claim.state})
	}
	if o.status == ledger.StatusSent {
		return refuse(&ledger.TooLateError{ObligationID: o.id, State: ledger.ClaimDelivered})
	}
	if o.status != ledger.StatusApproved {
		return refuse(&ledger.StatusError{ObligationID: o.id})
	}
	d := m.standing(o)
	m.void(now, d, mVoiding{kind: "revoked", actor: r.Operator.ID(), reason: r.Reason, nonce: r.Nonce, reject: r.Reject})
	if !r.Reject || o.status != ledger.StatusDrafted {
		return mAnswer{value: ledger.Decided{ObligationID: o.id, DecisionID: d.id, Epoch: o.epoch, Operator: r.Operator.ID(), Status: o.status}}
	}
	return mAnswer{value: m.record(now, o, ledger.Decision{Verdict: ledger.Reject, Operator: r.Operator, Reason: r.Reason})}
}

func (m *model) usedRevocation(r ledger.Revocation) (answer mAnswer, used bool) {
	for _, d := range m.decisions {
		if r.Nonce != "" && d.nonce == r.Nonce {
			return refuse(&ledger.NonceError{Nonce: r.Nonce}), true
		}
		if v := d.voided; r.Nonce != "" && v != nil && v.nonce == r.Nonce {
			o := m.of(d)
			if d.obligation != r.ObligationID || v.actor != r.Operator.ID() || v.reason != r.Reason ||
				v.reject != r.Reject && o.status != ledger.StatusClosed {
				return refuse(&ledger.NonceError{Nonce: r.Nonce}), true
			}
			again := mAnswer{value: ledger.Decided{ObligationID: o.id, DecisionID: d.id, Epoch: o.epoch, Operator: v.actor, Status: o.status}}
			if v.reject != r.Reject { // where a newer draft held the pair, to reject was no other thing than to revoke
				again.refusals, again.either = []error{&ledger.NonceError{Nonce: r.Nonce}}, true
			}
			return again, true
		}
	}
	return mAnswer{}, false
}

// void takes an approval back: no dead end is left.
func (m *model) void(now time.Time, d *mDecision, v mVoiding) {
	o := m.of(d)
	d.voided = &v
	if d.claim.active() {
		d.claim.move(now, ledger.ClaimCancelled)
	}
	o.epoch = advance(now, o.epoch)
	if slices.ContainsFunc(m.obligations, func(p *mObligation) bool {
		return p.status == ledger.StatusDrafted && p.onPair(o.counterparty, o.channel)
	}) {
		o.status, o.overtaken = ledger.StatusClosed, true
	} else {
		o.status, o.deadline = ledger.StatusDrafted, 0
	}
	kind := v.kind
	if kind == "cancelled" {
		kind = "revoked"
	}
	m.tell(o, kind)
	m.event(v.kind, o.id, d.id)
}

func (m *model) steer(op operator.Operator, id int64, note string) mAnswer {
	switch {
	case !op.Known():
		return refuse(ledger.ErrNoOperator)
	case strings.TrimSpace(note) == "":
		return refuse(&ledger.InputError{Field: "note"})
	}
	o := m.obligation(id)
	if o == nil {
		return refuse(&ledger.NotFoundError{ObligationID: id})
	}
	if o.status != ledger.StatusDrafted {
		return refuse(m.decidedBy(o))
	}
	o.deadline = 0
	m.tell(o, "steered")
	m.event("steered", o.id, 0)
	return mAnswer{value: ledger.Decided{ObligationID: o.id, Epoch: o.epoch, Operator: op.ID(), Status: o.status}}
}

func (m *model) withdraw(agent string, id, epoch int64) mAnswer {
	o := m.obligation(id)
	if o == nil {
		return refuse(&ledger.NotFoundError{ObligationID: id})
	}
	var why []error
	if filed := o.newest().Agent; agent == "" || filed != agent {
		why = append(why, &ledger.WrongAgentError{ObligationID: id, Agent: agent, Filed: filed})
	}
	if o.epoch != epoch {
		why = append(why, &ledger.StaleEpochError{ObligationID: id, Want: o.epoch, Got: epoch})
	}
	if o.status != ledger.StatusDrafted {
		why = append(why, m.decidedBy(o))
	}
	if why != nil {
		return refuse(why...)
	}
	o.status = ledger.StatusClosed
	m.event("withdrawn", o.id, 0)
	return mAnswer{value: ledger.Decided{ObligationID: o.id, Epoch: o.epoch, Operator: agent, Status: o.status}}
}

func (m *model) closeByHand(now time.Time, op operator.Operator, id int64, reason string) mAnswer {
	switch {
	case !op.Known():
		return refuse(ledger.ErrNoOperator)
	case strings.TrimSpace(reason) == "":
		return refuse(&ledger.InputError{Field: "reason"})
	}
	o := m.obligation(id)
	if o == nil {
		return refuse(&ledger.NotFoundError{ObligationID: id})
	}
	if d := m.holding(o); d != nil {
		return refuse(&ledger.HeldError{ObligationID: id, State: d.claim.state})
	}
	if o.status == ledger.StatusSent || o.status == ledger.StatusClosed {
		return refuse(m.decidedBy(o))
	}
	var decision int64
	if o.status == ledger.StatusApproved {
		d := m.standing(o)
		decision = d.id
		d.voided = &mVoiding{kind: "closed", actor: op.ID(), reason: reason}
	}
	o.byHand = append(slices.Clip(o.byHand), fmt.Sprintf("receipt %d %d manual_notice", id, decision))
	o.status, o.epoch = ledger.StatusClosed, advance(now, o.epoch)
	m.tell(o, "superseded")
	m.event("closed", o.id, decision)
	return mAnswer{value: ledger.Decided{ObligationID: id, DecisionID: decision, Epoch: o.epoch, Operator: op.ID(), Status: o.status}}
}
