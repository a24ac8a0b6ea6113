package ledger

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/operator"

	"modernc.org/sqlite"
)

// No step may take time that grows with the history: every statement that it runs finds its rows by an index.

// recorder is a connector whose connections keep each statement that runs on them, with its arguments.
type recorder struct {
	driver.Connector
	mu   sync.Mutex
	seen map[string][]any
}

func (r *recorder) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := r.Connector.Connect(ctx)
	return recorded{conn, r}, err
}

func (r *recorder) keep(query string, args []driver.NamedValue) {
	r.mu.Lock()
	defer r.mu.Unlock()
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	r.seen[query] = values
}

type recorded struct {
	driver.Conn
	by *recorder
}

func (c recorded) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.by.keep(query, args)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c recorded) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.by.keep(query, args)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c recorded) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
}

// meant are the scans that are meant: of a partial index that holds only what waits or is in flight, and of what `db check` and an
// unfiltered audit log have to read whole.
var meant = []*regexp.Regexp{
	regexp.MustCompile(`^SCAN o USING INDEX obligations_(waiting|deliverable|approved_pair)$`),
	regexp.MustCompile(`^SCAN c USING (COVERING )?INDEX claims_one_active$`),
	regexp.MustCompile(`^SCAN q$`), // the follow-ups that wait for the hook: a row goes when it is taken
	regexp.MustCompile(`^SCAN a$`), // the audit log from its end, with a limit
	regexp.MustCompile(`^SCAN audit_log$`),
	regexp.MustCompile(`^SCAN (recent|newest|CONSTANT ROW|\d+ CONSTANT ROWS?|\(subquery-\d+\)|\(join-\d+\))$`),
}

func TestNoStepReadsTheHistory(t *testing.T) {
	l := openNew(t, Options{Hook: true})
	base, err := sqlite.NewConnector("file:" + l.path + "?mode=rw")
	if err != nil {
		t.Fatal(err)
	}
	spy := &recorder{Connector: base, seen: map[string][]any{}}
	l.read, l.write = sql.OpenDB(spy), sql.OpenDB(spy)
	l.compiled = newCompiled(l.write)
	for _, db := range []*sql.DB{l.read, l.write} {
		db.SetMaxOpenConns(1)
		defer db.Close()
	}
	everyStep(t, l)
	if len(spy.seen) < 60 {
		t.Fatalf("only %d statements were seen", len(spy.seen))
	}
	plain := sql.OpenDB(base)
	defer plain.Close()
	for query, args := range spy.seen {
		for _, line := range plan(t, plain, query, args) {
			if strings.HasPrefix(line, "SCAN ") && !slices.ContainsFunc(meant, func(m *regexp.Regexp) bool { return m.MatchString(line) }) {
				t.Errorf("%s\n%s", line, query)
			}
		}
	}
}

// A queue of n messages used to be sorted n times.
func TestNextGoesOnWithoutSortingTheQueue(t *testing.T) {
	l := openNew(t, Options{})
	db, err := sql.Open("sqlite", "file:"+l.path+"?mode=ro")
	okay(t, err)
	defer db.Close()
	lines := plan(t, db, firstNear, []any{int64(1), "smtp", "a@b.example", int64(7), unknownHolder, int64(7 + near)})
	if lines[0] != "SEARCH s USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" {
		t.Errorf("it begins with %s", lines[0])
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "SCAN") || strings.Contains(line, "TEMP B-TREE") {
			t.Error(line)
		}
	}
}

func plan(t *testing.T, db *sql.DB, query string, args []any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var line string
		if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
			t.Fatal(err)
		}
		out = append(out, line)
	}
	return out
}

