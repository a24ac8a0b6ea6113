package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"time"

	"countersign/schema"
)

// Upgraded tells what an upgrade did.
type Upgraded struct {
	Changed bool   `json:"changed"`
	Backup  string `json:"backup,omitempty"`
	// Manual lists approvals of another implementation that have no envelope of this program. They are never claimed: revoke them, and
	// approve what then waits, or close them.
	Manual []int64 `json:"manual"`
	// Held lists claims of another implementation that were in flight: `recover` makes a dispatching one unknown.
	Held []int64 `json:"held"`
	// Restored lists guards and indexes that were put back, and foreign ones that were taken off: "trigger guard_audit_delete, missing".
	Restored []string `json:"restored"`
}

// Upgrade brings the ledger at path to this program's version, after a backup beside it. A ledger of this version that has lost guards
// gets them back, if its tables are intact and Check finds nothing else. See schema.Upgrade for what stops it.
func Upgrade(ctx context.Context, path string, opts Options) (Upgraded, error) {
	opts = withDefaults(opts)
	id, err := randomToken()
	if err != nil {
		return Upgraded{}, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return Upgraded{}, err
	}
	out := Upgraded{Manual: []int64{}, Held: []int64{}, Restored: []string{}}
	now := opts.Now()
	run := schema.Upgrade{
		Path: path, Backup: path + ".backup-" + now.UTC().Format("20060102T150405Z"), LedgerID: id[:32], Busy: opts.BusyTimeout,
		Adopt: func(ctx context.Context, sqlTx *sql.Tx) error {
			return adoptForeign(ctx, &txn{Tx: sqlTx, sec: now.Unix(), us: now.UnixMicro()}, &out)
		},
		Unsound: unsound,
		Record: func(ctx context.Context, sqlTx *sql.Tx, restored []string) error {
			return record(ctx, &txn{Tx: sqlTx, sec: now.Unix(), us: now.UnixMicro()}, event{name: "restored", source: sourceFiling, actor: systemActor,
				detail: map[string]any{"guards": restored}})
		},
	}
	done, err := run.Run(ctx)
	if err != nil {
		return Upgraded{}, translate(path, err)
	}
	if out.Changed = done.Changed; done.Changed {
		out.Backup = run.Backup
		out.Restored = append(out.Restored, done.Restored...)
	}
	return out, nil
}

// importedAgent is the filer of drafts that another implementation took in without naming one.
const importedAgent = "imported"

// adoptForeign gives every draft of another implementation the filing that our rules need, so that what waits can be decided here.
func adoptForeign(ctx context.Context, tx *txn, out *Upgraded) error {
	drafts, err := foreignDrafts(ctx, tx)
	if err != nil {
		return err
	}
	for _, d := range drafts {
		if err := importFiling(ctx, tx, d); err != nil {
			return fmt.Errorf("draft of obligation %d: %w", d.filed.ObligationID, err)
		}
	}
	if out.Manual, err = ids(ctx, tx, `SELECT id FROM obligations WHERE status = 'approved' ORDER BY id`); err != nil {
		return err
	}
	out.Held, err = ids(ctx, tx, `
		SELECT obligation_id FROM obligation_delivery_claims WHERE state IN ('claimed', 'dispatching', 'unknown') ORDER BY obligation_id`)
	if err != nil {
		return err
	}
	return record(ctx, tx, event{name: "upgraded", source: sourceFiling, actor: systemActor,
		detail: map[string]any{"drafts": len(drafts), "manual": out.Manual, "held": out.Held, "at": time.Unix(tx.sec, 0).UTC().Format(time.RFC3339)}})
}

type foreignDraft struct {
	draft          Draft
	filed          Filed
	summary, shown string
}

func foreignDrafts(ctx context.Context, tx *txn) ([]foreignDraft, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT o.id, o.updated_at, o.status, o.counterparty, coalesce(o.summary, ''), d.draft_text, coalesce(d.context, ''), d.origin_platform,
			d.origin_channel, coalesce(d.origin_thread, ''), coalesce(d.origin_user, ''), d.priority, d.draft_sha256,
			coalesce(d.auto_send_after, 0), coalesce(d.signal_obligation_id, 0)
		FROM obligations o JOIN obligation_drafts d ON d.obligation_id = o.id ORDER BY o.id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []foreignDraft
	for rows.Next() {
		d := foreignDraft{}
		f := Filing{Agent: importedAgent}
		if err := rows.Scan(&d.filed.ObligationID, &d.filed.Epoch, &d.filed.Status, &f.Counterparty, &d.summary, &f.Text, &d.shown, &f.Platform,
			&f.Channel, &f.Thread, &f.User, &f.Priority, &d.filed.DraftSHA256,
			&f.AutoSendAfter, &f.Signal); err != nil {
			return nil, err
		}
		if d.draft, err = seal(f, false); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, rows.Err()
}

// importFiling writes the filing of a foreign draft, with the marks that it would get here: a draft without any could be approved by
// a machine. Where its stored hash is not its text's, the filing has the true one: the
// difference then keeps it from ever being approved until it is filed anew.
func importFiling(ctx context.Context, tx *txn, d foreignDraft) error {
	f := d.draft.filing
	markers, err := marks(ctx, tx, d.draft, nil, pair{})
	if err != nil {
		return err
	}
	d.filed.Markers, d.filed.Warnings = markers, []string{}
	d.filed.Priority, d.filed.EnvelopeSHA256, d.filed.DraftSHA256 = f.Priority, d.draft.envelope, d.draft.sha256
	d.filed.Notice = Notice{Routed: RoutedRetained, Reason: "taken over from another implementation"}
	if err := insertFiling(ctx, tx, d.draft, d.summary, d.shown, markers, &d.filed); err != nil {
		return err
	}
	return know(ctx, tx, f.Counterparty)
}

func ids(ctx context.Context, tx *txn, query string) ([]int64, error) {
	out := []int64{}
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out = append(out, id)
	}
	return out, rows.Err()
}
