package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Listed is one obligation as the panel shows it.
type Listed struct {
	ObligationID   int64    `json:"obligation_id"`
	Epoch          int64    `json:"epoch"`
	Status         Status   `json:"status"`
	Counterparty   string   `json:"counterparty"`
	Platform       string   `json:"platform"`
	Channel        string   `json:"channel"`
	Thread         *string  `json:"thread"`
	Subject        *string  `json:"subject"`
	Priority       Priority `json:"priority"`
	DraftSHA256    string   `json:"draft_sha256"`
	EnvelopeSHA256 string   `json:"envelope_sha256"`
	Summary        string   `json:"summary"`
	Context        string   `json:"context"`
	Markers        []string `json:"markers"`
	FiledTS        int64    `json:"filed_ts"`
	AutoSendAfter  *int64   `json:"auto_send_after"`
	Votes          int      `json:"votes"`
	Needed         int      `json:"needed"`
	Agent          string   `json:"agent"`
}

// AgentSummary is the summary as its agent wrote it, without the hash that the ledger adds.
func (o Listed) AgentSummary() string { return withoutHash(o.Summary, o.DraftSHA256) }

// AgentContext is the context as its agent wrote it, without the stamps that the ledger puts on its first line: those are the system's.
func (o Listed) AgentContext() string { return withoutStamps(o.Context, o.Markers) }

// ListFilter narrows the panel. The zero filter is everything that waits.
type ListFilter struct {
	Priority     Priority
	Platform     string
	Agent        string
	Counterparty string
	FiledBefore  time.Time // the newest filing, or the signal where nothing was filed; zero: any time
	Status       Status    // instead of what waits: everything in this status, or AnyStatus
}

// AnyStatus is the ListFilter's word for all of them. No obligation has it.
const AnyStatus Status = "all"

const listColumns = `
	SELECT o.id, o.updated_at, o.status, o.counterparty, o.source, o.channel, f.thread, f.subject,
		coalesce(d.priority, ''), coalesce(d.draft_sha256, ''), coalesce(f.envelope_sha256, ''), coalesce(o.summary, ''),
		coalesce(d.context, ''), coalesce(f.markers, '[]'), coalesce(f.filed_us, 0) / 1000000, d.auto_send_after, coalesce(f.agent, '')
	FROM obligations o
	LEFT JOIN obligation_drafts d ON d.obligation_id = o.id
	LEFT JOIN filings f ON f.id = (SELECT max(id) FROM filings WHERE obligation_id = o.id)`

// statuses is the filter's condition on the status, which is $4. What waits has one of its own, which is served by an index.
func (f ListFilter) statuses() string {
	if f.Status == "" {
		return `$4 = '' AND o.status = 'drafted' AND o.direction = 'we_owe_them'`
	}
	return `($4 = 'all' OR o.status = $4)`
}

func (f ListFilter) filedBefore() int64 {
	if f.FiledBefore.IsZero() {
		return 0
	}
	return f.FiledBefore.UnixMicro()
}

// Waiting is the panel: what we owe and nobody has decided, the most urgent first; or what the filter asks for instead.
func (l *Ledger) Waiting(ctx context.Context, f ListFilter) ([]Listed, error) {
	out := []Listed{}
	err := l.inRead(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, listColumns+`
			WHERE `+f.statuses()+`
				AND ($1 = '' OR d.priority = $1) AND ($2 = '' OR o.source = $2) AND ($3 = '' OR f.agent = $3)
				AND ($5 = '' OR o.counterparty = $5) AND ($6 = 0 OR coalesce(f.filed_us, o.opened_ts * 1000000) < $6)
			ORDER BY d.priority, o.id`, f.Priority, f.Platform, f.Agent, f.Status, f.Counterparty, f.filedBefore())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			listed, err := scanListed(rows)
			if err != nil {
				return err
			}
			out = append(out, listed)
		}
		return rows.Err()
	})
	return out, err
}

func scanListed(row scanner) (Listed, error) {
	var o Listed
	var markers string
	err := row.Scan(&o.ObligationID, &o.Epoch, &o.Status, &o.Counterparty, &o.Platform, &o.Channel, &o.Thread, &o.Subject,
		&o.Priority, &o.DraftSHA256, &o.EnvelopeSHA256, &o.Summary,
		&o.Context, &markers, &o.FiledTS, &o.AutoSendAfter, &o.Agent)
	if err != nil {
		return o, err
	}
	o.Needed = 1
	if o.Status == StatusApproved || o.Status == StatusSent {
		o.Votes = 1
	}
	o.Markers, _ = readMarkers(markers)
	return o, nil
}

