package schema

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	row    = regexp.MustCompile(`\b(NEW|OLD)\.\w+`)
	raised = regexp.MustCompile(`RAISE\(ABORT, '(?:[^']|'')*'\)`)
)

// A guard runs in every step. None may take time that grows with the history.
func TestNoGuardReadsTheHistory(t *testing.T) {
	db, err := Connect(newLedger(t), Read, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list, err := guards()
	if err != nil {
		t.Fatal(err)
	}
	conditions := 0
	for _, guard := range list {
		head, body, _ := strings.Cut(guard, "BEGIN\n")
		for _, condition := range strings.Split(strings.TrimSuffix(body, "END"), ";\n") {
			if strings.TrimSpace(condition) == "" {
				continue
			}
			conditions++
			query := raised.ReplaceAllString(row.ReplaceAllString(condition, "?"), "1")
			plan, err := columnOfPlan(t, db, query, make([]any, strings.Count(query, "?")))
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			for _, line := range plan {
				if strings.HasPrefix(line, "SCAN ") && line != "SCAN CONSTANT ROW" && !strings.HasSuffix(query, "max(id), 0) + 1 FROM "+last(line)+")") {
					t.Errorf("%.60s\n%s\n%s", head, line, condition)
				}
			}
		}
	}
	if conditions < 120 {
		t.Errorf("only %d conditions were found", conditions)
	}
}

func last(line string) string { return line[strings.LastIndexByte(line, ' ')+1:] }

func columnOfPlan(t *testing.T, db querier, query string, args []any) ([]string, error) {
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			return nil, err
		}
		out = append(out, line)
	}
	return out, rows.Err()
}
