package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Gates are what the gates before the ledger (policy, destination, baseline) found out about a draft.
type Gates struct {
	Markers  []string // stamped on the draft
	Warnings []string // for the filer alone
}

// Filed is what became of a filing.
type Filed struct {
	ObligationID   int64    `json:"obligation_id"`
	Epoch          int64    `json:"epoch"`
	DraftSHA256    string   `json:"draft_sha256"`
	EnvelopeSHA256 string   `json:"envelope_sha256"`
	Refiled        bool     `json:"refiled"`
	Status         Status   `json:"status"`
	Priority       Priority `json:"priority"`
	Cleaned        bool     `json:"cleaned"`
	Markers        []string `json:"markers"`
	Warnings       []string `json:"warnings"`
	Notice         Notice   `json:"notice"`
	Replayed       bool     `json:"replayed"` // the idempotency key was used before: nothing was filed, and this is that result
}

// File stores a cleaned draft as an obligation that waits for an operator. It authorises nothing. One drafted obligation exists for
// each (counterparty, channel): a second filing replaces its draft and advances its epoch, which voids every decision on the old one.
func (l *Ledger) File(ctx context.Context, draft Draft, gates Gates) (Filed, error) {
	if draft.sha256 == "" {
		return Filed{}, &InputError{Field: "draft", Reason: "did not go through Clean"}
	}
	var out Filed
	f := draft.filing
	err := l.do(ctx, step{verb: "file", actor: f.Agent}, func(ctx context.Context, tx *txn) error {
		repeated, err := repeatedFiling(ctx, tx, draft, &out)
		if err != nil || repeated {
			return err
		}
		return l.file(ctx, tx, draft, gates, &out)
	})
	return out, err
}

// Repeated returns the result of an earlier filing with the same idempotency key and envelope, with its current status, and whether
// there was one. It lets the gates be skipped for a repetition; File checks again in its own transaction.
func (l *Ledger) Repeated(ctx context.Context, draft Draft) (out Filed, repeated bool, err error) {
	err = l.do(ctx, step{verb: "file", actor: draft.filing.Agent}, func(ctx context.Context, tx *txn) error {
		repeated, err = repeatedFiling(ctx, tx, draft, &out)
		return err
	})
	return out, repeated, err
}

func repeatedFiling(ctx context.Context, tx *txn, draft Draft, out *Filed) (bool, error) {
	f := draft.filing
	if f.IdempotencyKey == "" {
		return false, nil
	}
	var obligation int64
	var counterparty, request, result string
	var status Status
	err := tx.QueryRowContext(ctx, `
		SELECT f.obligation_id, f.counterparty, f.request_sha256, f.result, o.status
		FROM filings f JOIN obligations o ON o.id = f.obligation_id
		WHERE f.agent = $1 AND f.idempotency_key = $2`, f.Agent, f.IdempotencyKey).Scan(
		&obligation, &counterparty, &request, &result, &status)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if request != draft.request || counterparty != f.Counterparty {
		return false, &IdempotencyConflictError{Agent: f.Agent, Key: f.IdempotencyKey, ObligationID: obligation}
	}
	if err := json.Unmarshal([]byte(result), out); err != nil {
		return false, fmt.Errorf("filing of obligation %d: %w", obligation, err)
	}
	out.Status, out.Replayed = status, true
	return true, nil
}

func (l *Ledger) file(ctx context.Context, tx *txn, draft Draft, gates Gates, out *Filed) error {
	f := draft.filing
	if err := checkSignal(ctx, tx, f.Signal); err != nil {
		return err
	}
	pair, err := readPair(ctx, tx, f.Counterparty, f.Channel)
	if err != nil {
		return err
	}
	markers, err := marks(ctx, tx, draft, gates.Markers, pair)
	if err != nil {
		return err
	}
	if err := l.opts.Agents.allow(ctx, tx, f.Agent, pair.drafted != 0); err != nil {
		return err
	}
	*out = Filed{DraftSHA256: draft.sha256, EnvelopeSHA256: draft.envelope, Refiled: pair.drafted != 0, Status: StatusDrafted,
		Priority: f.Priority, Cleaned: draft.cleaned, Markers: markers, Warnings: append([]string{}, gates.Warnings...), Notice: tx.route()}
	for _, id := range pair.approved {
		out.Warnings = append(out.Warnings, fmt.Sprintf("obligation %d for the same counterparty and channel is approved and not yet sent; it is left alone", id))
	}
	if err := upsert(ctx, tx, draft, pair, markers, out); err != nil {
		return err
	}
	if err := know(ctx, tx, f.Counterparty); err != nil {
		return err
	}
	return announce(ctx, tx, draft, out)
}