// readMarkers reads a draft's markers as they are stored, and tells whether they are what the ledger writes: an array of stamps. Raw SQL
// may have left anything there; a row that can't be read is shown as such, and hides no other.
func readMarkers(stored string) (markers []string, readable bool) {
	err := json.Unmarshal([]byte(stored), &markers)
	if err != nil || markers == nil || slices.Contains(markers, "") { // null is read as no array, or as an empty stamp
		return []string{"[" + MarkUnreadable + "]"}, false
	}
	return markers, true
}

// Shown is one obligation whole.
type Shown struct {
	Listed
	DraftText string          `json:"draft_text"`
	Filings   []FilingShown   `json:"filings"`
	Decisions []DecisionShown `json:"decisions"`
	Snapshot  *SnapshotShown  `json:"snapshot"`
	Claim     *HeldClaim      `json:"claim"`
	Delivery  *DeliveryShown  `json:"delivery"`
	Resting   *RestShown      `json:"resting"`
	Audit     []AuditEntry    `json:"audit"`
}

// RestShown tells why an approved message is not tried at the moment: its destination could not be prepared.
type RestShown struct {
	UntilTS int64  `json:"until_ts"`
	Cause   string `json:"cause"`
}

// FilingShown is one filing of an obligation's history.
type FilingShown struct {
	Epoch          int64    `json:"epoch"`
	Agent          string   `json:"agent"`
	Platform       string   `json:"platform"`
	Channel        string   `json:"channel"`
	Thread         *string  `json:"thread"`
	Subject        *string  `json:"subject"`
	Text           string   `json:"text"`
	TextSHA256     string   `json:"text_sha256"`
	EnvelopeSHA256 string   `json:"envelope_sha256"`
	Markers        []string `json:"markers"`
	FiledTS        int64    `json:"filed_ts"`
}

// DecisionShown is one decision, with how it was taken back if it was.
type DecisionShown struct {
	DecisionID   int64   `json:"decision_id"`
	Decision     Verdict `json:"decision"`
	Operator     string  `json:"operator"`
	Epoch        int64   `json:"epoch"`
	DecidedTS    int64   `json:"decided_ts"`
	Reason       string  `json:"reason,omitempty"`
	Voided       string  `json:"voided,omitempty"`
	VoidedBy     string  `json:"voided_by,omitempty"`
	VoidedReason string  `json:"voided_reason,omitempty"`
}

// SnapshotShown is what the newest approval froze.
type SnapshotShown struct {
	DecisionID     int64   `json:"decision_id"`
	Epoch          int64   `json:"epoch"`
	Platform       string  `json:"platform"`
	Channel        string  `json:"channel"`
	Thread         *string `json:"thread"`
	Subject        *string `json:"subject"`
	Text           string  `json:"text"`
	TextSHA256     string  `json:"text_sha256"`
	EnvelopeSHA256 string  `json:"envelope_sha256"`
}

// DeliveryShown is the receipt.
type DeliveryShown struct {
	DecisionID  *int64 `json:"decision_id"`
	Coordinate  string `json:"coordinate"`
	DeliveredTS int64  `json:"delivered_ts"`
	Kind        string `json:"kind"`
	Altered     bool   `json:"altered"`
}

// Show returns one obligation whole, from one consistent state of the ledger.
func (l *Ledger) Show(ctx context.Context, obligation int64) (Shown, error) {
	var out Shown
	err := l.inRead(ctx, func(tx *sql.Tx) error { return show(ctx, tx, obligation, &out) })
	return out, err
}

func show(ctx context.Context, tx *sql.Tx, obligation int64, out *Shown) error {
	var err error
	if out.Listed, err = scanListed(tx.QueryRowContext(ctx, listColumns+` WHERE o.id = $1`, obligation)); err != nil {
		if errors.Is(err, sql.ErrNoRows) {
			return &NotFoundError{obligation}
		}
		return err
	}
	for _, part := range []func(context.Context, *sql.Tx, *Shown) error{showDraft, showFilings, showDecisions, showSnapshot, showClaim, showDelivery, showRest} {
		if err := part(ctx, tx, out); err != nil {
			return err
		}
	}
	out.Audit, err = readAudit(ctx, tx, AuditFilter{ObligationID: obligation})
	return err
}

func showDraft(ctx context.Context, tx *sql.Tx, out *Shown) error {
	err := tx.QueryRowContext(ctx, `SELECT draft_text FROM obligation_drafts WHERE obligation_id = $1`, out.ObligationID).Scan(&out.DraftText)
	return ignoreNone(err)
}

