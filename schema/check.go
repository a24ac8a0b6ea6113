package schema

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

// querier is a connection, pool or transaction that reads.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Check reads the version and compares every table, index and trigger of the ledger with its source. It reports the first difference
// as *UpgradeError, *NewerError or *GuardError. Tables that aren't ours are left alone; a trigger that isn't ours is refused, since
// it would run inside our transactions, and so is an index on a table of ours: it could refuse our rows.
func Check(ctx context.Context, db querier, path string) error {
	var version int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&version); err != nil {
		return err
	}
	if version < 1 {
		return &GuardError{path, fmt.Sprintf("schema version %d", version), "not one of the ledger's own"}
	}
	if version < Version {
		return &UpgradeError{Path: path, Found: version}
	}
	if version > Version {
		return &NewerError{Path: path, Found: version}
	}
	want, err := objects()
	if err != nil {
		return err
	}
	have, err := stored(ctx, db)
	if err != nil {
		return err
	}
	if found := compare(want, have); len(found) > 0 {
		return &GuardError{path, found[0].object, found[0].problem}
	}
	return touchAll(ctx, db, want)
}

// touchAll reads the first page of every table, so that a file damaged there is refused when it is opened. Reading the whole file would
// take time that grows with the history; `db check` does.
func touchAll(ctx context.Context, db querier, want map[string]string) error {
	for _, object := range sortedKeys(want) {
		name, ok := strings.CutPrefix(object, "table ")
		if !ok {
			continue
		}
		if _, err := column(ctx, db, `SELECT 1 FROM `+name+` LIMIT 1`); err != nil {
			return fmt.Errorf("%s: %w", object, err)
		}
	}
	return nil
}

// difference is an object ("trigger guard_claims_delete") that is not as this program made it.
type difference struct{ object, problem string }

// compare lists all differences: what is missing or altered, then what isn't ours.
func compare(want map[string]string, have map[string]object) []difference {
	var out []difference
	for _, name := range sortedKeys(want) {
		switch got, ok := have[name]; {
		case !ok:
			out = append(out, difference{name, "missing"})
		case got.text != want[name]:
			out = append(out, difference{name, "altered"})
		}
	}
	for _, name := range sortedKeys(have) {
		if _, ok := want[name]; !ok && have[name].intrudes(name, want) {
			out = append(out, difference{name, "not one of the ledger's own"})
		}
	}
	return out
}

// intrudes tells whether an object that isn't ours takes part in our statements.
func (o object) intrudes(name string, want map[string]string) bool {
	_, onOurs := want["table "+o.table]
	return strings.HasPrefix(name, "trigger ") || strings.HasPrefix(name, "index ") && onOurs
}

func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

var created = regexp.MustCompile(`^CREATE (?:UNIQUE )?(TABLE|INDEX|TRIGGER) (\w+)`)

// objects maps "table name", "index name" and "trigger name" to the DDL that made it.
func objects() (map[string]string, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}
	list, err := guards()
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, statement := range append(flatten(all), list...) {
		if m := created.FindStringSubmatch(statement); m != nil {
			out[strings.ToLower(m[1])+" "+m[2]] = statement
		}
	}
	return out, nil
}

func flatten(groups [][]string) []string {
	var out []string
	for _, group := range groups {
		out = append(out, group...)
	}
	return out
}

// object is a row of sqlite_schema: its DDL, and in lower case the table that it is on.
type object struct{ text, table string }

// stored reads what the file has. SQLite compares an object's type, and names, without case, so a row with another spelling is one all
// the same. Automatic indexes have no SQL and are left out.
func stored(ctx context.Context, db querier) (map[string]object, error) {
	rows, err := db.QueryContext(ctx, `SELECT lower(type), name, lower(tbl_name), sql FROM sqlite_schema WHERE sql IS NOT NULL`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]object{}
	for rows.Next() {
		var kind, name, table, text string
		if err := rows.Scan(&kind, &name, &table, &text); err != nil {
			return nil, err
		}
		out[kind+" "+name] = object{out[kind+" "+name].text + text, table} // two rows of one name are one altered object
	}
	return out, rows.Err()
}
