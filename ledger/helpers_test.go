package ledger_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// desk is a ledger on a fresh file with two operators and a clock that the test sets.
type desk struct {
	*ledger.Ledger
	t         testing.TB
	path      string
	anna, ben operator.Operator
	now       time.Time
	opts      ledger.Options
	raw       *sql.DB // see plain
	// Who files what for whom: a test with many cases gives each its own, and they share one ledger.
	agent, party, channel string
}

func newDesk(t testing.TB, change ...func(*ledger.Options)) *desk {
	t.Helper()
	d := &desk{t: t, path: filepath.Join(t.TempDir(), "ledger.db"), now: time.Unix(1_800_000_000, 0),
		agent: "quoter", party: "acme", channel: "buyer@acme.example"}
	empty, err := emptyLedger()
	must(t, err)
	must(t, os.WriteFile(d.path, empty, 0o600))
	d.anna, d.ben = newOperators(t)
	d.opts = ledger.Options{Now: func() time.Time { return d.now }}
	for _, c := range change {
		c(&d.opts)
	}
	d.Ledger = d.open()
	return d
}

// emptyLedger is made once: a test that needs one copies it.
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

func newOperators(t testing.TB) (anna, ben operator.Operator) {
	t.Helper()
	var entries []operator.Entry
	var tokens []string
	for _, id := range []string{"anna", "ben"} {
		token, hash, err := operator.NewToken()
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
		entries = append(entries, operator.Entry{ID: id, TokenSHA256: hash})
	}
	directory, err := operator.NewDirectory(entries)
	if err != nil {
		t.Fatal(err)
	}
	anna, err = directory.ByToken(tokens[0])
	if err != nil {
		t.Fatal(err)
	}
	if ben, err = directory.ByToken(tokens[1]); err != nil {
		t.Fatal(err)
	}
	return anna, ben
}

// open opens the same file once more, as another process would.
func (d *desk) open() *ledger.Ledger {
	d.t.Helper()
	l, err := ledger.Open(context.Background(), d.path, d.opts)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { l.Close() })
	return l
}

func (d *desk) tick(by time.Duration) { d.now = d.now.Add(by) }

func filing(text string) ledger.Filing {
	return ledger.Filing{Counterparty: "acme", Platform: "smtp", Channel: "buyer@acme.example", Subject: "Offer", Text: text, Agent: "quoter"}
}

func (d *desk) clean(f ledger.Filing) ledger.Draft {
	d.t.Helper()
	draft, err := ledger.Clean(f, ledger.DefaultLimits())
	if err != nil {
		d.t.Fatal(err)
	}
	return draft
}

func (d *desk) file(f ledger.Filing) ledger.Filed {
	d.t.Helper()
	filed, err := d.File(d.t.Context(), d.clean(f), ledger.Gates{})
	if err != nil {
		d.t.Fatal(err)
	}
	return filed
}

func (d *desk) decide(filed ledger.Filed, verdict ledger.Verdict) ledger.Decided {
	d.t.Helper()
	out, err := d.Decide(d.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: verdict, Operator: d.anna, Reason: "because"})
	if err != nil {
		d.t.Fatal(err)
	}
	return out
}

// filing is what the desk files.
func (d *desk) filing(text string) ledger.Filing {
	f := filing(text)
	f.Agent, f.Counterparty, f.Channel = d.agent, d.party, d.channel
	return f
}

// approved files and approves a text.
func (d *desk) approved(text string) ledger.Decided {
	d.t.Helper()
	return d.decide(d.file(d.filing(text)), ledger.Approve)
}

func (d *desk) claim(v ledger.Decided) ledger.Claim {
	d.t.Helper()
	c, err := d.Claim(d.t.Context(), v.DecisionID, "w1")
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func (d *desk) begin(c ledger.Claim) ledger.Payload {
	d.t.Helper()
	p, err := d.BeginDispatch(d.t.Context(), c)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

// unknown brings a text as far as an unknown delivery.
func (d *desk) unknown(text string) ledger.Decided {
	d.t.Helper()
	v := d.approved(text)
	c := d.claim(v)
	d.begin(c)
	if err := d.MarkUnknown(d.t.Context(), c, ledger.Failure{Outcome: ledger.Ambiguous, Stage: "final-dot"}); err != nil {
		d.t.Fatal(err)
	}
	return v
}

func (d *desk) show(id int64) ledger.Shown {
	d.t.Helper()
	s, err := d.Show(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// plain is a pool of connections with nothing set: no foreign keys, no recursive triggers, as any other program would open it.
func (d *desk) plain() *sql.DB {
	d.t.Helper()
	if d.raw != nil {
		return d.raw
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: d.path}).EscapedPath()+"?mode=rw&_pragma=busy_timeout(5000)")
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { db.Close() })
	d.raw = db
	return db
}

func (d *desk) count(query string, args ...any) int {
	d.t.Helper()
	var n int
	if err := d.plain().QueryRow(query, args...).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// want fails the test when err is not of type T, and returns it as that.
func want[T error](t testing.TB, err error) T {
	t.Helper()
	var target T
	if !errors.As(err, &target) {
		t.Fatalf("got error %v, want a %T", err, target)
	}
	return target
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
