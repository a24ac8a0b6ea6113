package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"countersign/plaintext"
)

const day = 24 * 60 * 60

// marks returns every stamp that the system puts on a draft: the gates' first, then what the text and the ledger's history show.
func marks(ctx context.Context, tx *txn, draft Draft, fromGates []string, p pair) ([]string, error) {
	out := append([]string{}, fromGates...)
	if hidden := hiddenIn(draft.filing); hidden != "" {
		out = append(out, stamp(MarkHiddenText, hidden))
	}
	for _, look := range []func(context.Context, *txn, Draft) (string, error){newDestination, looksLike, duplicate} {
		mark, err := look(ctx, tx, draft)
		if err != nil {
			return nil, err
		}
		if mark != "" {
			out = append(out, mark)
		}
	}
	for _, id := range p.unresolved {
		out = append(out, fmt.Sprintf("[%s #%d]", MarkUnresolved, id))
	}
	return out, nil
}

// stamp builds a marker around words that may not be ours: they can't end it, and hidden characters in them show.
func stamp(name, words string) string {
	words = strings.NewReplacer("[", "(", "]", ")").Replace(plaintext.VisibleLine(words))
	return "[" + name + ": " + words + "]"
}

// hiddenIn looks at all that the counterparty will get or be named by.
func hiddenIn(f Filing) string {
	var found []string
	for _, part := range []struct{ name, value string }{
		{"text", f.Text}, {"subject", f.Subject}, {"channel", f.Channel}, {"counterparty", f.Counterparty},
	} {
		if hidden := plaintext.Hidden(part.value); hidden.Any() {
			found = append(found, part.name+" has "+hidden.String())
		}
	}
	return strings.Join(found, "; ")
}

// newDestination marks a destination that no operator has approved for this counterparty yet. A mere filing doesn't count as use:
// filing twice would take the mark off before anybody saw it.
func newDestination(ctx context.Context, tx *txn, draft Draft) (string, error) {
	f := draft.filing
	used, err := exists(ctx, tx, `
		SELECT 1 FROM approval_envelopes WHERE counterparty = $1 AND platform = $2 AND channel = $3`, f.Counterparty, f.Platform, f.Channel)
	if err != nil || used {
		return "", err
	}
	return "[" + MarkNewDestination + "]", nil
}

// looksLike marks a counterparty whose name reads like another one's. Source: https://www.unicode.org/reports/tr39/#Confusable_Detection
func looksLike(ctx context.Context, tx *txn, draft Draft) (string, error) {
	name := draft.filing.Counterparty
	var other string
	err := tx.QueryRowContext(ctx, `
		SELECT name FROM counterparties WHERE (skeleton = $1 OR folded = $2) AND name <> $3 ORDER BY name LIMIT 1`,
		plaintext.Skeleton(name), plaintext.Folded(name), name).Scan(&other)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	words := strings.NewReplacer("[", "(", "]", ")").Replace(plaintext.VisibleLine(other))
	return "[" + MarkLooksLike + " " + words + "]", nil
}

// duplicate marks an envelope that within a day was approved and not taken back, or was sent or became unknown, however old its
// approval was by then.
func duplicate(ctx context.Context, tx *txn, draft Draft) (string, error) {
	var id int64
	err := tx.QueryRowContext(ctx, `
		SELECT e.obligation_id FROM approval_envelopes e
		LEFT JOIN obligation_delivery_claims c ON c.obligation_id = e.obligation_id AND c.decision_id = e.decision_id
		WHERE e.envelope_sha256 = $1 AND (e.approved_us > $2 OR c.updated_ts > $3)
			AND NOT EXISTS (SELECT 1 FROM voided_approvals v WHERE v.decision_id = e.decision_id)
		ORDER BY e.approved_us DESC LIMIT 1`,
		draft.envelope, tx.us-day*1_000_000, tx.sec-day).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return fmt.Sprintf("[%s #%d]", MarkDuplicate, id), err
}

// know remembers a counterparty's name for later comparisons.
func know(ctx context.Context, tx *txn, name string) error {
	known, err := exists(ctx, tx, `SELECT 1 FROM counterparties WHERE name = $1`, name)
	if err != nil || known {
		return err
	}
	return tx.exec(ctx, `INSERT INTO counterparties (name, skeleton, folded, first_us) VALUES ($1, $2, $3, $4)`,
		name, plaintext.Skeleton(name), plaintext.Folded(name), tx.us)
}

// contextWithMarks is the context column: the system's stamps on a line of their own, above what the agent says.
func contextWithMarks(markers []string, context string) string {
	if len(markers) == 0 {
		return context
	}
	return strings.TrimSuffix(strings.Join(markers, " ")+"\n"+context, "\n")
}

// withoutStamps is what contextWithMarks was given.
func withoutStamps(context string, markers []string) string {
	if said, stamped := strings.CutPrefix(context, strings.Join(markers, " ")); stamped {
		return strings.TrimPrefix(said, "\n")
	}
	return context
}

// summaryWithHash is the summary column: the agent's words, and which text they are about.
func summaryWithHash(summary, sha256 string) string { return summary + hashMark(sha256) }

// withoutHash is what summaryWithHash was given.
func withoutHash(summary, sha256 string) string { return strings.TrimSuffix(summary, hashMark(sha256)) }

func hashMark(sha256 string) string { return fmt.Sprintf(" (sha %.8s)", sha256) }
