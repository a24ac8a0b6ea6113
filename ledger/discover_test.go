package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"countersign/ledger"
)

// What a pass finds to do, in which order.

// to approves a text for a channel and returns the decision.
func (d *desk) to(platform, channel string, priority ledger.Priority, text string) ledger.Decided {
	d.t.Helper()
	f := filing(text)
	f.Platform, f.Channel, f.Priority, f.Counterparty = platform, channel, priority, "customer of "+text
	return d.decide(d.file(f), ledger.Approve)
}

// queue is what Next offers at a destination, one after the other.
func (d *desk) queue(at ledger.Destination, f ledger.DeliverFilter) []int64 {
	d.t.Helper()
	var out []int64
	for after := int64(0); ; {
		ready, err := d.Next(d.t.Context(), at, f, after)
		must(d.t, err)
		if ready == nil {
			return out
		}
		if ready.DecisionID <= after {
			d.t.Fatalf("decision %d is offered after %d", ready.DecisionID, after)
		}
		after = ready.DecisionID
		out = append(out, after)
	}
}

func TestADestinationIsWorkedInTheOrderOfDecisions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := ledger.Destination{Platform: "smtp", Channel: "a@x"}
	var filed []ledger.Filed
	for i := range 5 {
		f := filing("text")
		f.Channel, f.Counterparty, f.Priority = at.Channel, fmt.Sprintf("c%d", i), ledger.Priority(fmt.Sprintf("P%d", i%4))
		filed = append(filed, d.file(f))
	}
	var want []int64
	for _, i := range []int{3, 0, 4, 1, 2} { // neither the order of filings nor of priorities
		want = append(want, d.decide(filed[i], ledger.Approve).DecisionID)
	}
	if got := d.queue(at, ledger.DeliverFilter{}); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	ready, err := d.Next(t.Context(), at, ledger.DeliverFilter{}, 0)
	must(t, err)
	if ready.ObligationID != filed[3].ObligationID || ready.Text != "text" || ready.Subject != "Offer" || ready.Thread != "" || ready.Platform != "smtp" || ready.Channel != "a@x" || ready.Holder != "" {
		t.Errorf("%+v", ready)
	}
}

