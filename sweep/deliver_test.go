package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/transports"
)

func TestDeliverSendsEachApprovalOnceInOrder(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.approve("a", "first")
	second := b.approve("a", "second")
	third := b.approve("a", "third")

	report := b.deliver(Options{})
	b.expectItems("delivered", report.Delivered, first, second, third)
	b.expectWire(first, second, third)
	if got := report.Delivered[0]; got.Coordinate != fmt.Sprintf("wire:%d", first.DecisionID) || got.Error != "" {
		t.Errorf("delivered: %+v", got)
	}
	for _, d := range []ledger.Decided{first, second, third} {
		b.expect(d, ledger.StatusSent, ledger.ClaimDelivered)
	}
	if b.fake.connects != 1 {
		t.Errorf("connected %d times, want once for the pass", b.fake.connects)
	}

	again := b.deliver(Options{})
	if len(again.Delivered)+len(again.Skipped)+len(again.Ambiguous) != 0 {
		t.Errorf("a second pass did something: %+v", again)
	}
	b.expectWire(first, second, third)
	if left := b.files(); len(left) != 0 {
		t.Errorf("files left behind: %v", left)
	}
}

func TestDeliverTakesUrgentDestinationsFirst(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	usual := b.approveAs(ledger.Filing{Platform: "fake", Channel: "a", Text: "usual", Priority: "P2"})
	urgent := b.approveAs(ledger.Filing{Platform: "fake", Channel: "b", Text: "urgent", Priority: "P0"})
	b.deliver(Options{Concurrency: 1})
	b.expectWire(urgent, usual)
}

// outcome is how one Send ends, and what has to be on record then.
type outcome struct {
	name     string
	before   error
	after    error
	altered  bool
	blank    bool
	kind     Kind
	status   ledger.Status
	claim    ledger.ClaimState
	recorded ledger.Outcome
	wire     bool
	stage    string
}

var outcomes = []outcome{
	{name: "confirmed", kind: Delivered, status: ledger.StatusSent, claim: ledger.ClaimDelivered, recorded: ledger.Confirmed, wire: true},
	{name: "confirmed, altered", altered: true, kind: Delivered, status: ledger.StatusSent, claim: ledger.ClaimDelivered, recorded: ledger.Confirmed, wire: true},
	{name: "refused", after: &transports.RefusedError{Stage: "final-dot", Code: "550", Err: errors.New("no")},
		kind: Refused, status: ledger.StatusApproved, claim: ledger.ClaimUnknown, recorded: ledger.Refused, wire: true, stage: "final-dot"},
	{name: "nothing handed over", before: &transports.RefusedError{Stage: "content", Err: errors.New("cut")},
		kind: Refused, status: ledger.StatusApproved, claim: ledger.ClaimUnknown, recorded: ledger.Refused, stage: "content"},
	{name: "ambiguous", after: &transports.AmbiguousError{Stage: "reply", Code: "502", Err: errors.New("reset")},
		kind: Ambiguous, status: ledger.StatusApproved, claim: ledger.ClaimUnknown, recorded: ledger.Ambiguous, wire: true, stage: "reply"},
	{name: "an error that nobody knows", after: errors.New("550 5.7.1 refused, says the text"),
		kind: Ambiguous, status: ledger.StatusApproved, claim: ledger.ClaimUnknown, recorded: ledger.Ambiguous, wire: true, stage: "send"},
	{name: "a refusal beside something ambiguous", after: errors.Join(&transports.RefusedError{Stage: "a"}, &transports.AmbiguousError{Stage: "b"}),
		kind: Ambiguous, status: ledger.StatusApproved, claim: ledger.ClaimUnknown, recorded: ledger.Ambiguous, wire: true, stage: "b"},
	{name: "a yes without a coordinate", blank: true,
		kind: Ambiguous, status: ledger.StatusApproved, claim: ledger.ClaimUnknown, recorded: ledger.Ambiguous, wire: true, stage: "receipt"},
}

func TestOutcomesUseUpTheApproval(t *testing.T) {
	t.Parallel()
	for _, o := range outcomes {
		t.Run(o.name, func(t *testing.T) { checkOutcome(t, o) })
	}
}

