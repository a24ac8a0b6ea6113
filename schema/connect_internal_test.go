package schema

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

func newLedger(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := Create(t.Context(), path, "test"); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestEveryPooledConnectionHasItsSettings(t *testing.T) {
	path := newLedger(t)
	opened := map[Access]int{}
	for _, access := range []Access{Read, Write, Read} {
		db, err := Connect(path, access, 1234*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for range db.Stats().MaxOpenConnections { // all at once, so that each is another connection
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			opened[access]++
			want := map[string]string{"busy_timeout": "1234", "foreign_keys": "1", "recursive_triggers": "1", "journal_mode": "wal", "synchronous": "2",
				"trusted_schema": "0", "ignore_check_constraints": "0", "query_only": fmt.Sprint(int(access))}
			for pragma, value := range want {
				var got string
				if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != value {
					t.Errorf("connection %d of kind %d: PRAGMA %s is %q, %v, want %q", opened[access], access, pragma, got, err, value)
				}
			}
		}
	}
	if opened[Read] != 8 || opened[Write] != 1 {
		t.Errorf("opened %v connections at once", opened)
	}
}

func TestAConnectionWithoutASettingIsRefused(t *testing.T) {
	path := newLedger(t)
	want := settings(Read, time.Second)
	wrong := map[string]string{"busy_timeout": "999", "foreign_keys": "0", "recursive_triggers": "0", "journal_mode": "DELETE", "synchronous": "NORMAL",
		"trusted_schema": "1", "ignore_check_constraints": "1", "query_only": "0"}
	for i, lacking := range want {
		t.Run(lacking.pragma, func(t *testing.T) {
			given := append([]setting{}, want...)
			given[i].set = wrong[lacking.pragma]
			base, err := sqlite.NewConnector(dsn(path, Read, given))
			if err != nil {
				t.Fatal(err)
			}
			db := sql.OpenDB(proving{Connector: base, want: want})
			defer db.Close()
			var refused *ConnectionError
			if err := db.PingContext(t.Context()); !errors.As(err, &refused) || refused.Pragma != lacking.pragma || refused.Want != lacking.proof {
				t.Errorf("got %v, want PRAGMA %s to be missed", err, lacking.pragma)
			}
		})
	}
}

func TestAReaderCantWrite(t *testing.T) {
	db, err := Connect(newLedger(t), Read, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(t.Context(), `INSERT INTO counterparties VALUES ('x', 'x', 'x', 1)`)
	var refused *sqlite.Error
	if !errors.As(err, &refused) || refused.Code() != sqlite3.SQLITE_READONLY {
		t.Errorf("got %v", err)
	}
}

func TestAWriterTakesItsLockAtBegin(t *testing.T) {
	path := newLedger(t)
	first, err := Connect(path, Write, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	tx, err := first.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	second, err := Connect(path, Write, 10*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	_, err = second.BeginTx(t.Context(), nil)
	var busy *sqlite.Error
	if !errors.As(err, &busy) || busy.Code() != sqlite3.SQLITE_BUSY {
		t.Errorf("got %v: the second BEGIN was not immediate", err)
	}
}

func TestMigrationsAreTheVersion(t *testing.T) {
	all, err := migrations()
	if err != nil || len(all) != Version {
		t.Fatalf("%d migrations, version %d, %v", len(all), Version, err)
	}
}

// What sqlite_schema keeps is compared with our statements byte for byte, so that each has to be split off cleanly.
func TestStatementsAreSplitAtBlankLines(t *testing.T) {
	got := statements("-- a comment\n-- and more\nCREATE TABLE a (\n  b TEXT\n) STRICT;\n\n\nCREATE INDEX c ON a (b);\n\n-- the end\n")
	want := []string{"CREATE TABLE a (\n  b TEXT\n) STRICT", "CREATE INDEX c ON a (b)"}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestCheckMissesAnyObject(t *testing.T) {
	db, err := Connect(newLedger(t), Read, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	have, err := stored(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	want, err := objects()
	if err != nil {
		t.Fatal(err)
	}
	if len(have) != len(want) || len(want) < 90 {
		t.Fatalf("%d tables, indexes and triggers in the file, %d in the source", len(have), len(want))
	}
	refused := func(object, problem string) {
		t.Helper()
		if found := compare(want, have); len(found) != 1 || found[0] != (difference{object, problem}) {
			t.Errorf("%s %s: got %v", object, problem, found)
		}
	}
	for name := range want {
		whole := have[name]
		delete(have, name)
		refused(name, "missing")
		have[name] = object{whole.text + " ", whole.table}
		refused(name, "altered")
		have[name] = whole
	}
	if found := compare(want, have); len(found) > 0 {
		t.Error(found)
	}
	have["trigger extra"] = object{"CREATE TRIGGER extra", "crm_notes"}
	refused("trigger extra", "not one of the ledger's own")
}
