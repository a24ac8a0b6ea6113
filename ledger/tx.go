package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"countersign/schema"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// txn is one step's transaction. Its clock was read once.
type txn struct {
	*sql.Tx
	compiled *compiled // nil: nothing is kept compiled
	sec, us  int64     // Unix seconds and microseconds; what is compared with a stored time is max(now, stored)
	route    func() Notice
	hook     bool // follow-ups are handed to the agents' hook too
}

type nestedKey struct{}

// inTx runs work in one BEGIN IMMEDIATE. Once begun, the caller's context can't interrupt it: SQLite answers an interrupted statement
// by rolling the whole transaction back, and a step is either done or not.
func (l *Ledger) inTx(ctx context.Context, work func(ctx context.Context, tx *txn) error) error {
	if ctx.Value(nestedKey{}) == l {
		return ErrNestedTransaction
	}
	l.compiled.compile(ctx)
	conn, err := l.write.Conn(ctx)
	if err != nil {
		return l.translate(err)
	}
	defer conn.Close()
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = context.WithValue(context.WithoutCancel(ctx), nestedKey{}, l)
	sqlTx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return l.translate(err)
	}
	defer sqlTx.Rollback()
	now := l.opts.Now()
	t := &txn{Tx: sqlTx, compiled: l.compiled, sec: now.Unix(), us: now.UnixMicro(), route: l.opts.Route, hook: l.opts.Hook}
	if err := work(ctx, t); err != nil {
		return l.translate(err)
	}
	return l.translate(sqlTx.Commit())
}

// inRead runs work on one consistent state of the ledger, without ever waiting for a writer.
func (l *Ledger) inRead(ctx context.Context, work func(tx *sql.Tx) error) error {
	sqlTx, err := l.read.BeginTx(ctx, nil)
	if err != nil {
		return l.translate(err)
	}
	defer sqlTx.Rollback()
	return l.translate(work(sqlTx))
}

// step names an exported step for the audit log.
type step struct {
	verb, actor          string
	obligation, decision int64
	byWorker             bool // of a pass, which comes again and again
	unproven             bool // the actor proved no identity
}

// do runs a step, and records it when the contract refuses it, although its own work was rolled back.
func (l *Ledger) do(ctx context.Context, s step, work func(ctx context.Context, tx *txn) error) error {
	err := l.inTx(ctx, work)
	if err == nil || !refused(err) {
		return err
	}
	return errors.Join(err, l.recordRefusal(ctx, s, err))
}

// exec runs a statement that must touch exactly one row; anything else means that a guard or a race was in the way.
func (t *txn) exec(ctx context.Context, query string, args ...any) error {
	n, err := t.touch(ctx, query, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("ledger: a statement touched %d rows, want 1: %.80s", n, query)
	}
	return err
}

// touch runs a statement and returns how many rows it touched.
func (t *txn) touch(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := t.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// GuardError says that a guard of the database refused a statement of ours: the ledger was changed behind our back, or this is a bug.
type GuardError struct{ Err error }

func (e *GuardError) Error() string {
	return "the database refused the step: " + e.Err.Error() + "; run `countersign db check`"
}

// Unwrap returns the driver's error.
func (e *GuardError) Unwrap() error { return e.Err }

// FullError says that there is no room left for the ledger. Nothing was changed.
type FullError struct {
	Path  string
	Cause error // syscall.ENOSPC, EDQUOT or EFBIG, where the system said so; may be nil
	Err   error // the driver's
}

func (e *FullError) Error() string {
	why := "the disk is full"
	if e.Cause != nil {
		why = e.Cause.Error()
	}
	return fmt.Sprintf("no room is left for the ledger %q (%s); nothing was changed, make room and try again", e.Path, why)
}

// Unwrap returns the driver's error.
func (e *FullError) Unwrap() error { return e.Err }

func (l *Ledger) translate(err error) error { return translate(l.path, err) }

// translate turns driver errors into the ledger's, by result code and never by text.
// Source: https://www.sqlite.org/rescode.html
func translate(path string, err error) error {
	var driver *sqlite.Error
	if !errors.As(err, &driver) {
		return err
	}
	switch driver.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL: // the last: many opened the write-ahead log at once
		return fmt.Errorf("%w (%w)", ErrBusy, err)
	case sqlite3.SQLITE_INTERRUPT: // only a context that ends interrupts
		return fmt.Errorf("%w (%w)", context.Canceled, err)
	case sqlite3.SQLITE_CONSTRAINT:
		return &GuardError{err}
	case sqlite3.SQLITE_FULL:
		return &FullError{Path: path, Err: err}
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN:
		if needsRoom(driver.Code()) {
			if cause := schema.NoRoom(path); cause != nil {
				return &FullError{Path: path, Cause: cause, Err: err}
			}
		}
		return fmt.Errorf("ledger %q: %w", path, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w (%w)", &schema.NotLedgerError{Path: path, Reason: "it is damaged"}, err)
	}
	return err
}

// needsRoom tells whether a result code is one of those by which SQLite reports that a file could not be made or could not grow.
func needsRoom(code int) bool {
	switch code {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE,
		sqlite3.SQLITE_IOERR_CLOSE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP:
		return true
	}
	return code&0xff == sqlite3.SQLITE_CANTOPEN
}
