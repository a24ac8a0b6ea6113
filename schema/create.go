package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Create makes a new ledger at path, mode 0600. It is built beside the path and linked into place when it is whole, so that a crash
// leaves no half-made ledger; an existing file is never touched (fs.ErrExist).
func Create(ctx context.Context, path, ledgerID string) error {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("ledger %q: %w", path, fs.ErrExist)
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".countersign-new-*") // CreateTemp makes 0600
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	defer os.Remove(draft.Name())
	if err := errors.Join(draft.Close(), ctx.Err()); err != nil {
		return err
	}
	// A cancelled transaction is rolled back in the background, and could leave its journal behind after the removal above.
	if err := build(context.WithoutCancel(ctx), draft.Name(), ledgerID); err != nil {
		return fmt.Errorf("ledger %q: %w", path, err)
	}
	if err := os.Link(draft.Name(), path); err != nil {
		return fmt.Errorf("ledger %q: %w", path, err)
	}
	return syncDir(filepath.Dir(path))
}

func build(ctx context.Context, path, ledgerID string) error {
	if err := switchLocking(); err != nil {
		return err
	}
	db, err := sql.Open("sqlite", fileURI(path, "mode=rw", "_pragma=synchronous(FULL)"))
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	if err := fill(ctx, db, ledgerID); err != nil {
		return errors.Join(err, db.Close())
	}
	return db.Close()
}

func fill(ctx context.Context, db *sql.DB, ledgerID string) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	list, err := guards()
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := execAll(ctx, tx, flatten(all)); err != nil {
		return err
	}
	if err := stamp(ctx, tx, ledgerID); err != nil {
		return err
	}
	if err := execAll(ctx, tx, list); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, `PRAGMA journal_mode = WAL`)
	return err
}

// stamp writes the file's identity. The numbers are constants; a pragma takes no parameters.
func stamp(ctx context.Context, tx *sql.Tx, ledgerID string) error {
	return errors.Join(
		execAll(ctx, tx, []string{
			fmt.Sprintf(`PRAGMA application_id = %d`, ApplicationID),
			fmt.Sprintf(`PRAGMA user_version = %d`, Version),
		}),
		second(tx.ExecContext(ctx, `INSERT INTO ledger_meta (key, value) VALUES ('ledger_id', $1) ON CONFLICT DO NOTHING`, ledgerID)),
	)
}

func second[T any](_ T, err error) error { return err }

func execAll(ctx context.Context, tx *sql.Tx, list []string) error {
	for _, statement := range list {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.60q: %w", statement, err)
		}
	}
	return nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
