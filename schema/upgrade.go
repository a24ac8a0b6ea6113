package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Upgrade describes how a ledger is brought to Version.
type Upgrade struct {
	Path     string
	Backup   string // where the copy goes, mode 0600; must not exist
	LedgerID string // for a ledger of another implementation, which has none
	Busy     time.Duration
	// Adopt fills the side tables from the core tables of another implementation, in the upgrade's own transaction.
	Adopt func(ctx context.Context, tx *sql.Tx) error
	// Unsound lists what is wrong with the rows of a ledger whose guards were off.
	Unsound func(ctx context.Context, tx *sql.Tx) ([]string, error)
	// Record keeps in the ledger what was put back, in the same transaction.
	Record func(ctx context.Context, tx *sql.Tx, restored []string) error
}

// Done is what an upgrade did.
type Done struct {
	Changed  bool
	Restored []string // guards and indexes that were missing or altered, and foreign ones that were taken off: "trigger x, missing"
}

// Run upgrades the ledger, or leaves it untouched and says why (*UpgradeStoppedError, *GuardError). The checks come before the backup,
// the backup before the first change; each version's migration is one transaction.
func (u Upgrade) Run(ctx context.Context) (Done, error) {
	kind, err := Look(u.Path)
	if err != nil {
		return Done{}, err
	}
	db, err := u.open()
	if err != nil {
		return Done{}, err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return Done{}, err
	}
	defer conn.Close()
	if kind == Foreign {
		return Done{Changed: true}, u.adopt(ctx, conn)
	}
	return u.advance(ctx, conn)
}

// advance brings a ledger of ours to Version, or puts back what that version lacks.
func (u Upgrade) advance(ctx context.Context, conn *sql.Conn) (Done, error) {
	var version int
	if err := conn.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return Done{}, err
	}
	if version > Version {
		return Done{}, &NewerError{u.Path, version}
	}
	if version < 1 || version == Version {
		err := Check(ctx, conn, u.Path)
		if broken := (*GuardError)(nil); version == Version && errors.As(err, &broken) {
			return u.restore(ctx, conn)
		}
		return Done{}, err
	}
	if err := u.backup(ctx, conn); err != nil {
		return Done{}, err
	}
	return Done{Changed: true}, u.migrate(ctx, conn, version)
}

// open connects without WAL, which would rewrite a foreign header before the checks, and without foreign keys, since tables are
// rebuilt; they are checked as a whole before the commit.
func (u Upgrade) open() (*sql.DB, error) {
	if err := switchLocking(); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", fileURI(u.Path, "mode=rw", "_txlock=immediate", "_pragma=synchronous(FULL)", "_pragma=foreign_keys(0)",
		fmt.Sprintf("_pragma=busy_timeout(%d)", u.Busy.Milliseconds())))
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

// backup copies through SQLite, which sees a consistent state; copying the file behind its back would not.
func (u Upgrade) backup(ctx context.Context, conn *sql.Conn) error {
	file, err := os.OpenFile(u.Backup, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := file.Close(); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, `VACUUM INTO $1`, u.Backup); err != nil {
		return errors.Join(fmt.Errorf("backup to %q: %w", u.Backup, err), os.Remove(u.Backup))
	}
	return u.syncBackup()
}

