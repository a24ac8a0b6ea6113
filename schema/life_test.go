package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// life is a ledger that has lived: it holds every state of an obligation and of a claim, and a row in every table.
type life struct {
	path string
	ids  map[string]int64 // "sent" and "sent.decision" for {sent} and {sent.decision} in a statement
}

// lived returns a fresh copy of the ledger, closed. It is built once.
func lived(t testing.TB) life {
	t.Helper()
	built, err := build()
	if err != nil {
		t.Fatal(err)
	}
	l := life{filepath.Join(t.TempDir(), "ledger.db"), built.ids}
	if err := os.WriteFile(l.path, built.file, 0o600); err != nil {
		t.Fatal(err)
	}
	return l
}

type template struct {
	file []byte
	ids  map[string]int64
}

var build = sync.OnceValues(func() (template, error) {
	dir, err := os.MkdirTemp("", "countersign-life-*")
	if err != nil {
		return template{}, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "ledger.db")
	b := &builder{ctx: context.Background(), ids: map[string]int64{}}
	if err := b.live(path); err != nil {
		return template{}, err
	}
	file, err := os.ReadFile(path)
	return template{file, b.ids}, err
})

// builder keeps the first error, so that the story below can be read.
type builder struct {
	*ledger.Ledger
	ctx context.Context
	op  operator.Operator
	ids map[string]int64
	err error
}

func (b *builder) live(path string) error {
	b.op, b.err = knownOperator()
	b.try(ledger.Create(b.ctx, path))
	if b.err != nil {
		return b.err
	}
	b.Ledger, b.err = ledger.Open(b.ctx, path, ledger.Options{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }, Hook: true,
		Route: func() ledger.Notice { return ledger.Notice{Routed: ledger.RoutedInternal, Reason: "queued"} }})
	if b.err != nil {
		return b.err
	}
	b.file("drafted")
	b.approve("approved")
	b.claim("claimed")
	b.begin("dispatching")
	b.unknown("unknown")
	b.unknown("settled")
	_, err := b.Settle(b.ctx, b.op, b.ids["settled"], "they never got it")
	b.try(err)
	c := b.begin("sent")
	b.try(b.Complete(b.ctx, c, ledger.Receipt{Coordinate: "<1@example.com>", Detail: "250 ok"}))
	b.ids["rejected.decision"] = b.decide(b.file("rejected"), ledger.Reject).DecisionID
	b.file("closed")
	b.close("closed")
	b.approve("closedApproved")
	b.close("closedApproved")
	b.approve("revoked")
	_, err = b.Revoke(b.ctx, ledger.Revocation{ObligationID: b.ids["revoked"], Operator: b.op, Reason: "a typo", Nonce: "revocation"})
	b.try(err)
	b.overtaken()
	b.shown()
	b.try(b.Backoff(b.ctx, ledger.Destination{Platform: "smtp", Channel: "nowhere@example.com"}, func(int) time.Duration { return time.Minute }, "no route"))
	inbox, err := b.Inbox(b.ctx, "quoter")
	b.try(err)
	b.try(b.Acknowledge(b.ctx, "quoter", []int64{inbox[0].ID}))
	b.try(b.Close())
	return b.err
}

// shown makes cards: of a draft that waits, of one that was approved on its card, and of an unknown delivery.
func (b *builder) shown() {
	b.card("drafted", ledger.CardDraft, "1.1")
	b.card("unknown", ledger.CardUnknown, "1.2")
	filed := b.file("seen")
	b.card("seen", ledger.CardDraft, "1.3")
	v, err := b.Decide(b.ctx, ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Approve, Operator: b.op,
		Nonce: fmt.Sprintf("nonce of %d", filed.ObligationID), Card: &ledger.CardRef{Channel: "C1", TS: "1.3"}})
	b.try(err)
	b.ids["seen.decision"] = v.DecisionID
	s, err := b.Subject(b.ctx, b.ids["rejected"], "C1")
	b.try(err)
	for _, n := range s.Notices {
		b.try(b.NoticesTold(b.ctx, b.ids["rejected"], []int64{n.ID}, "C1/1.4"))
	}
	b.try(b.RecordDigest(b.ctx, "C1", "1.5", "content"))
}

