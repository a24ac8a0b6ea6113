package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"countersign/plaintext"
)

// current is an obligation with its newest filing: what an operator decides on.
type current struct {
	id, epoch              int64
	status                 Status
	direction              string
	counterparty, platform string // platform is obligations.source
	channel                string
	draft                  struct{ text, sha256, platform, channel, thread string }
	autoSendAfter          int64
	filing                 struct {
		id, epoch                               int64
		agent, user                             string
		counterparty, platform, channel, thread string
		subject, text, sha256, envelope         string
		priority, markers                       string
	}
}

// load reads an obligation, or *NotFoundError. Obligations without a draft (open signals) have an empty filing.
func load(ctx context.Context, tx *txn, id int64) (*current, error) {
	c := &current{id: id}
	err := tx.QueryRowContext(ctx, `
		SELECT o.updated_at, o.status, o.direction, o.counterparty, o.source, o.channel,
			coalesce(d.draft_text, ''), coalesce(d.draft_sha256, ''), coalesce(d.origin_platform, ''), coalesce(d.origin_channel, ''),
			coalesce(d.origin_thread, ''), coalesce(d.auto_send_after, 0),
			coalesce(f.id, 0), coalesce(f.epoch, 0), coalesce(f.agent, ''), coalesce(f.origin_user, ''),
			coalesce(f.counterparty, ''), coalesce(f.platform, ''), coalesce(f.channel, ''), coalesce(f.thread, ''),
			coalesce(f.subject, ''), coalesce(f.text, ''), coalesce(f.text_sha256, ''), coalesce(f.envelope_sha256, ''),
			coalesce(f.priority, ''), coalesce(f.markers, '[]')
		FROM obligations o
		LEFT JOIN obligation_drafts d ON d.obligation_id = o.id
		LEFT JOIN filings f ON f.id = (SELECT max(id) FROM filings WHERE obligation_id = o.id)
		WHERE o.id = $1`, id).Scan(
		&c.epoch, &c.status, &c.direction, &c.counterparty, &c.platform, &c.channel,
		&c.draft.text, &c.draft.sha256, &c.draft.platform, &c.draft.channel,
		&c.draft.thread, &c.autoSendAfter,
		&c.filing.id, &c.filing.epoch, &c.filing.agent, &c.filing.user,
		&c.filing.counterparty, &c.filing.platform, &c.filing.channel, &c.filing.thread,
		&c.filing.subject, &c.filing.text, &c.filing.sha256, &c.filing.envelope,
		&c.filing.priority, &c.filing.markers)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, &NotFoundError{id}
	}
	return c, err
}

// consistent checks that the draft row, its filing and their hashes say the same: what an operator was shown is what is stored.
func (c *current) consistent() error {
	envelope, err := Envelope{c.filing.platform, c.filing.channel, c.filing.thread, c.filing.subject, c.filing.sha256}.Hash()
	if err != nil {
		return err
	}
	f, d := c.filing, c.draft
	_, readable := readMarkers(f.markers)
	for _, check := range []struct {
		field string
		ok    bool
	}{
		{"it has no filing", f.id != 0},
		{"its epoch is before its filing's", f.epoch <= c.epoch}, // taking an approval back advances it without a filing
		{"its markers can't be read", readable},
		{"its counterparty is not the filed one", f.counterparty == c.counterparty},
		{"its text is not the filed one", d.text == f.text},
		{"its hash is not 64 lower-case hex digits", isHash(d.sha256)},
		{"its hash is not the filed one", d.sha256 == f.sha256},
		{"its hash does not match its text", d.sha256 == HashText(d.text)},
		{"its platform is not the filed one", d.platform == f.platform && c.platform == f.platform},
		{"its channel is not the filed one", d.channel == f.channel && c.channel == f.channel},
		{"its thread is not the filed one", d.thread == f.thread},
		{"its envelope hash does not match its envelope", f.envelope == envelope},
		{"it has characters that cleaning removes", c.clean()},
	} {
		if !check.ok {
			return &MismatchError{c.id, check.field}
		}
	}
	return nil
}

// clean tells whether what would go out is as Clean leaves it. Drafts of another implementation never went through it.
func (c *current) clean() bool {
	f := c.filing
	for _, line := range []string{f.platform, f.channel, f.thread, f.subject} {
		if cleaned, err := plaintext.Line(line); err != nil || cleaned != line {
			return false
		}
	}
	cleaned, err := plaintext.Text(f.text)
	return err == nil && cleaned == f.text
}

// activeClaim returns the state of the claim that holds the obligation, or "".
func activeClaim(ctx context.Context, tx *txn, obligation int64) (ClaimState, error) {
	var state ClaimState
	err := tx.QueryRowContext(ctx, `
		SELECT state FROM obligation_delivery_claims
		WHERE obligation_id = $1 AND state IN ('claimed', 'dispatching', 'unknown')`, obligation).Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return state, err
}

// maxEpoch is the largest epoch, which JSON readers with doubles still tell from its neighbours. Source: RFC 8259 section 6.
const maxEpoch = 1<<53 - 1

// nextEpoch strictly advances, even when the clock runs backwards. Past maxEpoch, where only raw SQL brings an obligation, its answer is
// one that the guards refuse, and never one that was used before.
func nextEpoch(now, previous int64) int64 { return max(now, min(previous, maxEpoch)+1) }

// backToDrafted takes an approval's obligation back to where it can be decided again: a new epoch, no deadline, so that no machine
// approves what a person took back. Where a newer draft holds the pair, or no epoch is left, this one is closed. One that is not approved
// (somebody changed it behind the ledger's back) stays as it is: it waits, or is finished.
func backToDrafted(ctx context.Context, tx *txn, c *current) error {
	if c.status != StatusApproved {
		return nil
	}
	to := StatusDrafted
	overtaken, err := exists(ctx, tx, `
		SELECT 1 FROM obligations WHERE status = 'drafted' AND counterparty = $1 AND channel = $2`, c.counterparty, c.channel)
	if err != nil {
		return err
	}
	if overtaken || c.epoch >= maxEpoch {
		to = StatusClosed
	}
	if err := setStatus(ctx, tx, c, to, nextEpoch(tx.sec, c.epoch)); err != nil {
		return err
	}
	if to == StatusDrafted && c.autoSendAfter != 0 {
		return clearDeadline(ctx, tx, c.id)
	}
	return nil
}

// setStatus moves an obligation from the status and epoch it was read with; whoever came between wins. Closing needs no new epoch, so that
// it is a way out where none is left.
func setStatus(ctx context.Context, tx *txn, c *current, to Status, epoch int64) error {
	if to == StatusClosed {
		epoch = max(c.epoch, min(epoch, maxEpoch))
	}
	err := tx.exec(ctx, `
		UPDATE obligations SET status = $1, updated_at = $2,
			last_touch_ts = CASE WHEN last_touch_ts > $3 THEN last_touch_ts ELSE $3 END
		WHERE id = $4 AND status = $5 AND updated_at = $6`,
		to, epoch, tx.sec, c.id, c.status, c.epoch)
	if err != nil {
		return fmt.Errorf("obligation %d to %s: %w", c.id, to, err)
	}
	c.status, c.epoch = to, epoch
	return nil
}

func clearDeadline(ctx context.Context, tx *txn, obligation int64) error {
	return tx.exec(ctx, `UPDATE obligation_drafts SET auto_send_after = NULL WHERE obligation_id = $1`, obligation)
}
