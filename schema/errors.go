package schema

import "fmt"

// MissingError says that there is no file at Path. Only `init` creates a ledger.
type MissingError struct{ Path string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("ledger %q does not exist; `countersign init` makes one, and nothing else does", e.Path)
}

// NotLedgerError says why the file at Path can't be used as a ledger. Nothing was written to it.
type NotLedgerError struct{ Path, Reason string }

func (e *NotLedgerError) Error() string {
	return fmt.Sprintf("%q is not a usable ledger: %s; restore a backup, or check the configured path", e.Path, e.Reason)
}

// UpgradeError says that the ledger is of an older version (Found > 0) or of another implementation (Found == 0).
type UpgradeError struct {
	Path  string
	Found int
}

func (e *UpgradeError) Error() string {
	if e.Found == 0 {
		return fmt.Sprintf("ledger %q was written by another implementation; run `countersign db upgrade`, which backs it up first", e.Path)
	}
	return fmt.Sprintf("ledger %q has schema version %d, this program needs %d; run `countersign db upgrade`, which backs it up first", e.Path, e.Found, Version)
}

// NewerError says that the ledger was written by a newer program.
type NewerError struct {
	Path  string
	Found int
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("ledger %q has schema version %d, this program knows %d; use a newer countersign", e.Path, e.Found, Version)
}

// GuardError says that a table, index or trigger of the ledger is missing, altered or not ours.
type GuardError struct{ Path, Object, Problem string }

func (e *GuardError) Error() string {
	return fmt.Sprintf("ledger %q: %s is %s; without its guards a ledger is not used: `countersign db upgrade` puts guards back where the tables are sound; else restore a backup", e.Path, e.Object, e.Problem)
}

// ConnectionError says that a new connection came up without a setting that the ledger's durability rests on.
type ConnectionError struct{ Pragma, Want, Got string }

func (e *ConnectionError) Error() string {
	return fmt.Sprintf("connection refused: PRAGMA %s is %q, want %q", e.Pragma, e.Got, e.Want)
}

// UpgradeStoppedError says why `db upgrade` left the ledger as it was. Rows name what has to be mended by hand.
type UpgradeStoppedError struct {
	Path, Reason string
	Rows         []string
}

func (e *UpgradeStoppedError) Error() string {
	if len(e.Rows) == 0 {
		return fmt.Sprintf("ledger %q was not upgraded and is unchanged: %s", e.Path, e.Reason)
	}
	return fmt.Sprintf("ledger %q was not upgraded and is unchanged: %s: %s", e.Path, e.Reason, joinSome(e.Rows, 10))
}

func joinSome(rows []string, most int) string {
	out := ""
	for i, row := range rows {
		if i == most {
			return out + fmt.Sprintf("; and %d more", len(rows)-most)
		}
		if i > 0 {
			out += "; "
		}
		out += row
	}
	return out
}
