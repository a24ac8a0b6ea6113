package schema

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
)

// Access tells what a pool of connections is for.
type Access int

const (
	// Write is the one writing connection of a process; its BEGIN is immediate, so that no read is followed by an upgrade of the lock,
	// which SQLite's busy handler does not serve (SQLITE_BUSY_SNAPSHOT).
	Write Access = iota
	// Read connections can't change anything (query_only) and never wait for the writer.
	Read
)

// readers is how many reading connections a process keeps: enough for a few concurrent passes, each with its own page cache.
const readers = 4

// Connect returns a pool whose every connection has foreign keys, recursive triggers, WAL, synchronous=FULL and the busy timeout,
// and has proved it; a connection without them is refused with *ConnectionError. The path is a path, whatever characters it has.
// The pool must never be handed on: a pragma changed on a pooled connection stays changed.
func Connect(path string, access Access, busy time.Duration) (*sql.DB, error) {
	if err := switchLocking(); err != nil {
		return nil, err
	}
	want := settings(access, busy)
	base, err := sqlite.NewConnector(dsn(path, access, want))
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(proving{Connector: base, want: want})
	if access == Write {
		db.SetMaxOpenConns(1)
	} else {
		db.SetMaxOpenConns(readers)
	}
	db.SetMaxIdleConns(readers)
	return db, nil
}

// switchLocking turns on open-file-description locks for the process: with POSIX locks, any close of any descriptor of the ledger's
// file in this process would silently drop SQLite's locks, and a committed step could vanish. They exist on Linux only.
var switchLocking = sync.OnceValue(func() error {
	_, err := sqlite.OFDLocking(true)
	if errors.Is(err, sqlite.ErrOFDLockingUnavailable) {
		err = nil // another system: Look is then the only other code that opens the file, before SQLite does
	}
	if err != nil {
		return fmt.Errorf("ledger: the process used SQLite before the ledger was opened: %w", err)
	}
	_, err = sqlite.Fdatasync(true) // as durable as fsync, without journaling the time stamps
	return err
})

type setting struct{ pragma, set, proof string }

func settings(access Access, busy time.Duration) []setting {
	ms := fmt.Sprint(busy.Milliseconds())
	list := []setting{
		{"busy_timeout", ms, ms}, // first, so that the switch to WAL can wait
		{"foreign_keys", "1", "1"},
		{"recursive_triggers", "1", "1"},
		{"journal_mode", "WAL", "wal"},
		{"synchronous", "FULL", "2"}, // with less, a power cut could forget that a dispatch began
		{"trusted_schema", "0", "0"},
		{"ignore_check_constraints", "0", "0"},
	}
	if access == Read {
		list = append(list, setting{"query_only", "1", "1"})
	}
	return list
}

func dsn(path string, access Access, want []setting) string {
	query := []string{"mode=rw", "_dqs=0"}
	for _, s := range want {
		query = append(query, fmt.Sprintf("_pragma=%s(%s)", s.pragma, s.set))
	}
	if access == Write {
		query = append(query, "_txlock=immediate")
	}
	return fileURI(path, query...)
}

// fileURI escapes every character that SQLite or the driver would read as syntax: a plain path with ? or % is cut or decoded.
func fileURI(path string, query ...string) string {
	var escaped strings.Builder
	for _, part := range strings.SplitAfter(path, "/") {
		name, slash := strings.CutSuffix(part, "/")
		escaped.WriteString(url.PathEscape(name))
		if slash {
			escaped.WriteByte('/')
		}
	}
	return "file:" + escaped.String() + "?" + strings.Join(query, "&")
}

// proving reads the settings back on every new connection: the driver ignores keys that it does not know.
type proving struct {
	driver.Connector
	want []setting
}

func (p proving) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range p.want {
		got, err := readPragma(ctx, conn, s.pragma)
		if err == nil && got != s.proof {
			err = &ConnectionError{Pragma: s.pragma, Want: s.proof, Got: got}
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

func readPragma(ctx context.Context, conn driver.Conn, name string) (string, error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "PRAGMA "+name, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	row := make([]driver.Value, 1)
	if err := rows.Next(row); err != nil {
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		return "", err
	}
	return fmt.Sprint(row[0]), nil
}
