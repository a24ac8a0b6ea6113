package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// coreColumn is one column of a core table as the contract gives it.
type coreColumn struct {
	name, kind string
	optional   bool // NULL is a value
}

// coreColumns are read from our own DDL, so that the contract stands in one place.
func coreColumns(table string) ([]coreColumn, error) {
	all, err := migrations()
	if err != nil {
		return nil, err
	}
	for _, statement := range flatten(all) {
		head, body, _ := strings.Cut(statement, "(\n")
		if strings.TrimSpace(head) != "CREATE TABLE "+table {
			continue
		}
		var out []coreColumn
		for _, line := range strings.Split(body, "\n") {
			words := strings.Fields(strings.Trim(line, " ,"))
			if len(words) < 2 || words[1] != "INTEGER" && words[1] != "TEXT" {
				continue
			}
			required := strings.Contains(line, "NOT NULL") || strings.Contains(line, "PRIMARY KEY")
			out = append(out, coreColumn{name: words[0], kind: strings.ToLower(words[1]), optional: !required})
		}
		return out, nil
	}
	return nil, fmt.Errorf("schema: no table %s", table)
}

// checkForeign refuses what can't be taken over without a guess: other columns, values of another type, two drafts for one pair,
// several claims for one decision, states that the contract doesn't know.
func checkForeign(ctx context.Context, db querier, path string) error {
	for _, table := range CoreTables {
		columns, err := coreColumns(table)
		if err != nil {
			return err
		}
		if err := checkColumns(ctx, db, path, table, columns); err != nil {
			return err
		}
		if err := checkTypes(ctx, db, path, table, columns); err != nil {
			return err
		}
	}
	if err := checkNames(ctx, db, path); err != nil {
		return err
	}
	for _, check := range foreignChecks {
		rows, err := column(ctx, db, check.query)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			return &UpgradeStoppedError{Path: path, Reason: check.reason, Rows: rows}
		}
	}
	return nil
}

// checkNames refuses a ledger that has tables, views or indexes under names that ours will have. What is on a core table goes with it.
func checkNames(ctx context.Context, db querier, path string) error {
	own, err := objects()
	if err != nil {
		return err
	}
	found, err := column(ctx, db, `
		SELECT type || ' ' || name FROM sqlite_schema
		WHERE type <> 'trigger' AND lower(tbl_name) NOT IN ('`+strings.Join(CoreTables, `', '`)+`') ORDER BY name`)
	if err != nil {
		return err
	}
	var taken []string
	for _, object := range found {
		_, name, _ := strings.Cut(strings.ToLower(object), " ")
		if own["table "+name] != "" || own["index "+name] != "" {
			taken = append(taken, object)
		}
	}
	if len(taken) > 0 {
		return &UpgradeStoppedError{Path: path, Reason: "it has names that the upgrade needs; rename or drop them", Rows: taken}
	}
	return nil
}

