package ledger_test

import (
	"testing"
	"time"

	"countersign/ledger"
)

// Clocks that disagree, run back, or change with the season.

// worker opens the same ledger with a clock that is off by so much.
func (d *desk) worker(off *time.Duration) *ledger.Ledger {
	d.t.Helper()
	own := d.opts
	own.Now = func() time.Time { return d.now.Add(*off) }
	l, err := ledger.Open(d.t.Context(), d.path, own)
	must(d.t, err)
	d.t.Cleanup(func() { l.Close() })
	return l
}

// A slow or fast clock never makes a step fail, and no stored time runs back.
func TestWorkersWithOtherClocksDeliver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var off time.Duration
	worker := d.worker(&off)
	for name, offs := range map[string][3]time.Duration{
		"ten minutes ahead":   {10 * time.Minute, 10 * time.Minute, 10 * time.Minute},
		"ten minutes behind":  {-10 * time.Minute, -10 * time.Minute, -10 * time.Minute},
		"running back":        {time.Hour, 0, -time.Hour},
		"jumping":             {-24 * time.Hour, 24 * time.Hour, -48 * time.Hour},
		"before anything was": {-50 * 365 * 24 * time.Hour, 0, 0},
	} {
		d.party = name
		v := d.approved("one")
		off = offs[0]
		ready, err := worker.Next(t.Context(), ledger.Destination{Platform: "smtp", Channel: d.channel}, ledger.DeliverFilter{}, 0)
		must(t, err)
		if ready == nil || ready.DecisionID != v.DecisionID {
			t.Fatalf("%s: it is offered %+v", name, ready)
		}
		c, err := worker.Claim(t.Context(), v.DecisionID, "w1")
		must(t, err)
		off = offs[1]
		must(t, second(worker.BeginDispatch(t.Context(), c)))
		off = offs[2]
		must(t, worker.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
		if n := d.count(`SELECT count(*) FROM obligation_delivery_claims c JOIN obligations o ON o.id = c.obligation_id
			WHERE c.updated_ts >= c.created_ts AND o.last_touch_ts >= o.opened_ts AND o.updated_at = $1 AND o.id = $2`, v.Epoch, v.ObligationID); n != 1 {
			t.Errorf("%s: a stored time ran back", name)
		}
	}
}

// Whatever a foreign clock says, a claim that began its dispatch stays where it is.
func TestNoClockTakesAClaimThatBegan(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	v := d.approved("one")
	d.begin(d.claim(v))
	var off time.Duration
	l := d.worker(&off)
	for _, off = range []time.Duration{1000 * time.Hour, -1000 * time.Hour} {
		_, err := l.Claim(t.Context(), v.DecisionID, "w2")
		want[*ledger.HeldError](t, err)
		_, err = l.Adopt(t.Context(), v.DecisionID, "w1", "w2")
		want[*ledger.LostClaimError](t, err)
		if at, err := l.Destinations(t.Context(), ledger.DeliverFilter{}); err != nil || len(at) != 0 {
			t.Errorf("offered: %v, %v", at, err)
		}
	}
}

// A step back revives nothing that was taken out.
func TestAStepBackRevivesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	v := d.approved("one")
	d.tick(3 * time.Hour)
	_, err := d.Claim(t.Context(), v.DecisionID, "w1")
	want[*ledger.ExpiredError](t, err)
	d.tick(-3 * time.Hour)
	_, err = d.Claim(t.Context(), v.DecisionID, "w1")
	want[*ledger.VoidedError](t, err)
	if s := d.show(v.ObligationID); s.Status != ledger.StatusDrafted || s.Epoch <= v.Epoch {
		t.Errorf("%s at epoch %d", s.Status, s.Epoch)
	}
	_, err = d.Decide(t.Context(), ledger.Decision{ObligationID: v.ObligationID, Epoch: v.Epoch, Verdict: ledger.Approve, Operator: d.anna})
	want[*ledger.StaleEpochError](t, err) // the old card, with the clock where it was then
}

// Epochs advance at every filing and every taking back, wherever the clock goes.
func TestEpochsStrictlyAdvance(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	last := int64(0)
	advanced := func(epoch int64) {
		t.Helper()
		if epoch <= last {
			t.Errorf("epoch %d after %d", epoch, last)
		}
		last = epoch
	}
	for _, step := range []time.Duration{0, 0, time.Second, -time.Hour, -time.Hour, 0, 2 * time.Hour} {
		d.tick(step)
		filed := d.file(filing("one"))
		advanced(filed.Epoch)
		v := d.decide(filed, ledger.Approve)
		d.tick(-time.Minute)
		out, err := d.Revoke(t.Context(), ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "no"})
		must(t, err)
		advanced(out.Epoch)
	}
	if n := d.count(`SELECT count(*) FROM obligations`); n != 1 {
		t.Errorf("%d obligations", n)
	}
}

// Both changes of daylight saving time: times are kept in UTC, so an hour that comes twice is two hours.
func TestDaylightSavingTimeChangesNothing(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip(err)
	}
	for name, start := range map[string]time.Time{
		"spring": time.Date(2026, 3, 29, 1, 59, 0, 0, zone),  // 02:00 is 03:00
		"autumn": time.Date(2026, 10, 25, 2, 59, 0, 0, zone), // 03:00 is 02:00
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, func(o *ledger.Options) {
				o.Terms = func(string) ledger.Terms { return ledger.Terms{MaxAge: 30 * time.Minute} }
			})
			d.now = start
			first := d.file(filing("one"))
			if first.Epoch != start.Unix() {
				t.Errorf("epoch %d, want %d", first.Epoch, start.Unix())
			}
			v := d.decide(first, ledger.Approve)
			d.tick(2 * time.Minute) // across the change
			c := d.claim(v)
			d.begin(c)
			must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
			if s := d.show(v.ObligationID); s.Delivery.DeliveredTS != start.Unix()+120 {
				t.Errorf("delivered at %d, want %d", s.Delivery.DeliveredTS, start.Unix()+120)
			}
		})
	}
}

// A hold counts from the decision by the worker's own clock; without one, a decision that a faster clock stamped counts at once.
func TestTheHoldCountsFromTheDecision(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.approved("one")
	at := ledger.Destination{Platform: "smtp", Channel: "buyer@acme.example"}
	var off time.Duration
	l := d.worker(&off)
	for _, test := range []struct {
		hold, later time.Duration
		offered     bool
	}{{0, 0, true}, {0, -time.Hour, true}, {time.Minute, 0, false}, {time.Minute, 59 * time.Second, false}, {time.Minute, time.Minute, true}, {time.Minute, -time.Hour, false}} {
		off = test.later
		f := ledger.DeliverFilter{Hold: test.hold}
		ready, err := l.Next(t.Context(), at, f, 0)
		must(t, err)
		where, err := l.Destinations(t.Context(), f)
		must(t, err)
		if (ready != nil) != test.offered || (len(where) == 1) != test.offered {
			t.Errorf("hold %s, %s later: %+v, %v", test.hold, test.later, ready, where)
		}
	}
}
