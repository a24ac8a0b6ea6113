package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// approved is an approval as the ledger holds it now, with everything it must still equal.
type approved struct {
	c          *current
	decision   int64
	operator   string
	decidedSec int64
	snapshot   struct {
		epoch                                   int64
		text, sha256, platform, channel, thread string
	}
	envelope struct {
		filing                                           int64
		counterparty, platform, channel, thread, subject string
		sha256, envelope                                 string
		approvedUS                                       int64
	}
}

// loadApproved reads a decision's approval. A decision that approves nothing is *NotFoundError or *MismatchError.
func loadApproved(ctx context.Context, tx *txn, decision int64) (*approved, error) {
	a := &approved{decision: decision}
	var obligation int64
	var verdict Verdict
	s, e := &a.snapshot, &a.envelope
	err := tx.QueryRowContext(ctx, `
		SELECT v.obligation_id, v.decision, v.operator, v.decided_ts,
			coalesce(s.draft_epoch, 0), coalesce(s.draft_text, ''), coalesce(s.draft_sha256, ''), coalesce(s.origin_platform, ''),
			coalesce(s.origin_channel, ''), coalesce(s.origin_thread, ''),
			coalesce(e.filing_id, 0), coalesce(e.counterparty, ''), coalesce(e.platform, ''), coalesce(e.channel, ''), coalesce(e.thread, ''),
			coalesce(e.subject, ''), coalesce(e.text_sha256, ''), coalesce(e.envelope_sha256, ''), coalesce(e.approved_us, 0)
		FROM obligation_decisions v
		LEFT JOIN obligation_approval_snapshots s ON s.decision_id = v.id AND s.obligation_id = v.obligation_id
		LEFT JOIN approval_envelopes e ON e.decision_id = v.id AND e.obligation_id = v.obligation_id
		WHERE v.id = $1`, decision).Scan(
		&obligation, &verdict, &a.operator, &a.decidedSec,
		&s.epoch, &s.text, &s.sha256, &s.platform,
		&s.channel, &s.thread,
		&e.filing, &e.counterparty, &e.platform, &e.channel, &e.thread,
		&e.subject, &e.sha256, &e.envelope, &e.approvedUS)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &NotFoundError{}
	}
	if err != nil {
		return nil, err
	}
	if a.c, err = load(ctx, tx, obligation); err != nil {
		return nil, err
	}
	if verdict != Approve {
		return nil, &MismatchError{obligation, "its decision is a rejection"}
	}
	return a, nil
}

// stillHolds checks everything that was approved against everything that the ledger holds now. It reports what a tampering or a change
// touched, as *VoidedError, *StaleEpochError or *MismatchError.
func (a *approved) stillHolds(ctx context.Context, tx *txn) error {
	if err := a.notVoided(ctx, tx); err != nil {
		return err
	}
	c, s, e := a.c, a.snapshot, a.envelope
	if s.epoch != 0 && s.epoch != c.epoch {
		return &StaleEpochError{ObligationID: c.id, Want: c.epoch, Got: s.epoch}
	}
	for _, check := range []struct {
		field string
		ok    bool
	}{
		{"its status is " + string(c.status), c.status == StatusApproved},
		{"its direction is " + c.direction, c.direction == weOweThem},
		{"its approval has no snapshot", s.epoch != 0},
		{"its approval has no envelope of this program; it was approved elsewhere", e.filing != 0},
		{"its text is not the approved one", c.draft.text == s.text},
		{"its hash is not the approved one", c.draft.sha256 == s.sha256 && e.sha256 == s.sha256},
		{"its platform is not the approved one", c.draft.platform == s.platform && c.platform == s.platform && e.platform == s.platform},
		{"its channel is not the approved one", c.draft.channel == s.channel && c.channel == s.channel && e.channel == s.channel},
		{"its thread is not the approved one", c.draft.thread == s.thread && e.thread == s.thread},
		{"its counterparty is not the approved one", c.counterparty == e.counterparty},
		{"its subject is not the approved one", c.filing.subject == e.subject},
		{"it was filed anew after its approval", c.filing.id == e.filing},
		{"its envelope is not the approved one", c.filing.envelope == e.envelope},
	} {
		if !check.ok {
			return &MismatchError{c.id, check.field}
		}
	}
	return c.consistent()
}

func (a *approved) notVoided(ctx context.Context, tx *txn) error {
	out := &VoidedError{ObligationID: a.c.id, DecisionID: a.decision}
	err := tx.QueryRowContext(ctx, `SELECT kind, actor FROM voided_approvals WHERE decision_id = $1`, a.decision).Scan(&out.Kind, &out.Actor)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return out
}

// expired tells whether the approval is older than the terms allow, at the time of use. A clock that runs back makes nothing younger
// than new.
func (a *approved) expired(tx *txn, terms Terms) error {
	age := time.Duration(max(tx.sec-a.decidedSec, 0)) * time.Second
	if terms.MaxAge <= 0 || age <= terms.MaxAge {
		return nil
	}
	return &ExpiredError{ObligationID: a.c.id, DecisionID: a.decision, Age: age, Limit: terms.MaxAge}
}

// takeOut voids an approval that can't be used any more, so that no dead end is left: the obligation waits for a new decision.
func (l *Ledger) takeOut(ctx context.Context, tx *txn, a *approved, kind string, cause error) error {
	return l.void(ctx, tx, a.c, voiding{decision: a.decision, kind: kind, actor: systemActor, reason: cause.Error()})
}

// systemActor is the name under which the ledger itself acts.
const systemActor = "countersign"