func TestPriorityOrdersDestinations(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.to("smtp", "calm@x", "P3", "one")
	d.to("smtp", "first@x", "P1", "two")
	d.to("smtp", "second@x", "P1", "three")
	d.to("local", "urgent", "P0", "four")
	d.to("smtp", "calm@x", "P2", "five")
	got, err := d.Destinations(t.Context(), ledger.DeliverFilter{})
	must(t, err)
	want := []ledger.Destination{{Platform: "local", Channel: "urgent"}, {Platform: "smtp", Channel: "first@x"}, {Platform: "smtp", Channel: "second@x"}, {Platform: "smtp", Channel: "calm@x"}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got, err = d.Destinations(t.Context(), ledger.DeliverFilter{Platform: "smtp"})
	must(t, err)
	if !slices.Equal(got, want[1:]) {
		t.Errorf("smtp alone: %v", got)
	}
}

func TestOnlyWhatMayBeSentIsOffered(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := ledger.Destination{Platform: "smtp", Channel: "buyer@acme.example"}
	d.file(filing("drafted"))
	if got := d.queue(at, ledger.DeliverFilter{}); len(got) != 0 {
		t.Errorf("a draft is offered: %v", got)
	}
	v := d.approved("one")
	if got := d.queue(at, ledger.DeliverFilter{}); !slices.Equal(got, []int64{v.DecisionID}) {
		t.Errorf("an approval: %v", got)
	}
	c := d.claim(v)
	ready, err := d.Next(t.Context(), at, ledger.DeliverFilter{}, 0)
	must(t, err)
	if ready == nil || ready.Holder != "w1" { // it may be adopted, if that worker is dead
		t.Errorf("a claim: %+v", ready)
	}
	d.begin(c)
	if got := d.queue(at, ledger.DeliverFilter{}); len(got) != 0 {
		t.Errorf("a dispatch is offered: %v", got)
	}
	must(t, d.MarkUnknown(t.Context(), c, ledger.Failure{Outcome: ledger.Ambiguous}))
	if where, err := d.Destinations(t.Context(), ledger.DeliverFilter{}); err != nil || len(where) != 0 {
		t.Errorf("an unknown is offered: %v, %v", where, err)
	}
	other := d.to("smtp", at.Channel, "P2", "two") // an unknown blocks its obligation, not its destination
	if got := d.queue(at, ledger.DeliverFilter{}); !slices.Equal(got, []int64{other.DecisionID}) {
		t.Errorf("beside an unknown: %v", got)
	}
}

func TestABackOffIsKeptInTheLedgerAndForgottenAfterASuccess(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.approved("one")
	at := ledger.Destination{Platform: "smtp", Channel: "buyer@acme.example"}
	waits := func(failures int) time.Duration { return time.Duration(failures) * time.Minute }
	offered := func(l *ledger.Ledger) bool {
		t.Helper()
		where, err := l.Destinations(t.Context(), ledger.DeliverFilter{})
		must(t, err)
		return len(where) == 1
	}
	for failures := 1; failures <= 3; failures++ {
		must(t, d.Backoff(t.Context(), at, waits, "450 try later"))
		if offered(d.Ledger) || offered(d.open()) {
			t.Errorf("after failure %d it is offered at once", failures)
		}
		d.tick(time.Duration(failures)*time.Minute - time.Second)
		if offered(d.Ledger) {
			t.Errorf("after failure %d it is offered too soon", failures)
		}
		d.tick(time.Second)
		if !offered(d.Ledger) {
			t.Errorf("after failure %d it is never offered", failures)
		}
	}
	must(t, d.Prepared(t.Context(), at))
	must(t, d.Prepared(t.Context(), at))
	if !offered(d.Ledger) || d.count(`SELECT count(*) FROM prepare_backoff`) != 0 {
		t.Error("a success is not forgotten")
	}
	must(t, d.Backoff(t.Context(), at, waits, "450 try later"))
	if n := d.count(`SELECT failures FROM prepare_backoff`); n != 1 {
		t.Errorf("it counts from %d", n)
	}
	d.to("smtp", "other@x", "P2", "two") // another destination is not held up
	if where, err := d.Destinations(t.Context(), ledger.DeliverFilter{}); err != nil || !slices.Equal(where, []ledger.Destination{{Platform: "smtp", Channel: "other@x"}}) {
		t.Errorf("%v, %v", where, err)
	}
}

func TestABackOffOfAWildClockIsNotBelieved(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.approved("one")
	at := ledger.Destination{Platform: "smtp", Channel: d.channel}
	minute := func(int) time.Duration { return time.Minute }
	ahead := 1000 * 24 * time.Hour
	must(t, d.worker(&ahead).Backoff(t.Context(), at, minute, "450 try later"))
	if where := mustList(d.Destinations(t.Context(), ledger.DeliverFilter{}))(t); len(where) != 1 {
		t.Error("a clock that ran wild once silences the destination for years")
	}
	if left := mustList(d.BackedOff(t.Context(), ledger.DeliverFilter{}))(t); len(left) != 0 {
		t.Errorf("it is told as backed off: %v", left)
	}
	must(t, d.Backoff(t.Context(), at, minute, "421 busy"))
	left := mustList(d.BackedOff(t.Context(), ledger.DeliverFilter{}))(t)
	if len(left) != 1 || left[0].Destination != at || left[0].Cause != "421 busy" || !left[0].Until.Equal(d.now.Add(time.Minute)) {
		t.Errorf("%+v", left)
	}
	if where := mustList(d.Destinations(t.Context(), ledger.DeliverFilter{}))(t); len(where) != 0 {
		t.Errorf("offered although it is backed off: %v", where)
	}
}

// Next looks near the last decision first; what waits farther away must not be lost by that.
func TestTheNextMessageIsFoundHoweverFarAway(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	at := ledger.Destination{Platform: "smtp", Channel: "a@x"}
	want := []int64{d.to("smtp", at.Channel, "P2", "one").DecisionID, d.to("smtp", at.Channel, "P2", "two").DecisionID}
	var far int64 = 5000 // more decisions than it reads one by one
	d.tamper(fmt.Sprintf(`INSERT INTO obligation_decisions SELECT %d, obligation_id, 'reject', operator, decided_ts, 'far', 0 FROM obligation_decisions WHERE id = 1`, far))
	for _, text := range []string{"three", "four"} {
		want = append(want, d.to("smtp", at.Channel, "P2", text).DecisionID)
	}
	if got := d.queue(at, ledger.DeliverFilter{}); !slices.Equal(got, want) || want[2] < far {
		t.Errorf("%v, want %v", got, want)
	}
}
