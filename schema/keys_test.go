package schema_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// unguarded are the tables that are no history: their rows may come and go. A new table is history unless it is named here.
var unguarded = map[string]bool{
	"prepare_backoff": true, "pacing": true, "outbox": true, "digests": true, "hook_queue": true,
}

// mutable are the columns that some lawful step changes in place. Their rules are attacked one by one in TestEveryGuardAborts.
var mutable = map[string]bool{
	"obligations.status": true, "obligations.summary": true, "obligations.opened_ts": true, "obligations.last_touch_ts": true,
	"obligations.updated_at": true, "obligations.direction": true, "obligations.source": true,
	"obligation_drafts.created_ts": true, "obligation_drafts.updated_ts": true, "obligation_drafts.auto_send_after": true,
	"obligation_drafts.signal_obligation_id": true,
	"obligation_delivery_claims.state":       true,
	"claim_holders.generation":               true, "claim_holders.begun_us": true,
	"followups.acked_us": true,
}

// key is a set of columns that is unique in a table.
type key struct {
	table   string
	columns []string
}

// keys enumerates every unique key of the file, row ids included, so that a table added later is tried too.
func keys(t *testing.T, conn *sql.Conn) []key {
	t.Helper()
	var out []key
	for _, table := range tables(t, conn) {
		if unguarded[table] {
			continue
		}
		primary := names(t, conn, `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk`, table)
		out = append(out, key{table, primary})
		if !hasHonestRowID(t, conn, table, primary) {
			t.Errorf("%s has a row id that is no column: REPLACE by it goes past the guards", table)
		}
		for _, index := range names(t, conn, `SELECT name FROM pragma_index_list($1) WHERE "unique" = 1 AND origin <> 'pk'`, table) {
			out = append(out, key{table, names(t, conn, `SELECT name FROM pragma_index_info($1) ORDER BY seqno`, index)})
		}
	}
	return out
}

// hasHonestRowID tells whether the row id is the primary key, or there is none.
func hasHonestRowID(t *testing.T, conn *sql.Conn, table string, primary []string) bool {
	t.Helper()
	text := query(t, conn, `SELECT sql FROM sqlite_schema WHERE name = $1`, table)[0][0].(string)
	kind := query(t, conn, `SELECT type FROM pragma_table_info($1) WHERE name = $2`, table, primary[0])[0][0].(string)
	return strings.HasSuffix(text, "WITHOUT ROWID") || len(primary) == 1 && kind == "INTEGER"
}

func names(t *testing.T, conn *sql.Conn, text string, args ...any) []string {
	t.Helper()
	var out []string
	for _, row := range query(t, conn, text, args...) {
		out = append(out, row[0].(string))
	}
	return out
}

// Without the checks of the table definitions there are only the guards.
const guardsAlone = "PRAGMA ignore_check_constraints = ON"

func TestNoRowIsReplacedByAnyUniqueKey(t *testing.T) {
	l := lived(t)
	conn := l.plain(t, guardsAlone)
	before := dump(t, conn)
	tried := 0
	for _, k := range keys(t, conn) {
		columns := names(t, conn, `SELECT name FROM pragma_table_info($1) ORDER BY cid`, k.table)
		rows := rowsOf(t, conn, k.table)
		if len(rows) == 0 {
			t.Errorf("%s is empty: the ledger that has lived lacks a row to attack", k.table)
		}
		for i, victim := range rows {
			for _, like := range []int{i, (i + 1) % len(rows)} { // a copy of the victim, and of another row with the victim's key
				statement, args := replacement(k, columns, victim, rows[like])
				aborted(t, conn, before, statement, args...)
				tried++
			}
		}
	}
	if tried < 200 {
		t.Errorf("only %d replacements were tried", tried)
	}
	if after := dump(t, conn); after != before {
		t.Errorf("a row was replaced:\n%s", firstDifference(before, after))
	}
}

