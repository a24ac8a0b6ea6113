package schema

import (
	"context"
	"database/sql"
	"strings"
)

// restore puts back the guards of a ledger of this version that has lost some, after a backup. While they were off anything could be
// written, so that the rows have to fit together first; tables that are not ours any more are for a backup to mend (*GuardError).
func (u Upgrade) restore(ctx context.Context, conn *sql.Conn) (Done, error) {
	if err := u.inTx(ctx, conn, u.restorable); err != nil {
		return Done{}, err
	}
	if err := u.backup(ctx, conn); err != nil {
		return Done{}, err
	}
	done := Done{Changed: true}
	err := u.inTx(ctx, conn, func(ctx context.Context, tx *sql.Tx) error {
		if err := u.restorable(ctx, tx); err != nil { // a writer may have come between
			return err
		}
		found, err := differences(ctx, tx)
		if err != nil {
			return err
		}
		for _, d := range found {
			done.Restored = append(done.Restored, d.object+", "+d.problem)
		}
		if err := u.seal(ctx, tx, Version); err != nil {
			return err
		}
		return u.Record(ctx, tx, done.Restored)
	})
	return done, err
}

// restorable refuses a ledger whose tables differ, or whose rows don't fit together.
func (u Upgrade) restorable(ctx context.Context, tx *sql.Tx) error {
	found, err := differences(ctx, tx)
	if err != nil {
		return err
	}
	for _, d := range found {
		if strings.HasPrefix(d.object, "table ") {
			return &GuardError{u.Path, d.object, d.problem}
		}
	}
	problems, err := u.Unsound(ctx, tx)
	if err == nil && len(problems) > 0 {
		err = &UpgradeStoppedError{Path: u.Path, Reason: "it has lost guards, and its rows don't fit together; restore a backup", Rows: problems}
	}
	return err
}

func differences(ctx context.Context, db querier) ([]difference, error) {
	want, err := objects()
	if err != nil {
		return nil, err
	}
	have, err := stored(ctx, db)
	return compare(want, have), err
}

// putBack replaces all triggers by the guards of this program, takes foreign indexes off our tables, and makes our own ones anew where
// they differ.
func putBack(ctx context.Context, tx *sql.Tx) error {
	want, err := objects()
	if err != nil {
		return err
	}
	if err := dropAll(ctx, tx, "trigger"); err != nil {
		return err
	}
	found, err := differences(ctx, tx)
	if err != nil {
		return err
	}
	for _, d := range found {
		name, isIndex := strings.CutPrefix(d.object, "index ")
		if !isIndex {
			continue
		}
		if d.problem != "missing" {
			err = drop(ctx, tx, "index", name)
		}
		if ddl := want[d.object]; err == nil && ddl != "" {
			err = execAll(ctx, tx, []string{ddl})
		}
		if err != nil {
			return err
		}
	}
	list, err := guards()
	if err != nil {
		return err
	}
	return execAll(ctx, tx, list)
}