func (b *builder) card(name, kind, ts string) {
	s, err := b.Subject(b.ctx, b.ids[name], "C1")
	b.try(err)
	c, err := b.RecordCard(b.ctx, ledger.Card{ObligationID: b.ids[name], DecisionID: b.ids[name+".decision"], Kind: kind, Team: "T1",
		CardRef: ledger.CardRef{Channel: "C1", TS: ts}})
	b.try(err)
	b.ids[name+".card"] = c.ID
	v, err := b.RecordView(b.ctx, ledger.View{CardID: c.ID, Epoch: s.Epoch, EnvelopeSHA256: s.EnvelopeSHA256, ContentSHA256: "content",
		Parts: []ledger.Part{{TS: ts, Text: s.DraftText}}})
	b.try(err)
	b.ids[name+".view"] = v.ID
}

// overtaken makes approvals whose pair has a newer draft: one unclaimed, one claimed.
func (b *builder) overtaken() {
	b.approve("overtaken")
	b.fileAs("newer", "overtaken")
	b.approve("overtakenClaimed")
	b.fileAs("newerBesideClaim", "overtakenClaimed")
	_, err := b.Claim(b.ctx, b.ids["overtakenClaimed.decision"], "w1")
	b.try(err)
}

func (b *builder) try(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *builder) file(name string) ledger.Filed { return b.fileAs(name, name) }

func (b *builder) fileAs(name, counterparty string) ledger.Filed {
	draft, err := ledger.Clean(ledger.Filing{Counterparty: counterparty, Platform: "smtp", Channel: counterparty + "@example.com", Thread: "<t@example.com>",
		Subject: "About " + name, Text: "Text of " + name, User: "u1", Agent: "quoter", IdempotencyKey: "key of " + name, AutoSendAfter: 1_900_000_000,
		Context: "why"}, ledger.DefaultLimits())
	b.try(err)
	filed, err := b.File(b.ctx, draft, ledger.Gates{})
	b.try(err)
	b.ids[name], b.ids[name+".epoch"] = filed.ObligationID, filed.Epoch
	return filed
}

func (b *builder) decide(filed ledger.Filed, verdict ledger.Verdict) ledger.Decided {
	v, err := b.Decide(b.ctx, ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: verdict, Operator: b.op, Reason: "because",
		Nonce: fmt.Sprintf("nonce of %d", filed.ObligationID)})
	b.try(err)
	return v
}

func (b *builder) approve(name string) {
	b.ids[name+".decision"] = b.decide(b.file(name), ledger.Approve).DecisionID
}

func (b *builder) claim(name string) ledger.Claim {
	b.approve(name)
	c, err := b.Claim(b.ctx, b.ids[name+".decision"], "w1")
	b.try(err)
	return c
}

func (b *builder) begin(name string) ledger.Claim {
	c := b.claim(name)
	_, err := b.BeginDispatch(b.ctx, c)
	b.try(err)
	return c
}

func (b *builder) unknown(name string) {
	c := b.begin(name)
	b.try(b.MarkUnknown(b.ctx, c, ledger.Failure{Outcome: ledger.Ambiguous, Stage: "final dot", Code: "timeout", Detail: "no answer"}))
}

func (b *builder) close(name string) {
	_, err := b.CloseByHand(b.ctx, b.op, b.ids[name], "by telephone")
	b.try(err)
}

func knownOperator() (operator.Operator, error) {
	token, hash, err := operator.NewToken()
	if err != nil {
		return operator.Operator{}, err
	}
	directory, err := operator.NewDirectory([]operator.Entry{{ID: "anna", TokenSHA256: hash}})
	if err != nil {
		return operator.Operator{}, err
	}
	return directory.ByToken(token)
}

// fill puts the ids into a statement.
func (l life) fill(statement string) string {
	for name, id := range l.ids {
		statement = strings.ReplaceAll(statement, "{"+name+"}", fmt.Sprint(id))
	}
	return statement
}

// plain is one connection as any other program would open it: no foreign keys, no recursive triggers.
func (l life) plain(t testing.TB, statements ...string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: l.path}).EscapedPath()+"?mode=rw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	for _, statement := range statements {
		if _, err := conn.ExecContext(t.Context(), l.fill(statement)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	return conn
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