// replacement inserts a row like another one, but with the victim's key; whatever else is unique in it is made fresh, so that only this
// key collides.
func replacement(k key, columns []string, victim, like []any) (string, []any) {
	values := make([]any, len(columns))
	marks := make([]string, len(columns))
	for i, column := range columns {
		marks[i] = fmt.Sprintf("$%d", i+1)
		values[i] = like[i]
		if contains(k.columns, column) {
			values[i] = victim[i]
		} else if fresh, ok := freshValues[column]; ok {
			values[i] = fresh
		}
	}
	return fmt.Sprintf(`INSERT OR REPLACE INTO %s (%s) VALUES (%s)`, k.table, strings.Join(columns, ", "), strings.Join(marks, ", ")), values
}

// freshValues make the parts of other keys new. NULL lets SQLite choose an id.
var freshValues = map[string]any{"id": nil, "token": "fresh", "nonce": "fresh", "idempotency_key": "fresh", "epoch": int64(1_900_000_001), "ts": "fresh"}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// aborted runs the statement, which a guard has to stop unless it collides with nothing (a partial index leaves rows out): then every
// row of the dump before must still be there.
func aborted(t *testing.T, conn *sql.Conn, before, statement string, args ...any) {
	t.Helper()
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	defer conn.ExecContext(t.Context(), "ROLLBACK")
	result, err := conn.ExecContext(t.Context(), statement, args...)
	if err == nil {
		if n, err := result.RowsAffected(); err == nil && n == 0 {
			return
		}
		if lost := missingLine(before, dump(t, conn)); lost != "" {
			t.Errorf("accepted: %s %v\n\twhich removed or changed %s", statement, args, lost)
		}
		return
	}
	var refused *sqlite.Error
	if !errors.As(err, &refused) || refused.Code() != sqlite3.SQLITE_CONSTRAINT_TRIGGER {
		t.Errorf("not stopped by a guard: %s %v: %v", statement, args, err)
	}
}

func missingLine(before, after string) string {
	kept := map[string]bool{}
	for _, line := range strings.Split(after, "\n") {
		kept[line] = true
	}
	for _, line := range strings.Split(before, "\n") {
		if !kept[line] {
			return line
		}
	}
	return ""
}

func TestNoRowIsDeleted(t *testing.T) {
	l := lived(t)
	conn := l.plain(t)
	before := dump(t, conn)
	for _, k := range keys(t, conn) {
		aborted(t, conn, before, "DELETE FROM "+k.table)
	}
	if after := dump(t, conn); after != before {
		t.Errorf("a row was deleted:\n%s", firstDifference(before, after))
	}
}

func TestNoImmutableColumnIsUpdated(t *testing.T) {
	l := lived(t)
	conn := l.plain(t, guardsAlone)
	before := dump(t, conn)
	for _, table := range tables(t, conn) {
		for _, column := range names(t, conn, `SELECT name FROM pragma_table_info($1) ORDER BY cid`, table) {
			if mutable[table+"."+column] || unguarded[table] {
				continue
			}
			for _, statement := range changesOf(t, conn, table, column) {
				aborted(t, conn, before, statement)
			}
		}
	}
	if after := dump(t, conn); after != before {
		t.Errorf("a row was changed:\n%s", firstDifference(before, after))
	}
}

// changesOf sets the column to something else, and to another row's value, in one row after the other: of the obligations' tables in all
// states, of the others in a few.
func changesOf(t *testing.T, conn *sql.Conn, table, column string) []string {
	t.Helper()
	primary := names(t, conn, `SELECT name FROM pragma_table_info($1) WHERE pk > 0 ORDER BY pk DESC`, table)[0]
	kind := query(t, conn, `SELECT type FROM pragma_table_info($1) WHERE name = $2`, table, column)[0][0].(string)
	other := "'x'"
	if kind == "INTEGER" {
		other = fmt.Sprintf("coalesce(%s, 0) + 1000", column)
	}
	var out []string
	limit := 3
	if strings.HasPrefix(table, "obligation") {
		limit = 100
	}
	for _, row := range query(t, conn, fmt.Sprintf(`SELECT quote(%s) FROM %s LIMIT %d`, primary, table, limit)) {
		for _, value := range []string{other, fmt.Sprintf("(SELECT max(%s) FROM %s)", column, table)} {
			out = append(out, fmt.Sprintf("UPDATE OR REPLACE %s SET %s = %s WHERE %s = %s AND %s IS NOT %s", table, column, value, primary, row[0], column, value))
		}
	}
	return out
}
