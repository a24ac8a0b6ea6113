package ledger_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// Sections 4 and 7 of the contract: what becomes of an approval.

func (c *mClaim) move(now time.Time, to ledger.ClaimState) {
	c.state, c.touched = to, max(now.Unix(), c.touched)
}

// expired: a clock that runs back makes nothing younger than new.
func (m *model) expired(now time.Time, d *mDecision) error {
	limit := m.maxAge[m.of(d).platform]
	age := time.Duration(max(now.Unix()-d.at.Unix(), 0)) * time.Second
	if limit == 0 || age <= limit {
		return nil
	}
	return &ledger.ExpiredError{ObligationID: d.obligation, DecisionID: d.id, Age: age, Limit: limit}
}

func (m *model) claim(now time.Time, id int64, worker string) mAnswer {
	d := m.decision(id)
	if d == nil {
		return refuse(&ledger.NotFoundError{})
	}
	o := m.of(d)
	var why []error
	if c := m.holding(o); c != nil {
		why = append(why, &ledger.HeldError{ObligationID: o.id, State: c.claim.state})
	}
	if d.voided != nil {
		why = append(why, &ledger.VoidedError{ObligationID: o.id, DecisionID: id, Kind: d.voided.kind, Actor: d.voided.actor})
	}
	if d.voided == nil && d.epoch != o.epoch && d.verdict == ledger.Approve { // a voided one is stale too, but that says less
		why = append(why, &ledger.StaleEpochError{ObligationID: o.id, Want: o.epoch, Got: d.epoch})
	}
	if d.voided == nil && (d.verdict != ledger.Approve || o.status != ledger.StatusApproved || d.claim != nil) {
		why = append(why, &ledger.MismatchError{ObligationID: o.id})
	}
	if why != nil {
		return refuse(why...)
	}
	if old := m.expired(now, d); old != nil {
		m.void(now, d, mVoiding{kind: "expired", actor: systemName})
		return refuse(old)
	}
	d.claim = &mClaim{worker: worker, generation: 1}
	d.claim.move(now, ledger.ClaimClaimed)
	m.event("claimed", o.id, id)
	return d.handOut()
}

// handOut answers with the claim as its holder gets it.
func (d *mDecision) handOut() mAnswer {
	want := ledger.Claim{ObligationID: d.obligation, DecisionID: d.id, Worker: d.claim.worker, Generation: d.claim.generation}
	return mAnswer{accept: func(got any) error {
		c := got.(ledger.Claim)
		if len(c.Token) < 32 || d.claim.token != "" && d.claim.token != c.Token {
			return errWrongToken
		}
		d.claim.token, c.Token = c.Token, ""
		return differ(c, want)
	}}
}

func (m *model) adopt(id int64, dead, worker string) mAnswer {
	d := m.decision(id)
	if d == nil || d.claim == nil {
		return refuse(&ledger.LostClaimError{DecisionID: id})
	}
	if d.claim.state != ledger.ClaimClaimed || d.claim.worker != dead {
		return refuse(lost(d))
	}
	d.claim.worker = worker
	d.claim.generation++
	m.event("adopted", d.obligation, id)
	return d.handOut()
}

func lost(d *mDecision) error {
	return &ledger.LostClaimError{ObligationID: d.obligation, DecisionID: d.id, State: d.claim.state}
}

// held returns the decision whose claim this is, or why it isn't: token and generation both count.
func (m *model) held(c ledger.Claim) (*mDecision, error) {
	d := m.decision(c.DecisionID)
	if d == nil || d.claim == nil {
		return nil, &ledger.LostClaimError{DecisionID: c.DecisionID}
	}
	if !d.heldBy(c) {
		return nil, lost(d)
	}
	return d, nil
}

func (d *mDecision) heldBy(c ledger.Claim) bool {
	return c == ledger.Claim{ObligationID: d.obligation, DecisionID: d.id, Token: d.claim.token, Worker: d.claim.worker, Generation: d.claim.generation}
}

func (m *model) begin(now time.Time, c ledger.Claim) mAnswer {
	d, err := m.held(c)
	if err != nil {
		return refuse(err)
	}
	if d.claim.state != ledger.ClaimClaimed {
		return refuse(lost(d))
	}
	if old := m.expired(now, d); old != nil {
		m.void(now, d, mVoiding{kind: "expired", actor: systemName})
		return refuse(old)
	}
	d.claim.move(now, ledger.ClaimDispatching)
	m.event("dispatching", d.obligation, d.id)
	f := d.filing
	want := ledger.Payload{ObligationID: d.obligation, DecisionID: d.id, Counterparty: f.Counterparty, Platform: f.Platform, Channel: f.Channel,
		Thread: f.Thread, Subject: f.Subject, Text: f.Text, TextSHA256: f.hash, EnvelopeSHA256: f.envelope, Operator: d.operator,
		BegunAt: now.Truncate(time.Microsecond)}
	return mAnswer{accept: func(got any) error {
		p := got.(ledger.Payload)
		d.claim.key, p.Key = p.Key, ""
		if len(d.claim.key) < 16 || strings.Contains(d.claim.key, d.claim.token) {
			return errWrongToken
		}
		p.BegunAt = p.BegunAt.In(want.BegunAt.Location())
		return differ(p, want)
	}}
}