// syncBackup makes the copy durable before the first change to its original: VACUUM INTO does not sync.
// Source: https://www.sqlite.org/lang_vacuum.html#vacuum_with_an_into_clause
func (u Upgrade) syncBackup() error {
	file, err := os.OpenFile(u.Backup, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return syncDir(filepath.Dir(u.Backup))
}

// migrate applies the missing versions to a ledger of ours, one transaction each, and replaces the guards with the last.
func (u Upgrade) migrate(ctx context.Context, conn *sql.Conn, from int) error {
	all, err := migrations()
	if err != nil {
		return err
	}
	for version := from + 1; version <= Version; version++ {
		err := u.inTx(ctx, conn, func(ctx context.Context, tx *sql.Tx) error {
			if err := dropAll(ctx, tx, "trigger"); err != nil {
				return err
			}
			if err := execAll(ctx, tx, all[version-1]); err != nil {
				return err
			}
			return u.seal(ctx, tx, version)
		})
		if err != nil {
			return fmt.Errorf("migration %d: %w", version, err)
		}
	}
	return nil
}

// adopt takes over a ledger of another implementation: rows are checked and copied into our own tables.
func (u Upgrade) adopt(ctx context.Context, conn *sql.Conn) error {
	if err := checkForeign(ctx, conn, u.Path); err != nil {
		return err
	}
	if err := u.backup(ctx, conn); err != nil {
		return err
	}
	all, err := migrations()
	if err != nil {
		return err
	}
	return u.inTx(ctx, conn, func(ctx context.Context, tx *sql.Tx) error {
		if err := u.stillForeign(ctx, tx); err != nil {
			return err
		}
		if err := rebuild(ctx, tx, flatten(all)); err != nil {
			return err
		}
		if err := stamp(ctx, tx, u.LedgerID); err != nil {
			return err
		}
		if err := u.Adopt(ctx, tx); err != nil {
			return err
		}
		return u.seal(ctx, tx, Version)
	})
}

// stillForeign checks once more, now that nobody else can write: a writer, or another upgrade, may have come between.
func (u Upgrade) stillForeign(ctx context.Context, tx *sql.Tx) error {
	var application int64
	if err := tx.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&application); err != nil {
		return err
	}
	if application == ApplicationID {
		return &UpgradeStoppedError{Path: u.Path, Reason: "another process has just upgraded it; use it as it is"}
	}
	return checkForeign(ctx, tx, u.Path)
}

// seal ends a migration: the version, no dangling reference, and with the last version the guards of this program, and nothing else than
// it made.
func (u Upgrade) seal(ctx context.Context, tx *sql.Tx, version int) error {
	if err := execAll(ctx, tx, []string{fmt.Sprintf(`PRAGMA user_version = %d`, version)}); err != nil {
		return err
	}
	if err := checkReferences(ctx, tx, u.Path); err != nil || version != Version {
		return err
	}
	if err := putBack(ctx, tx); err != nil {
		return err
	}
	return Check(ctx, tx, u.Path)
}

// inTx is not interrupted once it has begun: a cancelled transaction would be rolled back in the background, after the caller was told.
func (u Upgrade) inTx(ctx context.Context, conn *sql.Conn, work func(ctx context.Context, tx *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := work(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// rebuild moves the rows of the six core tables into tables made by our own DDL. Triggers and indexes of the other implementation go
// with its tables; tables that aren't among the six stay.
func rebuild(ctx context.Context, tx *sql.Tx, ddl []string) error {
	if err := dropAll(ctx, tx, "trigger"); err != nil {
		return err
	}
	for _, table := range CoreTables {
		if err := execAll(ctx, tx, []string{
			fmt.Sprintf(`CREATE TEMP TABLE old_%s AS SELECT * FROM main.%s`, table, table),
			fmt.Sprintf(`DROP TABLE main.%s`, table),
		}); err != nil {
			return err
		}
	}
	if err := execAll(ctx, tx, ddl); err != nil {
		return err
	}
	for _, table := range CoreTables {
		if err := execAll(ctx, tx, []string{
			fmt.Sprintf(`INSERT INTO main.%s SELECT * FROM temp.old_%s`, table, table),
			fmt.Sprintf(`DROP TABLE temp.old_%s`, table),
		}); err != nil {
			return err
		}
	}
	return nil
}

func dropAll(ctx context.Context, tx *sql.Tx, kind string) error {
	names, err := column(ctx, tx, `SELECT name FROM sqlite_schema WHERE lower(type) = $1`, kind)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := drop(ctx, tx, kind, name); err != nil {
			return err
		}
	}
	return nil
}

func drop(ctx context.Context, tx *sql.Tx, kind, name string) error {
	return execAll(ctx, tx, []string{"DROP " + strings.ToUpper(kind) + ` "` + strings.ReplaceAll(name, `"`, `""`) + `"`})
}

func column(ctx context.Context, db querier, query string, args ...any) ([]string, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}
