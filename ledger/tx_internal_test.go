package ledger

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"countersign/operator"

	"modernc.org/sqlite"
)

func openNew(t *testing.T, opts Options) *Ledger {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	if err := Create(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func someDraft(t *testing.T) Draft {
	t.Helper()
	draft, err := Clean(Filing{Counterparty: "acme", Platform: "smtp", Channel: "a@b.example", Text: "hello", Agent: "quoter"}, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return draft
}

// steps is every exported step that writes, called with whatever arguments.
func steps(t *testing.T, l *Ledger) map[string]func(ctx context.Context) error {
	second := func(_ any, err error) error { return err }
	var op operator.Operator
	draft := someDraft(t)
	return map[string]func(ctx context.Context) error{
		"File":             func(ctx context.Context) error { return second(l.File(ctx, draft, Gates{})) },
		"Repeated":         func(ctx context.Context) error { _, _, err := l.Repeated(ctx, draft); return err },
		"Decide":           func(ctx context.Context) error { return second(l.Decide(ctx, Decision{ObligationID: 1})) },
		"Revoke":           func(ctx context.Context) error { return second(l.Revoke(ctx, Revocation{ObligationID: 1})) },
		"Steer":            func(ctx context.Context) error { return second(l.Steer(ctx, op, 1, "n")) },
		"Withdraw":         func(ctx context.Context) error { return second(l.Withdraw(ctx, "quoter", 1, 1)) },
		"CloseByHand":      func(ctx context.Context) error { return second(l.CloseByHand(ctx, op, 1, "r")) },
		"CancelByOperator": func(ctx context.Context) error { return second(l.CancelByOperator(ctx, op, 1, "r")) },
		"Reconcile":        func(ctx context.Context) error { return second(l.Reconcile(ctx, op, 1, "c", "e")) },
		"Settle":           func(ctx context.Context) error { return second(l.Settle(ctx, op, 1, "e")) },
		"DeclareDead":      func(ctx context.Context) error { return l.DeclareDead(ctx, op, "w") },
		"Claim":            func(ctx context.Context) error { return second(l.Claim(ctx, 1, "w")) },
		"Adopt":            func(ctx context.Context) error { return second(l.Adopt(ctx, 1, "dead", "w")) },
		"BeginDispatch":    func(ctx context.Context) error { return second(l.BeginDispatch(ctx, Claim{DecisionID: 1})) },
		"Complete": func(ctx context.Context) error {
			return l.Complete(ctx, Claim{DecisionID: 1}, Receipt{Coordinate: "c"})
		},
		"MarkUnknown": func(ctx context.Context) error { return l.MarkUnknown(ctx, Claim{DecisionID: 1}, Failure{}) },
		"MarkDead":    func(ctx context.Context) error { return l.MarkDead(ctx, 1, "dead", "w") },
		"Cancel":      func(ctx context.Context) error { return l.Cancel(ctx, Claim{DecisionID: 1}, "r") },
		"ConfirmSpooled": func(ctx context.Context) error {
			return l.ConfirmSpooled(ctx, 1, "w", Receipt{Coordinate: "c"}, func(string) bool { return true })
		},
		"Acknowledge":   func(ctx context.Context) error { return l.Acknowledge(ctx, "quoter", []int64{1}) },
		"RecordRefusal": func(ctx context.Context) error { return l.RecordRefusal(ctx, "file", "quoter", 0, ErrNoOperator) },
		"Backoff": func(ctx context.Context) error {
			return l.Backoff(ctx, Destination{"smtp", "x"}, func(int) time.Duration { return 0 }, "c")
		},
		"RecordCard": func(ctx context.Context) error {
			return second(l.RecordCard(ctx, Card{ObligationID: 1, Kind: CardDraft, CardRef: CardRef{Channel: "C1", TS: "1.1"}}))
		},
		"RecordView":      func(ctx context.Context) error { return second(l.RecordView(ctx, View{CardID: 1})) },
		"RecordDigest":    func(ctx context.Context) error { return l.RecordDigest(ctx, "C1", "1.1", "x") },
		"NoticesTold":     func(ctx context.Context) error { return l.NoticesTold(ctx, 1, []int64{1}, "C1/1.1") },
		"Told":            func(ctx context.Context) error { return l.Told(ctx, 1, 1) },
		"Outdated":        func(ctx context.Context) error { return l.Outdated(ctx, 1) },
		"SteerOnce":       func(ctx context.Context) error { return second(l.SteerOnce(ctx, op, 1, "n", "nonce")) },
		"VoidApprovalsOf": func(ctx context.Context) error { return second(l.VoidApprovalsOf(ctx, "anna", "gone")) },
		"HookTaken":       func(ctx context.Context) error { return l.HookTaken(ctx, 1) },
		"HookFailed": func(ctx context.Context) error {
			return l.HookFailed(ctx, 1, func(int) time.Duration { return 0 }, "c")
		},
		"Reserve": func(ctx context.Context) error {
			_, _, err := l.Reserve(ctx, []Pace{{Scope: "x", Every: time.Second}}, time.Time{})
			return err
		},
	}
}

// reads are the exported methods that are no steps. Prepared writes only where there is something to forget.
var reads = []string{"Audit", "BackedOff", "CardAt", "Check", "Claims", "Close", "Destinations", "DigestIn", "FilingOf", "HookDue", "ID", "Inbox", "Next", "Outbox", "Path", "Prepared", "Show", "Status", "StillThere", "Subject", "Waiting"}

func TestTheTableOfStepsIsWhole(t *testing.T) {
	known := steps(t, nil)
	for method := range reflect.TypeFor[*Ledger]().Methods() {
		if name := method.Name; known[name] == nil && !slices.Contains(reads, name) {
			t.Errorf("%s is neither a step nor a read: add it to a table", name)
		}
	}
}

func rows(t *testing.T, l *Ledger) int {
	t.Helper()
	var n int
	err := l.read.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM obligations) + (SELECT count(*) FROM audit_log)
		+ (SELECT count(*) FROM prepare_backoff) + (SELECT count(*) FROM notices)`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNoStepRunsWithinAnothersTransaction(t *testing.T) {
	l := openNew(t, Options{})
	for name, step := range steps(t, l) {
		err := l.inTx(t.Context(), func(ctx context.Context, _ *txn) error { return step(ctx) })
		if !errors.Is(err, ErrNestedTransaction) {
			t.Errorf("%s within a transaction: %v", name, err)
		}
	}
	if n := rows(t, l); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

// Another ledger in the process is another ledger.
func TestATransactionOnAnotherLedgerIsNotNested(t *testing.T) {
	one, other := openNew(t, Options{}), openNew(t, Options{})
	err := one.inTx(t.Context(), func(ctx context.Context, _ *txn) error {
		_, err := other.File(ctx, someDraft(t), Gates{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestNoStepRunsWhileTheCallerHoldsItsOwnTransaction(t *testing.T) {
	l := openNew(t, Options{BusyTimeout: time.Millisecond})
	own, err := sql.Open("sqlite", "file:"+(&url.URL{Path: l.path}).EscapedPath()+"?mode=rw&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	tx, err := own.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	for name, step := range steps(t, l) {
		if err := step(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v, want ErrBusy", name, err)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, l); n != 0 {
		t.Errorf("%d rows were written", n)
	}
}

func TestAPanicWithinAStepLeavesTheLedgerFree(t *testing.T) {
	panics := true
	l := openNew(t, Options{Route: func() Notice {
		if panics {
			panic("a bug of the caller's")
		}
		return Notice{Routed: RoutedRetained, Reason: "none"}
	}})
	func() {
		defer func() { recover() }()
		l.File(t.Context(), someDraft(t), Gates{})
	}()
	panics = false
	filed, err := l.File(t.Context(), someDraft(t), Gates{})
	if err != nil || filed.Refiled {
		t.Fatalf("%+v, %v", filed, err)
	}
}

// A full disk is told by its code, changes nothing, and does not stay.
func TestAFullDiskChangesNothing(t *testing.T) {
	l := openNew(t, Options{})
	var pages int
	if err := l.write.QueryRowContext(t.Context(), `PRAGMA page_count`).Scan(&pages); err != nil {
		t.Fatal(err)
	}
	var limit int
	if err := l.write.QueryRowContext(t.Context(), `PRAGMA max_page_count = 1`).Scan(&limit); err != nil || limit != pages { // SQLite's floor: what there is
		t.Fatalf("limit %d of %d pages, %v", limit, pages, err)
	}
	big, err := Clean(Filing{Counterparty: "acme", Platform: "smtp", Channel: "a@b.example", Text: string(make40k()), Agent: "quoter"}, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.File(t.Context(), big, Gates{})
	var full *FullError
	var cause *sqlite.Error
	if !errors.As(err, &full) || !errors.As(err, &cause) {
		t.Fatalf("got %v", err)
	}
	if n := rows(t, l); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if err := l.write.QueryRowContext(t.Context(), `PRAGMA max_page_count = 1000000`).Scan(&limit); err != nil {
		t.Fatal(err)
	}
	if _, err := l.File(t.Context(), big, Gates{}); err != nil {
		t.Errorf("with room again: %v", err)
	}
}

func make40k() []byte {
	text := make([]byte, 40_000)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return text
}
