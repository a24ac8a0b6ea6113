package hook_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/hook"
	"countersign/ledger"
	"countersign/operator"
)

// queue is a ledger that keeps follow-ups for the hook, with a clock that the test sets.
type queue struct {
	*ledger.Ledger
	t    *testing.T
	now  time.Time
	anna operator.Operator
	raw  *sql.DB
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	q := &queue{t: t, now: time.Unix(1_800_000_000, 0), anna: newOperator(t)}
	path := filepath.Join(t.TempDir(), "ledger.db")
	empty, err := emptyLedger()
	must(t, err)
	must(t, os.WriteFile(path, empty, 0o600))
	q.Ledger, err = ledger.Open(t.Context(), path, ledger.Options{Now: func() time.Time { return q.now }, Hook: true})
	must(t, err)
	t.Cleanup(func() { q.Close() })
	q.raw, err = sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)")
	must(t, err)
	t.Cleanup(func() { q.raw.Close() })
	return q
}

// emptyLedger is made once: each test copies it.
var emptyLedger = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "countersign-empty-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.db")
	if err := ledger.Create(context.Background(), path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func newOperator(t *testing.T) operator.Operator {
	t.Helper()
	token, hash, err := operator.NewToken()
	must(t, err)
	directory, err := operator.NewDirectory([]operator.Entry{{ID: "anna", TokenSHA256: hash}})
	must(t, err)
	anna, err := directory.ByToken(token)
	must(t, err)
	return anna
}

// tell files a draft of the agent's, and brings it as many follow-ups as there are notes.
func (q *queue) tell(agent string, notes ...string) {
	q.t.Helper()
	draft, err := ledger.Clean(ledger.Filing{Counterparty: "for " + agent, Platform: "smtp", Channel: agent + "@acme.example", Text: "hello",
		Subject: "Offer", Agent: agent}, ledger.DefaultLimits())
	must(q.t, err)
	filed, err := q.File(q.t.Context(), draft, ledger.Gates{})
	must(q.t, err)
	for _, note := range notes {
		_, err := q.Steer(q.t.Context(), q.anna, filed.ObligationID, note)
		must(q.t, err)
	}
}

// rows are the queue's, as "id failures seconds-to-wait error".
func (q *queue) rows() string {
	q.t.Helper()
	rows, err := q.raw.QueryContext(q.t.Context(), `SELECT followup_id, failures, retry_us, error FROM hook_queue ORDER BY followup_id`)
	must(q.t, err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, failures, retry int64
		var cause string
		must(q.t, rows.Scan(&id, &failures, &retry, &cause))
		wait := "now"
		if retry > q.now.UnixMicro() {
			wait = time.UnixMicro(retry).Sub(q.now).String()
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %d %s %s", id, failures, wait, cause)))
	}
	must(q.t, rows.Err())
	return strings.Join(out, "\n")
}

func pass(t *testing.T, h *hook.Hook) hook.Report {
	t.Helper()
	report, err := h.Pass(t.Context())
	must(t, err)
	return report
}

func ids(list []hook.FollowUp) string {
	var out []string
	for _, f := range list {
		out = append(out, fmt.Sprint(f.ID))
	}
	return strings.Join(out, " ")
}

func message(t *testing.T, body []byte) hook.Message {
	t.Helper()
	var m hook.Message
	must(t, json.Unmarshal(body, &m))
	return m
}

// scripted is a receiver of scripted outcomes, by the words of the follow-up; what isn't named is taken.
type scripted struct {
	notReady error
	fail     map[string]error
	before   func(word string)
	got      []string
}

func (s *scripted) Ready() error { return s.notReady }

func (s *scripted) Hand(ctx context.Context, body []byte) error {
	var m hook.Message
	if err := json.Unmarshal(body, &m); err != nil {
		return err
	}
	words := strings.Fields(m.Body)
	word := words[len(words)-1]
	if s.before != nil {
		s.before(word)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.got = append(s.got, word)
	return s.fail[word]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