var foreignChecks = []struct{ reason, query string }{
	{"several rows have one key", `
		SELECT 'obligation ' || id FROM obligations GROUP BY id HAVING count(*) > 1
		UNION ALL SELECT 'draft of obligation ' || obligation_id FROM obligation_drafts GROUP BY obligation_id HAVING count(*) > 1
		UNION ALL SELECT 'decision ' || id FROM obligation_decisions GROUP BY id HAVING count(*) > 1
		UNION ALL SELECT 'nonce of decisions ' || group_concat(id, ', ') FROM obligation_decisions GROUP BY nonce HAVING count(*) > 1
		UNION ALL SELECT 'snapshot of decision ' || decision_id FROM obligation_approval_snapshots GROUP BY decision_id HAVING count(*) > 1
		UNION ALL SELECT 'token of the claims of decisions ' || group_concat(decision_id, ', ') FROM obligation_delivery_claims
		GROUP BY token HAVING count(*) > 1
		UNION ALL SELECT 'receipt ' || id FROM obligation_deliveries GROUP BY id HAVING count(*) > 1
		UNION ALL SELECT 'receipts ' || group_concat(id, ', ') FROM obligation_deliveries
		WHERE decision_id IS NOT NULL GROUP BY obligation_id, decision_id HAVING count(*) > 1`},
	{"an id is not positive, or leaves no room for later ones", `
		SELECT 'obligation ' || id FROM obligations WHERE id NOT BETWEEN 1 AND 9007199254740991
		UNION ALL SELECT 'decision ' || id FROM obligation_decisions WHERE id NOT BETWEEN 1 AND 9007199254740991
		UNION ALL SELECT 'receipt ' || id FROM obligation_deliveries WHERE id NOT BETWEEN 1 AND 9007199254740991`},
	{"a claim holds an obligation that is not approved", `
		SELECT 'obligation ' || o.id || ': ' || o.status || ', its claim is ' || c.state FROM obligations o
		JOIN obligation_delivery_claims c ON c.obligation_id = o.id
		WHERE c.state IN ('claimed', 'dispatching', 'unknown') AND o.status <> 'approved'`},
	{"several drafts wait for one counterparty and channel; close all but one of each", `
		SELECT 'obligations ' || group_concat(id, ', ') FROM obligations WHERE status = 'drafted'
		GROUP BY counterparty, channel HAVING count(*) > 1`},
	{"a value is not one of the contract's", `
		SELECT 'obligation ' || id || ': ' || status || '/' || direction FROM obligations
		WHERE status NOT IN ('open', 'drafted', 'approved', 'rejected', 'sent', 'closed')
			OR direction NOT IN ('we_owe_them', 'they_owe_us', 'none')
		UNION ALL SELECT 'draft of obligation ' || obligation_id || ': priority ' || priority FROM obligation_drafts
		WHERE priority NOT IN ('P0', 'P1', 'P2', 'P3')
		UNION ALL SELECT 'decision ' || id || ': ' || decision FROM obligation_decisions WHERE decision NOT IN ('approve', 'reject')
		UNION ALL SELECT 'decision ' || id || ': no operator or nonce' FROM obligation_decisions WHERE operator = '' OR nonce = ''
		UNION ALL SELECT 'snapshot of decision ' || decision_id || ': kind ' || kind FROM obligation_approval_snapshots WHERE kind <> 'draft_sent'
		UNION ALL SELECT 'claim of decision ' || decision_id || ': ' || state FROM obligation_delivery_claims
		WHERE state NOT IN ('claimed', 'dispatching', 'delivered', 'unknown', 'cancelled') OR token = ''
		UNION ALL SELECT 'receipt ' || id || ': ' || kind FROM obligation_deliveries
		WHERE kind NOT IN ('draft_sent', 'reject_notice', 'manual_notice')`},
	{"an obligation or decision has more than one claim that holds it", `
		SELECT 'obligation ' || obligation_id FROM obligation_delivery_claims WHERE state IN ('claimed', 'dispatching', 'unknown')
		GROUP BY obligation_id HAVING count(*) > 1
		UNION ALL SELECT 'decision ' || decision_id FROM obligation_delivery_claims GROUP BY decision_id HAVING count(*) > 1`},
	{"an obligation waits or is approved without a draft, or its draft is for another destination", `
		SELECT 'obligation ' || o.id FROM obligations o LEFT JOIN obligation_drafts d ON d.obligation_id = o.id
		WHERE o.status IN ('drafted', 'approved')
			AND (d.obligation_id IS NULL OR d.origin_platform <> o.source OR d.origin_channel <> o.channel)`},
}

func checkColumns(ctx context.Context, db querier, path, table string, want []coreColumn) error {
	names, err := column(ctx, db, `SELECT name FROM pragma_table_info($1) ORDER BY cid`, table)
	if err != nil {
		return err
	}
	var expected []string
	for _, c := range want {
		expected = append(expected, c.name)
	}
	if strings.Join(names, ",") != strings.Join(expected, ",") {
		return &UpgradeStoppedError{Path: path, Reason: "a core table has other columns",
			Rows: []string{fmt.Sprintf("%s has %s, want %s", table, strings.Join(names, ", "), strings.Join(expected, ", "))}}
	}
	return nil
}

// checkTypes finds values stored under another type: a TEXT '7' scans as 7 and doesn't equal 7.
func checkTypes(ctx context.Context, db querier, path, table string, want []coreColumn) error {
	var found []string
	for _, c := range want {
		allowed := fmt.Sprintf(`'%s'`, c.kind)
		if c.optional {
			allowed += `, 'null'`
		}
		key := want[0].name
		rows, err := column(ctx, db, fmt.Sprintf(`SELECT %s || ': ' || typeof(%s) FROM %s WHERE typeof(%s) NOT IN (%s) LIMIT 20`,
			quoteKey(key), c.name, table, c.name, allowed))
		if err != nil {
			return err
		}
		for _, row := range rows {
			found = append(found, fmt.Sprintf("%s.%s, %s %s, want %s", table, c.name, key, row, c.kind))
		}
	}
	if len(found) > 0 {
		return &UpgradeStoppedError{Path: path, Reason: "values have the wrong type", Rows: found}
	}
	return nil
}

// quoteKey shows a key whatever its type, and NULL as such.
func quoteKey(name string) string { return `quote(` + name + `)` }

func checkReferences(ctx context.Context, tx *sql.Tx, path string) error {
	rows, err := column(ctx, tx, `SELECT coalesce("table", '') || ' row ' || coalesce(rowid, '?') || ' names a missing ' || "parent" FROM pragma_foreign_key_check`)
	if err != nil {
		return err
	}
	if len(rows) > 0 {
		return &UpgradeStoppedError{Path: path, Reason: "rows name others that are missing", Rows: rows}
	}
	return nil
}