// everyStep runs each step and read at least once, on its common way.
func everyStep(t *testing.T, l *Ledger) {
	t.Helper()
	ctx := t.Context()
	op := someOperator(t)
	decide := func(text, key string, verdict Verdict) Decided {
		f := Filing{Counterparty: text, Platform: "smtp", Channel: text + "@b.example", Text: text, Agent: "quoter", IdempotencyKey: key, User: "u"}
		draft := ok(Clean(f, DefaultLimits()))(t)
		ok(l.File(ctx, draft, Gates{}))(t)
		filed := ok(l.File(ctx, draft, Gates{}))(t)
		return ok(l.Decide(ctx, Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: verdict, Operator: op, Reason: "r"}))(t)
	}
	begun := func(text string) Claim {
		c := ok(l.Claim(ctx, decide(text, text, Approve).DecisionID, "w1"))(t)
		ok(l.BeginDispatch(ctx, c))(t)
		return c
	}
	decide("refiled", "", Reject)
	sent := begun("sent")
	for range 2 {
		okay(t, l.Complete(ctx, sent, Receipt{Coordinate: "c", Altered: true}))
	}
	unknown := begun("unknown")
	okay(t, l.MarkUnknown(ctx, unknown, Failure{Outcome: Refused}))
	ok(l.Settle(ctx, op, unknown.ObligationID, "e"))(t)
	ok(l.Reconcile(ctx, op, unknown.ObligationID, "c", "e"))(t)
	dead := begun("dead")
	okay(t, l.MarkDead(ctx, dead.DecisionID, "w1", "w2"))
	okay(t, l.ConfirmSpooled(ctx, dead.DecisionID, "w2", Receipt{Coordinate: "c"}, func(string) bool { return true }))
	ok(l.Adopt(ctx, ok(l.Claim(ctx, decide("adopted", "adopted", Approve).DecisionID, "w1"))(t).DecisionID, "w1", "w2"))(t)
	okay(t, l.Cancel(ctx, ok(l.Claim(ctx, decide("cancelled", "cancelled", Approve).DecisionID, "w1"))(t), "r"))
	ok(l.CancelByOperator(ctx, op, ok(l.Claim(ctx, decide("given up", "x", Approve).DecisionID, "w1"))(t).ObligationID, "r"))(t)
	revoked := decide("revoked", "revoked", Approve)
	for range 2 {
		ok(l.Revoke(ctx, Revocation{ObligationID: revoked.ObligationID, Operator: op, Reason: "r", Nonce: "n"}))(t)
	}
	again := ok(l.Show(ctx, revoked.ObligationID))(t)
	ok(l.Steer(ctx, op, revoked.ObligationID, "n"))(t)
	ok(l.Withdraw(ctx, "quoter", revoked.ObligationID, again.Epoch))(t)
	ok(l.CloseByHand(ctx, op, decide("closed", "closed", Approve).ObligationID, "r"))(t)
	okay(t, l.DeclareDead(ctx, op, "w1"))
	everyRead(t, l)
}

func everyRead(t *testing.T, l *Ledger) {
	t.Helper()
	ctx := t.Context()
	at := Destination{"smtp", "adopted@b.example"}
	ok(l.Destinations(ctx, DeliverFilter{Platform: "smtp", Hold: time.Second}))(t)
	ok(l.Next(ctx, at, DeliverFilter{}, 0))(t)
	ok(l.Next(ctx, at, DeliverFilter{}, 1))(t)
	okay(t, l.Backoff(ctx, at, func(int) time.Duration { return time.Second }, "c"))
	okay(t, l.Prepared(ctx, at))
	if _, _, err := l.Reserve(ctx, []Pace{{Scope: "s", Every: time.Second}}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	ok(l.Waiting(ctx, ListFilter{Agent: "quoter"}))(t)
	ok(l.Show(ctx, 1))(t)
	ok(l.Status(ctx, 1))(t)
	ok(l.Claims(ctx))(t)
	due := ok(l.HookDue(ctx, 10))(t)
	okay(t, l.HookFailed(ctx, due[0].ID, func(int) time.Duration { return time.Second }, "c"))
	okay(t, l.HookTaken(ctx, due[0].ID))
	inbox := ok(l.Inbox(ctx, "quoter"))(t)
	okay(t, l.Acknowledge(ctx, "quoter", []int64{inbox[0].ID}))
	ok(l.Audit(ctx, AuditFilter{ObligationID: 1}))(t)
	ok(l.Audit(ctx, AuditFilter{Limit: 10}))(t)
	okay(t, l.RecordRefusal(ctx, "file", "quoter", 1, ErrNoOperator))
	if _, err := l.Claim(ctx, 1, "w1"); err == nil { // and a refusal of a pass
		t.Fatal("claimed a rejection")
	}
}

func ok[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T { t.Helper(); okay(t, err); return value }
}

func okay(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func someOperator(t *testing.T) operator.Operator {
	t.Helper()
	token, hash, err := operator.NewToken()
	okay(t, err)
	directory := ok(operator.NewDirectory([]operator.Entry{{ID: "anna", TokenSHA256: hash}}))(t)
	return ok(directory.ByToken(token))(t)
}