func checkOutcome(t *testing.T, o outcome) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "text")
	b.fake.before = func(context.Context, transports.Message) error { return o.before }
	b.fake.after = func(_ transports.Message, r *transports.Receipt) error {
		r.Altered = o.altered
		if o.blank {
			r.Coordinate = " "
		}
		return o.after
	}
	report := b.deliver(Options{})
	b.expectItems(string(o.kind), *report.list(o.kind), d)
	item := (*report.list(o.kind))[0]
	if (item.Error == "") != (o.kind == Delivered) || item.Altered != o.altered || item.DecisionID != d.DecisionID {
		t.Errorf("item: %+v", item)
	}
	shown := b.expect(d, o.status, o.claim)
	if shown.Claim.Outcome != o.recorded || (o.stage != "" && shown.Claim.Stage != o.stage) {
		t.Errorf("recorded %s at %s, want %s at %s", shown.Claim.Outcome, shown.Claim.Stage, o.recorded, o.stage)
	}
	want := []ledger.Decided{}
	if o.wire {
		want = append(want, d)
	}
	b.deliver(Options{}) // never a second attempt
	b.deliver(Options{})
	b.expectWire(want...)
}

func TestAnAmbiguousSessionIsClosedAndNeverReused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second := b.approve("a", "first"), b.approve("a", "second")
	b.fake.after = func(m transports.Message, _ *transports.Receipt) error {
		if m.Text == "first" {
			return &transports.AmbiguousError{Stage: "reply"}
		}
		return nil
	}
	report := b.deliver(Options{})
	b.expectItems("ambiguous", report.Ambiguous, first)
	b.expectItems("delivered", report.Delivered, second) // an unknown blocks its obligation, not its destination
	if b.fake.connects != 2 || b.fake.sessions[0].sends != 1 {
		t.Errorf("%d connects; the first session sent %d times", b.fake.connects, b.fake.sessions[0].sends)
	}
}

func TestUnpreparedUsesUpNoApproval(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Now()
	b.now = func() time.Time { return now }
	first, second := b.approve("a", "first"), b.approve("a", "second")
	other := b.approve("b", "other")
	refuse := true
	b.fake.prepare = func(_ int, m transports.Message) error {
		if refuse && m.Channel == "a" {
			return &transports.PrepareError{Stage: "rcpt", Code: "450", RetryAfter: 3 * time.Minute, Err: errors.New("greylisted")}
		}
		return nil
	}
	report := b.deliver(Options{Concurrency: 1, Jitter: func() float64 { return 0 }})
	b.expectItems("not prepared", report.NotPrepared, first) // the rest of that destination is left for later
	b.expectItems("delivered", report.Delivered, other)
	b.expect(first, ledger.StatusApproved, "")
	contains(t, report.NotPrepared[0].Error, "rcpt", "450", "greylisted")

	refuse = false
	now = now.Add(2 * time.Minute) // longer than the first back-off, shorter than the provider asked for
	if report := b.deliver(Options{}); len(report.Delivered) != 0 {
		t.Errorf("tried before its back-off ended: %+v", report)
	}
	now = now.Add(2 * time.Minute)
	b.expectItems("delivered", b.deliver(Options{}).Delivered, first, second)
	b.expectWire(other, first, second)
}

func TestBackoffGrowsWithFailuresAndEndsWithSuccess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Now()
	b.now = func() time.Time { return now }
	b.approve("a", "first")
	refuse := true
	b.fake.prepare = func(int, transports.Message) error {
		if refuse {
			return &transports.PrepareError{Stage: "rcpt", Code: "450"}
		}
		return nil
	}
	opts := Options{Jitter: func() float64 { return 0 }}
	for _, wait := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute} {
		if report := b.deliver(opts); len(report.NotPrepared) != 1 {
			t.Fatalf("before a wait of %s: %+v", wait, report)
		}
		now = now.Add(wait - time.Second)
		if report := b.deliver(opts); len(report.NotPrepared) != 0 {
			t.Fatalf("tried a second before %s were over: %+v", wait, report)
		}
		now = now.Add(2 * time.Second)
	}
	refuse = false
	b.deliver(opts)
	refuse = true
	b.approve("a", "second")
	b.deliver(opts)
	now = now.Add(time.Minute + time.Second) // the first step again
	if report := b.deliver(opts); len(report.NotPrepared) != 1 {
		t.Errorf("a success did not forget the failures: %+v", report)
	}
}

func TestAMissingTransportIsSkippedAndNamesItsSection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lost := b.approveAs(ledger.Filing{Platform: "slack", Channel: "C1", Text: "x"})
	good := b.approve("a", "y")
	report := b.deliver(Options{})
	b.expectItems("skipped", report.Skipped, lost)
	b.expectItems("delivered", report.Delivered, good)
	contains(t, report.Skipped[0].Error, "[transports.slack]")
	b.expect(lost, ledger.StatusApproved, "")
}