func ignoreNone(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

func showFilings(ctx context.Context, tx *sql.Tx, out *Shown) error {
	rows, err := tx.QueryContext(ctx, `
		SELECT epoch, agent, platform, channel, thread, subject, text, text_sha256, envelope_sha256, markers, filed_us / 1000000
		FROM filings WHERE obligation_id = $1 ORDER BY id`, out.ObligationID)
	if err != nil {
		return err
	}
	defer rows.Close()
	out.Filings = []FilingShown{}
	for rows.Next() {
		var f FilingShown
		var markers string
		if err := rows.Scan(&f.Epoch, &f.Agent, &f.Platform, &f.Channel, &f.Thread, &f.Subject, &f.Text, &f.TextSHA256, &f.EnvelopeSHA256, &markers, &f.FiledTS); err != nil {
			return err
		}
		f.Markers, _ = readMarkers(markers)
		out.Filings = append(out.Filings, f)
	}
	return rows.Err()
}

func showDecisions(ctx context.Context, tx *sql.Tx, out *Shown) error {
	rows, err := tx.QueryContext(ctx, `
		SELECT v.id, v.decision, v.operator, v.draft_updated_ts, v.decided_ts, coalesce(r.reason, ''),
			coalesce(x.kind, ''), coalesce(x.actor, ''), coalesce(x.reason, '')
		FROM obligation_decisions v
		LEFT JOIN decision_reasons r ON r.decision_id = v.id
		LEFT JOIN voided_approvals x ON x.decision_id = v.id
		WHERE v.obligation_id = $1 ORDER BY v.id`, out.ObligationID)
	if err != nil {
		return err
	}
	defer rows.Close()
	out.Decisions = []DecisionShown{}
	for rows.Next() {
		var d DecisionShown
		if err := rows.Scan(&d.DecisionID, &d.Decision, &d.Operator, &d.Epoch, &d.DecidedTS, &d.Reason, &d.Voided, &d.VoidedBy, &d.VoidedReason); err != nil {
			return err
		}
		out.Decisions = append(out.Decisions, d)
	}
	return rows.Err()
}

func showSnapshot(ctx context.Context, tx *sql.Tx, out *Shown) error {
	var s SnapshotShown
	err := tx.QueryRowContext(ctx, `
		SELECT s.decision_id, s.draft_epoch, s.origin_platform, s.origin_channel, s.origin_thread, e.subject, s.draft_text, s.draft_sha256,
			coalesce(e.envelope_sha256, '')
		FROM obligation_approval_snapshots s LEFT JOIN approval_envelopes e ON e.decision_id = s.decision_id
		WHERE s.obligation_id = $1 ORDER BY s.decision_id DESC LIMIT 1`, out.ObligationID).Scan(
		&s.DecisionID, &s.Epoch, &s.Platform, &s.Channel, &s.Thread, &s.Subject, &s.Text, &s.TextSHA256, &s.EnvelopeSHA256)
	if err == nil {
		out.Snapshot = &s
	}
	return ignoreNone(err)
}

func showClaim(ctx context.Context, tx *sql.Tx, out *Shown) error {
	h, err := scanClaim(tx.QueryRowContext(ctx, claimColumns+` WHERE c.obligation_id = $1 ORDER BY c.decision_id DESC LIMIT 1`, out.ObligationID))
	if err == nil {
		out.Claim = &h
	}
	return ignoreNone(err)
}

func showDelivery(ctx context.Context, tx *sql.Tx, out *Shown) error {
	var d DeliveryShown
	err := tx.QueryRowContext(ctx, `
		SELECT r.decision_id, coalesce(r.coordinate, ''), r.delivered_ts, r.kind,
			EXISTS (SELECT 1 FROM delivery_attempts a WHERE a.decision_id = r.decision_id AND a.altered = 1)
		FROM obligation_deliveries r WHERE r.obligation_id = $1 ORDER BY r.id DESC LIMIT 1`, out.ObligationID).Scan(
		&d.DecisionID, &d.Coordinate, &d.DeliveredTS, &d.Kind, &d.Altered)
	if err == nil {
		out.Delivery = &d
	}
	return ignoreNone(err)
}

func showRest(ctx context.Context, tx *sql.Tx, out *Shown) error {
	if out.Status != StatusApproved {
		return nil
	}
	var r RestShown
	err := tx.QueryRowContext(ctx, `SELECT retry_us / 1000000, error FROM prepare_backoff WHERE platform = $1 AND channel = $2`,
		out.Platform, out.Channel).Scan(&r.UntilTS, &r.Cause)
	if err == nil {
		out.Resting = &r
	}
	return ignoreNone(err)
}
