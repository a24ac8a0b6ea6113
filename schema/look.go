package schema

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Kind tells what a look at the file found.
type Kind int

const (
	// Ours is a file that this program's application id marks.
	Ours Kind = iota
	// Foreign is a SQLite file with the six core tables, written by another implementation.
	Foreign
)

// headerSize is the length of the SQLite database header. Source: https://www.sqlite.org/fileformat.html#the_database_header
const headerSize = 100

// Look reads the file's header, and nothing else, before any pragma can touch it: opening a file with a WAL setting would rewrite a
// foreign file's header and grow an empty one. What is no ledger is an error that names the file; nothing is written.
func Look(path string) (Kind, error) {
	header, err := readHeader(path)
	if err != nil {
		return 0, err
	}
	if binary.BigEndian.Uint32(header[68:72]) != ApplicationID {
		return lookForCore(path)
	}
	// Only a newer version is sure from here: a version never goes back, but one that was just written may still be in the log.
	if version := int(int32(binary.BigEndian.Uint32(header[60:64]))); version > Version {
		return Ours, &NewerError{path, version}
	}
	return Ours, nil
}

func readHeader(path string) ([]byte, error) {
	info, err := os.Stat(path) // first: to open a pipe would wait for its writer
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &MissingError{Path: path}
	}
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, &NotLedgerError{path, "it is not a regular file"}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	defer file.Close()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Nlink > 1 {
		// Write-ahead log and locks lie beside a name: through two names of one file, two workers would not see each other.
		return nil, &NotLedgerError{path, "it has a second name (a hard link); remove the other one"}
	}
	if info.Size() == 0 {
		return nil, &NotLedgerError{path, "it is empty"}
	}
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(file, header); err != nil {
		return nil, &NotLedgerError{path, fmt.Sprintf("it has %d bytes, too few for a SQLite file", info.Size())}
	}
	return header, plausible(path, header, info.Size())
}

// plausible checks what a healthy file always has, so that a damaged one is refused before SQLite opens it.
func plausible(path string, header []byte, size int64) error {
	if !bytes.HasPrefix(header, []byte("SQLite format 3\x00")) {
		return &NotLedgerError{path, "it is not a SQLite file"}
	}
	page := int64(binary.BigEndian.Uint16(header[16:18]))
	if page == 1 {
		page = 65536
	}
	if page < 512 || page&(page-1) != 0 || size%page != 0 {
		return &NotLedgerError{path, "it is damaged: its size does not fit its page size"}
	}
	return nil
}

// lookForCore opens the file immutable, which reads the main file alone and can't write. Only where a write-ahead log may hold what the
// main file doesn't have yet (an upgrade, for one), it is read too; the main file stays as it is.
func lookForCore(path string) (Kind, error) {
	if err := switchLocking(); err != nil {
		return 0, err
	}
	query := []string{"mode=ro", "immutable=1"}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		query = query[:1]
	}
	db, err := sql.Open("sqlite", fileURI(path, query...))
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var application int64
	if err := db.QueryRow(`PRAGMA application_id`).Scan(&application); err != nil {
		return 0, &NotLedgerError{path, "it can't be read: " + err.Error()}
	}
	if application == ApplicationID {
		return Ours, nil
	}
	for _, table := range CoreTables {
		var n int
		err := db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = $1`, table).Scan(&n)
		if err != nil {
			return 0, &NotLedgerError{path, "it can't be read: " + err.Error()}
		}
		if n == 0 {
			return 0, &NotLedgerError{path, fmt.Sprintf("it is a SQLite file without the table %s", table)}
		}
	}
	return Foreign, nil
}