func checkSignal(ctx context.Context, tx *txn, id int64) error {
	if id == 0 {
		return nil
	}
	known, err := exists(ctx, tx, `SELECT 1 FROM obligations WHERE id = $1`, id)
	if err == nil && !known {
		err = &InputError{Field: "signal", Reason: fmt.Sprintf("is %d, which is no obligation; pass the id that `signal` answered", id)}
	}
	return err
}

// pair is what the ledger holds for a counterparty and channel.
type pair struct {
	drafted    int64   // the obligation whose draft would be replaced; 0 is none
	approved   []int64 // approved, not yet claimed
	unresolved []int64 // unknown and settled
}

// readPair refuses a filing while an active claim holds the pair, unless an operator settled it.
func readPair(ctx context.Context, tx *txn, counterparty, channel string) (pair, error) {
	var p pair
	rows, err := tx.QueryContext(ctx, `
		SELECT o.id, o.status, coalesce(c.state, ''), s.decision_id IS NOT NULL
		FROM obligations o
		LEFT JOIN obligation_delivery_claims c ON c.obligation_id = o.id AND c.state IN ('claimed', 'dispatching', 'unknown')
		LEFT JOIN settlements s ON s.decision_id = c.decision_id
		WHERE o.counterparty = $1 AND o.channel = $2 AND (o.status = 'drafted' OR o.status = 'approved')
		ORDER BY o.id`, counterparty, channel)
	if err != nil {
		return p, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var status Status
		var claim ClaimState
		var settled bool
		if err := rows.Scan(&id, &status, &claim, &settled); err != nil {
			return p, err
		}
		switch {
		case status == StatusDrafted:
			p.drafted = id
		case claim == "":
			p.approved = append(p.approved, id)
		case settled:
			p.unresolved = append(p.unresolved, id)
		default:
			return p, &HeldError{id, claim}
		}
	}
	return p, rows.Err()
}

// upsert writes obligation, filing and draft, in the order that the guards ask for.
func upsert(ctx context.Context, tx *txn, draft Draft, p pair, markers []string, out *Filed) error {
	f := draft.filing
	if f.Summary == "" {
		f.Summary = "draft for " + f.Counterparty
	}
	summary := summaryWithHash(f.Summary, draft.sha256)
	var replaced string
	var err error
	if p.drafted == 0 {
		err = insertObligation(ctx, tx, f, summary, out)
	} else {
		replaced, err = refileObligation(ctx, tx, p.drafted, f, summary, out)
	}
	if err != nil {
		return err
	}
	row := contextWithMarks(markers, f.Context)
	if err := insertFiling(ctx, tx, draft, summary, row, markers, out); err != nil {
		return err
	}
	if replaced != "" && replaced != f.Agent {
		body := fmt.Sprintf("Your draft was superseded: agent %s filed another text for the same counterparty and channel (sha %.8s).", f.Agent, draft.sha256)
		if err := followUp(ctx, tx, replaced, out.ObligationID, "superseded", body); err != nil {
			return err
		}
	}
	return writeDraft(ctx, tx, draft, row, out)
}

func insertObligation(ctx context.Context, tx *txn, f Filing, summary string, out *Filed) error {
	out.Epoch = nextEpoch(tx.sec, 0)
	return tx.QueryRowContext(ctx, `
		INSERT INTO obligations (counterparty, source, channel, direction, status, summary, opened_ts, last_touch_ts, updated_at)
		VALUES ($1, $2, $3, $4, 'drafted', $5, $6, $6, $7) RETURNING id`,
		f.Counterparty, f.Platform, f.Channel, weOweThem, summary, tx.sec, out.Epoch).Scan(&out.ObligationID)
}