func (m *model) cancel(now time.Time, c ledger.Claim, reason string) mAnswer {
	d, err := m.held(c)
	if err != nil {
		return refuse(err)
	}
	if d.claim.state != ledger.ClaimClaimed {
		return refuse(lost(d))
	}
	m.void(now, d, mVoiding{kind: "cancelled", actor: c.Worker, reason: reason})
	return mAnswer{}
}

func (m *model) cancelByOperator(now time.Time, op operator.Operator, id int64, reason string) mAnswer {
	if !op.Known() {
		return refuse(ledger.ErrNoOperator)
	}
	o := m.obligation(id)
	if o == nil {
		return refuse(&ledger.NotFoundError{ObligationID: id})
	}
	d := m.holding(o)
	if d == nil {
		return refuse(&ledger.StatusError{ObligationID: id})
	}
	if d.claim.state != ledger.ClaimClaimed {
		return refuse(&ledger.TooLateError{ObligationID: id, State: d.claim.state})
	}
	m.void(now, d, mVoiding{kind: "cancelled", actor: op.ID(), reason: reason})
	return mAnswer{value: ledger.Decided{ObligationID: id, DecisionID: d.id, Epoch: o.epoch, Operator: op.ID(), Status: o.status}}
}

func (m *model) complete(now time.Time, c ledger.Claim, r ledger.Receipt) mAnswer {
	if strings.TrimSpace(r.Coordinate) == "" {
		return refuse(&ledger.InputError{Field: "coordinate"})
	}
	d, err := m.held(c)
	if err != nil {
		return refuse(err)
	}
	switch d.claim.state {
	case ledger.ClaimDelivered:
		return m.sameReceipt(d, r)
	case ledger.ClaimDispatching:
		m.deliver(now, d, r, "delivered", false)
		return mAnswer{}
	}
	return refuse(lost(d))
}

// sameReceipt: what a repetition adds is that the text was altered.
func (m *model) sameReceipt(d *mDecision, r ledger.Receipt) mAnswer {
	if d.claim.coordinate != r.Coordinate {
		return refuse(&ledger.ContradictionError{ObligationID: d.obligation, DecisionID: d.id})
	}
	if r.Altered && !d.claim.altered {
		d.claim.altered = true
		m.attempt(d, ledger.Confirmed)
		m.event("altered", d.obligation, d.id)
	}
	return mAnswer{}
}

func (m *model) deliver(now time.Time, d *mDecision, r ledger.Receipt, event string, evidence bool) {
	o := m.of(d)
	d.claim.move(now, ledger.ClaimDelivered)
	d.claim.coordinate, d.claim.evidence, d.claim.outcome, d.claim.altered = r.Coordinate, evidence, ledger.Confirmed, r.Altered
	o.status = ledger.StatusSent
	m.attempt(d, ledger.Confirmed)
	m.tell(o, "sent")
	if r.Altered {
		m.notice(o, "altered")
	}
	m.event(event, o.id, d.id)
}

func (m *model) attempt(d *mDecision, outcome ledger.Outcome) {
	m.attempts = append(m.attempts, "attempt "+num(d.id)+" "+string(outcome))
}

func (m *model) markUnknown(now time.Time, c ledger.Claim, f ledger.Failure) mAnswer {
	d, err := m.held(c)
	if err != nil {
		return refuse(err)
	}
	switch d.claim.state {
	case ledger.ClaimUnknown:
		return mAnswer{}
	case ledger.ClaimDispatching:
		m.unknown(now, d, f.Outcome)
		return mAnswer{}
	}
	return refuse(lost(d))
}

// unknown: an outcome that nobody recognises is ambiguous.
func (m *model) unknown(now time.Time, d *mDecision, outcome ledger.Outcome) {
	if outcome != ledger.Refused {
		outcome = ledger.Ambiguous
	}
	o := m.of(d)
	d.claim.move(now, ledger.ClaimUnknown)
	d.claim.outcome = outcome
	m.attempt(d, outcome)
	m.tell(o, "held")
	m.event("unknown", o.id, d.id)
}

