// Package schema answers: is this file a ledger that may be used?
//
// It holds the DDL, one folder a dialect, the versioned migrations, and everything that is checked before the first statement of a
// caller runs: the look at the file before any pragma touches it, the settings of every pooled connection, and the guards.
// It imports nothing of this module.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"sort"
	"strings"
)

// Version is the newest schema version, kept in SQLite's user_version.
const Version = 2

// ApplicationID marks a file as a ledger of this program ("CSG1"), in SQLite's application_id.
const ApplicationID = 0x43534731

// CoreTables are the six tables that every implementation of the contract has.
var CoreTables = []string{
	"obligations", "obligation_drafts", "obligation_decisions",
	"obligation_approval_snapshots", "obligation_delivery_claims", "obligation_deliveries",
}

//go:embed sqlite
var files embed.FS

// migrations returns the statements of each version's migration, oldest first.
func migrations() ([][]string, error) {
	names, err := fs.Glob(files, "sqlite/migrations/*.sql")
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	var out [][]string
	for i, name := range names {
		if !strings.HasPrefix(name, fmt.Sprintf("sqlite/migrations/%04d_", i+1)) {
			return nil, fmt.Errorf("schema: migration %s is out of order", name)
		}
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, statements(string(text)))
	}
	return out, nil
}

func guards() ([]string, error) {
	text, err := files.ReadFile("sqlite/guards.sql")
	return statements(string(text)), err
}

// statements splits a DDL file at blank lines, drops the comment lines before a statement and its final semicolon: what is left is
// byte for byte what sqlite_schema stores, so that a guard can be compared with its source.
func statements(text string) []string {
	var out []string
	for _, chunk := range strings.Split(text, "\n\n") {
		for strings.HasPrefix(chunk, "--") {
			_, chunk, _ = strings.Cut(chunk, "\n")
		}
		if chunk = strings.TrimSuffix(strings.TrimSpace(chunk), ";"); chunk != "" {
			out = append(out, chunk)
		}
	}
	return out
}