func TestATransportThatCannotBeOpenedIsNotPrepared(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	s := New(b.l, func(string) (transports.Transport, error) { return nil, errors.New("secret file:/x is missing") })
	report, err := s.Deliver(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.expectItems("not prepared", report.NotPrepared, d)
	b.expectItems("delivered", b.deliver(Options{}).Delivered, d) // repaired: no back-off keeps it
}

func TestARefusalOfTheLedgerIsSkippedAndTheNextOneGoesOut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	revoked, next := b.approve("a", "revoked"), b.approve("a", "next")
	for _, at := range []Step{AfterPrepare, AfterClaim} {
		t.Run(string(at), func(t *testing.T) {
			report := b.deliver(Options{Step: func(s Step, item Item) {
				if s != at || item.ObligationID != revoked.ObligationID {
					return
				}
				if _, err := b.l.Revoke(t.Context(), ledger.Revocation{ObligationID: revoked.ObligationID, Operator: b.op, Reason: "wrong price"}); err != nil {
					t.Error(err)
				}
			}})
			b.expectItems("skipped", report.Skipped, revoked)
			b.expectItems("delivered", report.Delivered, next)
			if s := b.show(revoked); s.Status != ledger.StatusDrafted {
				t.Errorf("a revoked approval leaves %s, want drafted", s.Status)
			}
			b.expectWire(next)
		})
		b = newBench(t)
		revoked, next = b.approve("a", "revoked"), b.approve("a", "next")
	}
}

func TestAClaimOfALivingWorkerIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	other, err := b.place.register()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.l.Claim(t.Context(), d.DecisionID, other.name); err != nil {
		t.Fatal(err)
	}
	report := b.deliver(Options{})
	b.expectItems("skipped", report.Skipped, d)
	contains(t, report.Skipped[0].Error, other.name)
	if err := other.close(); err != nil {
		t.Fatal(err)
	}
	recovered := b.recoverAll()
	b.expectItems("adoptable", recovered.Adoptable, d)
	b.expectItems("delivered", b.deliver(Options{}).Delivered, d)
	b.expectWire(d)
}

func TestAClaimOfAnotherProgramIsNeverAdopted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	if _, err := b.l.Claim(t.Context(), d.DecisionID, "somebody"); err != nil {
		t.Fatal(err)
	}
	report := b.deliver(Options{})
	b.expectItems("skipped", report.Skipped, d)
	b.expect(d, ledger.StatusApproved, ledger.ClaimClaimed)
	if r := b.recoverAll(); len(r.Adoptable) != 0 {
		t.Errorf("adoptable: %+v", r.Adoptable)
	}
}

func TestADestinationOfAnotherWorkerIsPassedBy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	mine, others := b.approve("a", "x"), b.approve("b", "y")
	other, err := b.place.register()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := other.enter(ledger.Destination{Platform: "fake", Channel: "b"})
	if err != nil {
		t.Fatal(err)
	}
	report := b.deliver(Options{})
	b.expectItems("delivered", report.Delivered, mine)
	b.expectItems("skipped", report.Skipped, others)
	contains(t, report.Skipped[0].Error, "another worker ("+other.name+") is on this destination")
	b.expect(others, ledger.StatusApproved, "")
	if err := errors.Join(lock.remove(), other.close()); err != nil {
		t.Fatal(err)
	}
	b.expectItems("delivered", b.deliver(Options{}).Delivered, others)
}

func TestABeginThatGrewOldIsNotSent(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]func(time.Time) time.Time{
		"both clocks went on": func(t time.Time) time.Time { return t.Add(time.Minute) },
		"the machine slept":   func(t time.Time) time.Time { return t.Round(0).Add(time.Minute) }, // the wall clock alone
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			d := b.approve("a", "x")
			now := time.Now
			report := b.deliver(Options{Timeout: time.Minute, Now: func() time.Time { return now() }, Step: func(s Step, _ Item) {
				if s == AfterBegin {
					now = func() time.Time { return jump(time.Now()) }
				}
			}})
			b.expectItems("refused", report.Refused, d)
			b.expectWire()
			if s := b.expect(d, ledger.StatusApproved, ledger.ClaimUnknown); s.Claim.Stage != "stale-begin" || s.Claim.Outcome != ledger.Refused {
				t.Errorf("recorded: %+v", s.Claim)
			}
		})
	}
}

