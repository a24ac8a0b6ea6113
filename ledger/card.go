package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Kinds of cards.
const (
	CardDraft   = "draft"   // the obligation, on which it is decided
	CardUnknown = "unknown" // a delivery of which nobody knows whether it arrived
)

// CardRef names a card by where it stands: the channel's id and the message's timestamp, as the provider gave them.
type CardRef struct{ Channel, TS string }

// Card is a message in the internal channel that shows an obligation, and is edited as that changes.
type Card struct {
	ID           int64
	ObligationID int64
	DecisionID   int64 // of the unknown delivery; 0 for a draft
	Kind         string
	Team         string
	CardRef
}

// Part is one piece of a draft's text as it was shown: the piece itself, and the message that it is in.
type Part struct{ TS, Text string }

// View is what a card was made to show.
type View struct {
	CardID         int64
	Epoch          int64
	EnvelopeSHA256 string
	Parts          []Part // of the text, in order
	ContentSHA256  string // of all that was posted, so that an edit that changes nothing is left out
}

// ViewShown is a view as the ledger keeps it: the manifest of what was shown.
type ViewShown struct {
	ID             int64
	Epoch          int64
	TextSHA256     string
	EnvelopeSHA256 string
	Parts          []PartShown
	Complete       bool // the parts together are the filed text, in order
	ContentSHA256  string
}

// PartShown is one entry of a manifest.
type PartShown struct {
	TS         string `json:"ts"`
	SHA256     string `json:"sha256"`
	Characters int    `json:"characters"`
}

// UnshownError refuses an approval from a card that did not provably show the whole text of this epoch.
type UnshownError struct {
	ObligationID int64
	Reason       string
}

func (e *UnshownError) Error() string {
	return fmt.Sprintf("obligation %d can't be approved from this card: %s; wait for its newest card, or decide at the terminal", e.ObligationID, e.Reason)
}

// RecordCard keeps a card that was posted, and returns it with its id.
func (l *Ledger) RecordCard(ctx context.Context, c Card) (Card, error) {
	err := l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		return tx.QueryRowContext(ctx, `
			INSERT INTO cards (obligation_id, kind, decision_id, team, channel, ts, posted_us) VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id`,
			c.ObligationID, c.Kind, idOrNull(c.DecisionID), c.Team, c.Channel, c.TS, tx.us).Scan(&c.ID)
	})
	return c, err
}

// CardAt returns the card at a place, or *UnshownError: a message that this ledger did not post grants nothing.
func (l *Ledger) CardAt(ctx context.Context, ref CardRef) (Card, error) {
	var out Card
	err := l.inRead(ctx, func(tx *sql.Tx) (err error) {
		out, err = scanCard(tx.QueryRowContext(ctx, cardColumns+` WHERE channel = $1 AND ts = $2`, ref.Channel, ref.TS))
		if errors.Is(err, sql.ErrNoRows) {
			err = &UnshownError{Reason: "no card stands there"}
		}
		return err
	})
	return out, err
}

const cardColumns = `SELECT id, obligation_id, kind, coalesce(decision_id, 0), team, channel, ts FROM cards`

func scanCard(row scanner) (Card, error) {
	var c Card
	err := row.Scan(&c.ID, &c.ObligationID, &c.Kind, &c.DecisionID, &c.Team, &c.Channel, &c.TS)
	return c, err
}

// RecordView keeps what a card shows now. Whether its parts are the whole text is the ledger's own finding.
func (l *Ledger) RecordView(ctx context.Context, v View) (ViewShown, error) {
	var out ViewShown
	err := l.inTx(ctx, func(ctx context.Context, tx *txn) error {
		var text string
		err := tx.QueryRowContext(ctx, `
			SELECT f.text FROM cards c JOIN filings f ON f.obligation_id = c.obligation_id
			WHERE c.id = $1 AND f.envelope_sha256 = $2 AND f.epoch <= $3 ORDER BY f.id DESC LIMIT 1`, v.CardID, v.EnvelopeSHA256, v.Epoch).Scan(&text)
		if errors.Is(err, sql.ErrNoRows) {
			return &InputError{Field: "view", Reason: "shows no filing of its card's obligation"}
		}
		if err != nil {
			return err
		}
		out = v.shown(text)
		return insertView(ctx, tx, v.CardID, &out)
	})
	return out, err
}

func (v View) shown(text string) ViewShown {
	out := ViewShown{Epoch: v.Epoch, TextSHA256: HashText(text), EnvelopeSHA256: v.EnvelopeSHA256, ContentSHA256: v.ContentSHA256, Parts: []PartShown{}}
	var all strings.Builder
	for _, p := range v.Parts {
		all.WriteString(p.Text)
		out.Parts = append(out.Parts, PartShown{TS: p.TS, SHA256: HashText(p.Text), Characters: len([]rune(p.Text))})
	}
	out.Complete = all.String() == text
	return out
}

func insertView(ctx context.Context, tx *txn, card int64, v *ViewShown) error {
	parts, err := json.Marshal(v.Parts)
	if err != nil {
		return err
	}
	return tx.QueryRowContext(ctx, `
		INSERT INTO card_views (card_id, epoch, text_sha256, envelope_sha256, parts, complete, content_sha256, shown_us)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id`,
		card, v.Epoch, v.TextSHA256, v.EnvelopeSHA256, string(parts), asInt(v.Complete), v.ContentSHA256, tx.us).Scan(&v.ID)
}

const viewColumns = `
	SELECT v.id, v.epoch, v.text_sha256, v.envelope_sha256, v.parts, v.complete, v.content_sha256
	FROM card_views v JOIN cards c ON c.id = v.card_id`

func scanView(row scanner) (ViewShown, error) {
	var v ViewShown
	var parts string
	if err := row.Scan(&v.ID, &v.Epoch, &v.TextSHA256, &v.EnvelopeSHA256, &parts, &v.Complete, &v.ContentSHA256); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(parts), &v.Parts)
}

// bindView keeps which view of a card a decision was made on. An approval needs one that was complete, of this very epoch: a click on
// anything else approved what its operator may not have seen.
func bindView(ctx context.Context, tx *txn, c *current, d Decision, decision int64) error {
	if d.Card == nil {
		return nil
	}
	v, err := scanView(tx.QueryRowContext(ctx, viewColumns+` WHERE c.channel = $1 AND c.ts = $2 AND c.obligation_id = $3 AND c.kind = 'draft'
		ORDER BY v.id DESC LIMIT 1`, d.Card.Channel, d.Card.TS, c.id))
	if errors.Is(err, sql.ErrNoRows) {
		if d.Verdict == Reject {
			return nil // a rejection lets nothing out
		}
		return &UnshownError{c.id, "the ledger has no record of what it shows"}
	}
	if err != nil {
		return err
	}
	if why := v.lacks(c); why != "" && d.Verdict == Approve {
		return &UnshownError{c.id, why}
	}
	return tx.exec(ctx, `INSERT INTO decision_views (decision_id, view_id) VALUES ($1, $2)`, decision, v.ID)
}

// lacks says why a view is not the whole of what is decided, or "".
func (v ViewShown) lacks(c *current) string {
	switch {
	case v.Epoch != c.epoch || v.TextSHA256 != c.draft.sha256 || v.EnvelopeSHA256 != c.filing.envelope:
		return "it shows an earlier state of the draft"
	case !v.Complete:
		return "it does not show the whole text"
	}
	return ""
}

// surface names where a decision was made, for the audit log.
func (d Decision) surface() string {
	if d.Card == nil {
		return "terminal"
	}
	return "card " + d.Card.Channel + "/" + d.Card.TS
}