func (m *model) markDead(now time.Time, id int64, dead, by string) mAnswer {
	d := m.decision(id)
	if d == nil || d.claim == nil {
		return refuse(&ledger.LostClaimError{DecisionID: id})
	}
	if d.claim.state != ledger.ClaimDispatching || d.claim.worker != dead {
		return refuse(lost(d))
	}
	d.claim.worker = by
	d.claim.generation++
	m.unknown(now, d, ledger.Ambiguous)
	return mAnswer{}
}

func (m *model) confirmSpooled(now time.Time, id int64, worker string, r ledger.Receipt, authentic bool) mAnswer {
	if strings.TrimSpace(r.Coordinate) == "" {
		return refuse(&ledger.InputError{Field: "coordinate"})
	}
	d := m.decision(id)
	if d == nil || d.claim == nil {
		return refuse(&ledger.LostClaimError{DecisionID: id})
	}
	if !authentic {
		return refuse(&ledger.MismatchError{ObligationID: d.obligation})
	}
	switch d.claim.state {
	case ledger.ClaimDelivered:
		return m.sameReceipt(d, r)
	case ledger.ClaimDispatching:
		m.deliver(now, d, r, "delivered", false)
		return mAnswer{}
	case ledger.ClaimUnknown:
		m.deliver(now, d, r, "reconciled", true)
		d.claim.spooled = true
		return mAnswer{}
	}
	return refuse(lost(d))
}

// findUnknown is what reconcile and settle begin with.
func (m *model) findUnknown(op operator.Operator, id int64, words map[string]string) (*mDecision, []error) {
	if !op.Known() {
		return nil, []error{ledger.ErrNoOperator}
	}
	o := m.obligation(id)
	if o == nil {
		return nil, append(blank(words), &ledger.NotFoundError{ObligationID: id})
	}
	d := m.holding(o)
	if d == nil || d.claim.state != ledger.ClaimUnknown {
		return nil, append(blank(words), &ledger.StatusError{ObligationID: id})
	}
	return d, blank(words)
}

func blank(words map[string]string) (why []error) {
	for field, value := range words {
		if strings.TrimSpace(value) == "" {
			why = append(why, &ledger.InputError{Field: field})
		}
	}
	return why
}

func (m *model) reconcile(now time.Time, op operator.Operator, id int64, coordinate, evidence string) mAnswer {
	d, why := m.findUnknown(op, id, map[string]string{"coordinate": coordinate, "evidence": evidence})
	if why != nil {
		return refuse(why...)
	}
	m.deliver(now, d, ledger.Receipt{Coordinate: coordinate}, "reconciled", true)
	return mAnswer{value: ledger.Decided{ObligationID: id, DecisionID: d.id, Epoch: m.of(d).epoch, Operator: op.ID(), Status: ledger.StatusSent}}
}

func (m *model) settle(op operator.Operator, id int64, evidence string) mAnswer {
	d, why := m.findUnknown(op, id, map[string]string{"evidence": evidence})
	if d != nil && d.claim.settledBy != "" {
		why = append(why, &ledger.StatusError{ObligationID: id})
	}
	if why != nil {
		return refuse(why...)
	}
	o := m.of(d)
	d.claim.settledBy = op.ID()
	m.tell(o, "held")
	m.event("settled", id, d.id)
	return mAnswer{value: ledger.Decided{ObligationID: id, DecisionID: d.id, Epoch: o.epoch, Operator: op.ID(), Status: o.status}}
}

func (m *model) declareDead(op operator.Operator, worker string) mAnswer {
	switch {
	case !op.Known():
		return refuse(ledger.ErrNoOperator)
	case worker == "":
		return refuse(&ledger.InputError{Field: "worker"})
	}
	m.event("declared_dead", 0, 0)
	return mAnswer{}
}

func (m *model) acknowledge(agent string, ids []int64) mAnswer {
	for _, id := range ids {
		if id < 1 || id > int64(len(m.told)) || m.told[id-1].agent != agent {
			return refuse(&ledger.InputError{Field: "ack"})
		}
	}
	for _, id := range ids {
		m.told[id-1].acked = true
	}
	return mAnswer{}
}

// clone is a deep copy; filings are never changed once their result is learned.
func (m *model) clone() *model {
	out := &model{maxAge: maps.Clone(m.maxAge), told: slices.Clone(m.told), attempts: slices.Clone(m.attempts),
		notices: slices.Clone(m.notices), events: slices.Clone(m.events)}
	for _, o := range m.obligations {
		c := *o
		out.obligations = append(out.obligations, &c)
	}
	for _, d := range m.decisions {
		c := *d
		if d.claim != nil {
			claim := *d.claim
			c.claim = &claim
		}
		out.decisions = append(out.decisions, &c)
	}
	return out
}