// refileObligation advances the epoch of a waiting obligation and returns the agent whose draft is replaced.
func refileObligation(ctx context.Context, tx *txn, id int64, f Filing, summary string, out *Filed) (string, error) {
	c, err := load(ctx, tx, id)
	if err != nil {
		return "", err
	}
	out.ObligationID, out.Epoch = id, nextEpoch(tx.sec, c.epoch)
	return c.filing.agent, tx.exec(ctx, `
		UPDATE obligations SET source = $1, direction = $2, summary = $3, updated_at = $4,
			last_touch_ts = CASE WHEN last_touch_ts > $5 THEN last_touch_ts ELSE $5 END
		WHERE id = $6 AND status = 'drafted' AND updated_at = $7`,
		f.Platform, weOweThem, summary, out.Epoch, tx.sec, id, c.epoch)
}

func insertFiling(ctx context.Context, tx *txn, draft Draft, summary, shown string, markers []string, out *Filed) error {
	f := draft.filing
	marked, err := json.Marshal(markers)
	if err != nil {
		return err
	}
	result, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return tx.exec(ctx, `
		INSERT INTO filings (obligation_id, epoch, agent, idempotency_key, counterparty, platform, channel, thread, origin_user, subject,
			text, text_sha256, envelope_sha256, request_sha256, priority, summary, context, markers, auto_send_after, signal_obligation_id,
			forced, result, filed_us)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)`,
		out.ObligationID, out.Epoch, f.Agent, orNull(f.IdempotencyKey), f.Counterparty, f.Platform, f.Channel, orNull(f.Thread), orNull(f.User), orNull(f.Subject),
		f.Text, draft.sha256, draft.envelope, draft.request, f.Priority, summary, shown, string(marked), idOrNull(f.AutoSendAfter), idOrNull(f.Signal),
		asInt(f.ForceDespiteSignedContract), string(result), tx.us)
}

func writeDraft(ctx context.Context, tx *txn, draft Draft, shown string, out *Filed) error {
	f := draft.filing
	args := []any{out.ObligationID, f.Text, shown, f.Platform, f.Channel, orNull(f.Thread), orNull(f.User), f.Priority, draft.sha256,
		tx.sec, idOrNull(f.AutoSendAfter), idOrNull(f.Signal)}
	if out.Refiled {
		n, err := tx.touch(ctx, `
			UPDATE obligation_drafts SET draft_text = $2, context = $3, origin_platform = $4, origin_channel = $5, origin_thread = $6,
				origin_user = $7, priority = $8, draft_sha256 = $9,
				updated_ts = CASE WHEN updated_ts > $10 THEN updated_ts ELSE $10 END,
				auto_send_after = $11, signal_obligation_id = $12
			WHERE obligation_id = $1`, args...)
		if err != nil || n == 1 {
			return err
		} // else raw SQL made an obligation that waits without a draft
	}
	return tx.exec(ctx, `
		INSERT INTO obligation_drafts (obligation_id, draft_text, context, origin_platform, origin_channel, origin_thread, origin_user,
			priority, draft_sha256, created_ts, updated_ts, auto_send_after, signal_obligation_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12)`, args...)
}

// announce queues the internal notice and writes the audit row of a filing.
func announce(ctx context.Context, tx *txn, draft Draft, out *Filed) error {
	f := draft.filing
	body := fmt.Sprintf("Draft filed for approval (%s, sha %.8s). Waiting on operator.", out.Priority, out.DraftSHA256)
	return record(ctx, tx, event{name: "staged", source: sourceFiling, actor: f.Agent, obligation: out.ObligationID, notice: body, detail: map[string]any{
		"epoch": out.Epoch, "draft_sha256": out.DraftSHA256, "envelope_sha256": out.EnvelopeSHA256, "refiled": out.Refiled,
		"priority": out.Priority, "markers": out.Markers, "forced": f.ForceDespiteSignedContract, "cleaned": out.Cleaned,
	}})
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
