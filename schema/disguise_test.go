package schema

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func openAsUsers(t *testing.T, path string) error {
	t.Helper()
	if _, err := Look(path); err != nil {
		return err
	}
	db, err := Connect(path, Read, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return Check(context.Background(), db, path)
}

// A file with two names used to be two ledgers for its workers: log and locks lie beside the name.
func TestASecondNameOfALedgerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := Create(t.Context(), path, "id"); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, path+".alias"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + ".alias"} {
		var no *NotLedgerError
		if err := openAsUsers(t, name); !errors.As(err, &no) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := os.Remove(path + ".alias"); err != nil {
		t.Fatal(err)
	}
	if err := openAsUsers(t, path); err != nil {
		t.Errorf("with one name: %v", err)
	}
}

// SQLite takes a row of type TRIGGER for a trigger, whose case the check used to miss.
func TestATriggerInDisguiseIsRefused(t *testing.T) {
	for _, name := range []string{"evil", "guard_claims_insert"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ledger.db")
			if err := Create(t.Context(), path, "id"); err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("sqlite", fileURI(path, "mode=rw"))
			if err != nil {
				t.Fatal(err)
			}
			db.SetMaxOpenConns(1)
			for _, statement := range []string{
				`PRAGMA writable_schema = ON`,
				`INSERT INTO sqlite_schema VALUES ('TRIGGER', '` + name + `', 'filings', 0,
					'CREATE TRIGGER ` + name + ` AFTER INSERT ON filings BEGIN SELECT 1; END')`,
			} {
				if _, err := db.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			if err := openAsUsers(t, path); err == nil {
				t.Error("a hidden trigger was not noticed")
			}
		})
	}
}