func TestAgeIsWhatEitherClockSays(t *testing.T) {
	t.Parallel()
	from := time.Now()
	if got := olderOf(from, from.Add(time.Second)); got != time.Second {
		t.Errorf("both: %s", got)
	}
	if got := olderOf(from, from.Round(0).Add(time.Hour)); got != time.Hour {
		t.Errorf("the wall clock alone: %s", got)
	}
	if got := olderOf(from, from.Round(0).Add(-time.Hour)); got > 0 {
		t.Errorf("a clock that was set back: %s", got)
	}
}

func TestAPayloadThatIsNotThePreparedMessageIsNotSent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, err := b.place.register()
	if err != nil {
		t.Fatal(err)
	}
	lock, err := w.enter(ledger.Destination{Platform: "fake", Channel: "a"})
	if err != nil {
		t.Fatal(err)
	}
	p := &pass{Sweeper: b.Sweeper, worker: w, opts: Options{}.withDefaults()}
	prepared := transports.Message{ObligationID: 1, Platform: "fake", Channel: "a", Text: "text"}
	m := &parcel{lane: &lane{pass: p, destination: lock}, message: prepared, begunAt: time.Now()}
	same := prepared
	same.DecisionID, same.Key = 7, "ab"
	if err := m.mustNotSend(same); err != nil {
		t.Errorf("the same message: %v", err)
	}
	same.Text = "text " // everything but decision and key counts
	var refused *transports.RefusedError
	if err := m.mustNotSend(same); !errors.As(err, &refused) || refused.Stage != "compare" {
		t.Errorf("another text: %v", err)
	}
	if err := errors.Join(lock.remove(), w.close()); err != nil {
		t.Fatal(err)
	}
}

func TestCancelBetweenStepsNeverBegins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at    Step
		claim ledger.ClaimState
		sent  bool
	}{
		{AfterPrepare, "", false}, {AfterSlot, "", false}, {AfterClaim, ledger.ClaimClaimed, false},
		{AfterBegin, ledger.ClaimDelivered, true}, {AfterSend, ledger.ClaimDelivered, true},
	} {
		t.Run(string(c.at), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			first, second := b.approve("a", "first"), b.approve("a", "second")
			ctx, cancel := context.WithCancel(t.Context())
			report, err := b.Deliver(ctx, Options{Step: func(s Step, _ Item) {
				if s == c.at {
					cancel()
				}
			}})
			if err != nil || !report.Interrupted {
				t.Errorf("err %v, interrupted %v", err, report.Interrupted)
			}
			status := ledger.StatusApproved
			if c.sent {
				status = ledger.StatusSent
				b.expectWire(first)
			} else {
				b.expectWire()
			}
			b.expect(first, status, c.claim)
			b.expect(second, ledger.StatusApproved, "")
			b.deliver(Options{})
			b.expectWire(first, second)
		})
	}
}

func TestACancelledPassDoesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d := b.approve("a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report, err := b.Deliver(ctx, Options{})
	if err != nil || !report.Interrupted {
		t.Errorf("err %v, %+v", err, report)
	}
	b.expect(d, ledger.StatusApproved, "")
	report, err = b.Deliver(t.Context(), Options{MaxRuntime: 1}) // over before it began
	if err != nil || !report.Interrupted {
		t.Errorf("err %v, %+v", err, report)
	}
	b.expectWire()
}

func TestTheSendKeepsItsDeadlineButNotTheCancel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.approve("a", "x")
	ctx, cancel := context.WithCancel(t.Context())
	b.fake.hook = func(sending context.Context, _ transports.Message) {
		cancel()
		if err := sending.Err(); err != nil {
			t.Errorf("the send was cancelled with its pass: %v", err)
		}
		deadline, ok := sending.Deadline()
		if left := time.Until(deadline); !ok || left > time.Hour || left < time.Minute {
			t.Errorf("deadline in %s, %v", left, ok)
		}
	}
	if _, err := b.Deliver(ctx, Options{Timeout: time.Hour}); err != nil {
		t.Error(err)
	}
}

func TestLimitHoldAndPlatform(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	now := time.Now()
	b.now = func() time.Time { return now }
	first, second := b.approve("a", "1"), b.approve("b", "2")
	third := b.approveAs(ledger.Filing{Platform: "slack", Channel: "C1", Text: "3"})
	if r := b.deliver(Options{Hold: time.Minute}); len(r.Delivered)+len(r.Skipped) != 0 {
		t.Errorf("held: %+v", r)
	}
	if r := b.deliver(Options{Platform: "slack"}); len(r.Delivered) != 0 || len(r.Skipped) != 1 {
		t.Errorf("platform slack: %+v", r)
	}
	now = now.Add(2 * time.Minute)
	b.expectItems("limit 1", b.deliver(Options{Hold: time.Minute, Limit: 1, Concurrency: 1}).Delivered, first)
	b.expectItems("limit 5", b.deliver(Options{Hold: time.Minute, Limit: 5}).Delivered, second)
	b.expect(third, ledger.StatusApproved, "")
}

func TestTheLimitHoldsWithManyDestinationsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 8 {
		b.approve(fmt.Sprint(i), "x")
	}
	if r := b.deliver(Options{Limit: 3}); len(r.Delivered) != 3 {
		t.Errorf("delivered %d of at most 3", len(r.Delivered))
	}
	if got := b.onWire(); len(got) != 3 {
		t.Errorf("sent %d of at most 3", len(got))
	}
}

func TestWhatIsNotBegunDoesNotCountAgainstTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	revoked, next, later := b.approve("a", "revoked"), b.approve("a", "next"), b.approve("a", "later")
	report := b.deliver(Options{Limit: 1, Step: func(s Step, item Item) {
		if s == AfterPrepare && item.ObligationID == revoked.ObligationID {
			_, err := b.l.Revoke(t.Context(), ledger.Revocation{ObligationID: revoked.ObligationID, Operator: b.op, Reason: "wrong price"})
			if err != nil {
				t.Error(err)
			}
		}
	}})
	b.expectItems("skipped", report.Skipped, revoked)
	b.expectItems("delivered", report.Delivered, next)
	b.expect(later, ledger.StatusApproved, "")
}

func TestDryRunListsAndTouchesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first, second, third := b.approve("a", "1"), b.approve("a", "2"), b.approve("b", "3")
	before := slices.Concat(read(t, b.path), read(t, b.path+"-wal"))
	report := b.deliver(Options{DryRun: true})
	b.expectItems("planned", report.Planned, first, second, third)
	b.expectItems("planned", b.deliver(Options{DryRun: true, Limit: 2}).Planned, first, second)
	if !slices.Equal(before, slices.Concat(read(t, b.path), read(t, b.path+"-wal"))) {
		t.Error("the ledger was written")
	}
	if _, err := os.Lstat(b.path + ".d"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the workers' directory was made: %v", err)
	}
	if b.fake.connects != 0 {
		t.Error("it connected")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return raw
}

func TestReportKeysAreThere(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	raw, err := json.Marshal(b.deliver(Options{}))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"delivered":[],"refused":[],"ambiguous":[],"not_prepared":[],"skipped":[]}`; string(raw) != want {
		t.Errorf("empty report: %s", raw)
	}
	raw, err = json.Marshal(Item{ObligationID: 1, DecisionID: 2, Platform: "fake", Channel: "a", Coordinate: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"obligation_id":1,"decision_id":2,"platform":"fake","channel":"a","coordinate":"c"}`; string(raw) != want {
		t.Errorf("item: %s", raw)
	}
	raw, err = json.Marshal(b.recoverAll())
	if err != nil || strings.Contains(string(raw), "null") {
		t.Errorf("recovered: %s, %v", raw, err)
	}
}

func TestProgressTellsEveryItem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i := range 6 {
		b.approve(fmt.Sprint(i), "x")
	}
	seen := map[Kind]int{}
	b.deliver(Options{Progress: func(k Kind, _ Item) { seen[k]++ }}) // unguarded: the calls don't overlap
	if seen[Delivered] != 6 || len(seen) != 1 {
		t.Errorf("progress: %v", seen)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		failures   int
		retryAfter time.Duration
		jitter     float64
		want       time.Duration
	}{
		{0, 0, 0, time.Minute}, {1, 0, 0, time.Minute}, {2, 0, 0, 2 * time.Minute}, {6, 0, 0, 32 * time.Minute},
		{7, 0, 0, time.Hour}, {1 << 40, 0, 0, time.Hour}, {1, 0, 0.5, 66 * time.Second}, {7, 0, 1, 72 * time.Minute},
		{1, 10_072 * time.Second, 0, 10_072 * time.Second}, {7, time.Second, 0, time.Hour},
		{1, 1 << 62, 0, 24 * time.Hour}, {1, -time.Hour, 0, time.Minute},
	} {
		if got := backoff(c.failures, c.retryAfter, c.jitter); got != c.want {
			t.Errorf("backoff(%d, %s, %v) = %s, want %s", c.failures, c.retryAfter, c.jitter, got, c.want)
		}
	}
}
