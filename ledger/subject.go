package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
)

// Subject is all that a card shows of an obligation, read from one state of the ledger.
type Subject struct {
	Shown
	FirstFiledTS int64  // of this obligation, by whichever agent
	OriginUser   string // who asked for the text, as the agent says
	Signal       *SignalShown
	Previous     *Previous      // what the text is compared with; nil for a first filing
	Remark       *Remark        // an operator's newest word on it
	Attempts     []AttemptShown // what the transport said, oldest first
	Notices      []QueuedNotice // not told yet, oldest first
	Mark         int64          // of the outbox, for Told
	Card         *Card          // in the channel asked for
	View         *ViewShown     // the newest of that card
	UnknownCard  *Card
}

// SignalShown is the inbound item that a draft answers.
type SignalShown struct {
	ObligationID int64
	Summary      string
}

// Previous is the text that an operator saw before: the filing before this one, or the pair's newest rejected draft.
type Previous struct {
	ObligationID, Epoch int64
	Rejected            bool
	Subject, Text       string
}

// Remark is what an operator said when steering, rejecting or taking back.
type Remark struct {
	Kind, By, Note string
	AtTS           int64
}

// AttemptShown is what a transport said of one attempt.
type AttemptShown struct {
	DecisionID          int64
	Outcome             Outcome
	Stage, Code, Detail string
	AtTS                int64
}

// Subject reads an obligation for its cards in a channel.
func (l *Ledger) Subject(ctx context.Context, obligation int64, channel string) (Subject, error) {
	var out Subject
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		if err := show(ctx, tx, obligation, &out.Shown); err != nil {
			return err
		}
		for _, part := range []func(context.Context, *sql.Tx, *Subject) error{subjectOrigin, subjectPrevious, subjectRemark, subjectAttempts, subjectNotices} {
			if err := part(ctx, tx, &out); err != nil {
				return err
			}
		}
		return subjectCards(ctx, tx, channel, &out)
	})
	return out, err
}

func subjectOrigin(ctx context.Context, tx *sql.Tx, s *Subject) error {
	if len(s.Filings) > 0 {
		s.FirstFiledTS = s.Filings[0].FiledTS
	}
	var signal int64
	var summary string
	err := tx.QueryRowContext(ctx, `
		SELECT coalesce(d.origin_user, ''), coalesce(d.signal_obligation_id, 0), coalesce(o.summary, '')
		FROM obligation_drafts d LEFT JOIN obligations o ON o.id = d.signal_obligation_id WHERE d.obligation_id = $1`, s.ObligationID).Scan(
		&s.OriginUser, &signal, &summary)
	if err == nil && signal != 0 {
		s.Signal = &SignalShown{signal, summary}
	}
	return ignoreNone(err)
}

// subjectPrevious takes the filing before this one. Where there is none, it is the pair's newest rejection: an agent that mends a
// rejected text files a new obligation.
func subjectPrevious(ctx context.Context, tx *sql.Tx, s *Subject) error {
	if n := len(s.Filings); n > 1 {
		f := s.Filings[n-2]
		s.Previous = &Previous{ObligationID: s.ObligationID, Epoch: f.Epoch, Subject: deref(f.Subject), Text: f.Text}
		return nil
	}
	p := Previous{Rejected: true}
	err := tx.QueryRowContext(ctx, `
		SELECT o.id, f.epoch, coalesce(f.subject, ''), f.text
		FROM obligations o JOIN filings f ON f.id = (SELECT max(id) FROM filings WHERE obligation_id = o.id)
		WHERE o.counterparty = $1 AND o.channel = $2 AND o.status = 'rejected' AND o.id < $3 ORDER BY o.id DESC LIMIT 1`,
		s.Counterparty, s.Channel, s.ObligationID).Scan(&p.ObligationID, &p.Epoch, &p.Subject, &p.Text)
	if err == nil {
		s.Previous = &p
	}
	return ignoreNone(err)
}

func subjectRemark(ctx context.Context, tx *sql.Tx, s *Subject) error {
	ids := []any{s.ObligationID, s.ObligationID}
	if s.Previous != nil {
		ids[1] = s.Previous.ObligationID
	}
	var r Remark
	var detail string
	err := tx.QueryRowContext(ctx, `
		SELECT event, actor, at_us / 1000000, detail FROM audit_log
		WHERE (obligation_id = $1 OR obligation_id = $2) AND event IN ('steered', 'rejected', 'revoked', 'cancelled')
		ORDER BY id DESC LIMIT 1`, ids...).Scan(&r.Kind, &r.By, &r.AtTS, &detail)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	var said struct{ Note, Reason string }
	if err := json.Unmarshal([]byte(detail), &said); err != nil {
		return fmt.Errorf("audit of obligation %d: %w", s.ObligationID, err)
	}
	r.Note = said.Note + said.Reason // a row has one of them
	s.Remark = &r
	return nil
}

func subjectAttempts(ctx context.Context, tx *sql.Tx, s *Subject) error {
	rows, err := tx.QueryContext(ctx, `
		SELECT decision_id, outcome, stage, code, detail, recorded_us / 1000000 FROM delivery_attempts
		WHERE decision_id IN (SELECT id FROM obligation_decisions WHERE obligation_id = $1) ORDER BY id`, s.ObligationID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var a AttemptShown
		if err := rows.Scan(&a.DecisionID, &a.Outcome, &a.Stage, &a.Code, &a.Detail, &a.AtTS); err != nil {
			return err
		}
		s.Attempts = append(s.Attempts, a)
	}
	return rows.Err()
}

func subjectNotices(ctx context.Context, tx *sql.Tx, s *Subject) error {
	err := tx.QueryRowContext(ctx, `SELECT mark FROM outbox WHERE obligation_id = $1`, s.ObligationID).Scan(&s.Mark)
	if ignoreNone(err) != nil {
		return err
	}
	rows, err := tx.QueryContext(ctx, `
		SELECT n.id, n.kind, n.body, n.created_us / 1000000 FROM notices n
		WHERE n.obligation_id = $1 AND n.routed = 'internal' AND NOT EXISTS (SELECT 1 FROM notices_sent s WHERE s.notice_id = n.id)
		ORDER BY n.id`, s.ObligationID)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n QueuedNotice
		if err := rows.Scan(&n.ID, &n.Kind, &n.Body, &n.CreatedTS); err != nil {
			return err
		}
		s.Notices = append(s.Notices, n)
	}
	return rows.Err()
}

func subjectCards(ctx context.Context, tx *sql.Tx, channel string, s *Subject) error {
	for _, kind := range []struct {
		name string
		into **Card
	}{{CardDraft, &s.Card}, {CardUnknown, &s.UnknownCard}} {
		c, err := scanCard(tx.QueryRowContext(ctx, cardColumns+`
			WHERE obligation_id = $1 AND kind = $2 AND channel = $3 ORDER BY id DESC LIMIT 1`, s.ObligationID, kind.name, channel))
		if ignoreNone(err) != nil {
			return err
		}
		if err == nil {
			*kind.into = &c
		}
	}
	if s.Card == nil {
		return nil
	}
	v, err := scanView(tx.QueryRowContext(ctx, viewColumns+` WHERE v.card_id = $1 ORDER BY v.id DESC LIMIT 1`, s.Card.ID))
	if err == nil {
		s.View = &v
	}
	return ignoreNone(err)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
