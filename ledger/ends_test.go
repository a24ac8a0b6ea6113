package ledger_test

import (
	"testing"
	"time"

	"countersign/ledger"
)

// After every ending the obligation can be decided, filed for, or is finished.

// endings are ways to take an obligation out of where it is. Each leads a fresh obligation to the ending's state and says which it is.
func endings() map[string]struct {
	reach func(d *desk) int64
	is    ledger.Status
} {
	type ending = struct {
		reach func(d *desk) int64
		is    ledger.Status
	}
	revoke := func(d *desk, id int64, reject bool) int64 {
		_, err := d.Revoke(d.t.Context(), ledger.Revocation{ObligationID: id, Operator: d.anna, Reason: "a typo", Reject: reject})
		must(d.t, err)
		return id
	}
	overtaken := func(d *desk) ledger.Decided {
		v := d.approved("one")
		d.file(d.filing("a newer draft"))
		return v
	}
	expire := func(d *desk, v ledger.Decided, step func() error) int64 {
		d.tick(3 * time.Hour)
		want[*ledger.ExpiredError](d.t, step())
		return v.ObligationID
	}
	return map[string]ending{
		"revoked":              {func(d *desk) int64 { return revoke(d, d.approved("one").ObligationID, false) }, ledger.StatusDrafted},
		"revoked by rejection": {func(d *desk) int64 { return revoke(d, d.approved("one").ObligationID, true) }, ledger.StatusRejected},
		"revoked while claimed": {func(d *desk) int64 {
			v := d.approved("one")
			d.claim(v)
			return revoke(d, v.ObligationID, false)
		}, ledger.StatusDrafted},
		"revoked, with a newer draft":              {func(d *desk) int64 { return revoke(d, overtaken(d).ObligationID, false) }, ledger.StatusClosed},
		"revoked by rejection, with a newer draft": {func(d *desk) int64 { return revoke(d, overtaken(d).ObligationID, true) }, ledger.StatusClosed},
		"cancelled": {func(d *desk) int64 {
			c := d.claim(d.approved("one"))
			must(d.t, d.Cancel(d.t.Context(), c, "stopping"))
			return c.ObligationID
		}, ledger.StatusDrafted},
		"cancelled, with a newer draft": {func(d *desk) int64 {
			c := d.claim(overtaken(d))
			must(d.t, d.Cancel(d.t.Context(), c, "stopping"))
			return c.ObligationID
		}, ledger.StatusClosed},
		"expired before the claim": {func(d *desk) int64 {
			v := d.approved("one")
			return expire(d, v, func() error { return second(d.Claim(d.t.Context(), v.DecisionID, "w1")) })
		}, ledger.StatusDrafted},
		"expired before the begin": {func(d *desk) int64 {
			v := d.approved("one")
			c := d.claim(v)
			return expire(d, v, func() error { return second(d.BeginDispatch(d.t.Context(), c)) })
		}, ledger.StatusDrafted},
		"expired, with a newer draft": {func(d *desk) int64 {
			v := overtaken(d)
			return expire(d, v, func() error { return second(d.Claim(d.t.Context(), v.DecisionID, "w1")) })
		}, ledger.StatusClosed},
		"rejected": {func(d *desk) int64 { return d.decide(d.file(d.filing("one")), ledger.Reject).ObligationID }, ledger.StatusRejected},
		"withdrawn": {func(d *desk) int64 {
			filed := d.file(d.filing("one"))
			_, err := d.Withdraw(d.t.Context(), "quoter", filed.ObligationID, filed.Epoch)
			must(d.t, err)
			return filed.ObligationID
		}, ledger.StatusClosed},
		"closed": {func(d *desk) int64 {
			filed := d.file(d.filing("one"))
			must(d.t, second(d.CloseByHand(d.t.Context(), d.anna, filed.ObligationID, "by telephone")))
			return filed.ObligationID
		}, ledger.StatusClosed},
		"closed while approved": {func(d *desk) int64 {
			v := d.approved("one")
			must(d.t, second(d.CloseByHand(d.t.Context(), d.anna, v.ObligationID, "by telephone")))
			return v.ObligationID
		}, ledger.StatusClosed},
		"closed after a rejection": {func(d *desk) int64 {
			v := d.decide(d.file(d.filing("one")), ledger.Reject)
			must(d.t, second(d.CloseByHand(d.t.Context(), d.anna, v.ObligationID, "by telephone")))
			return v.ObligationID
		}, ledger.StatusClosed},
		"sent": {func(d *desk) int64 {
			c := d.claim(d.approved("one"))
			d.begin(c)
			must(d.t, d.Complete(d.t.Context(), c, ledger.Receipt{Coordinate: "x"}))
			return c.ObligationID
		}, ledger.StatusSent},
		"settled": {func(d *desk) int64 {
			v := d.unknown("one")
			must(d.t, second(d.Settle(d.t.Context(), d.anna, v.ObligationID, "never arrived")))
			return v.ObligationID
		}, ledger.StatusApproved},
	}
}

func twoHours(o *ledger.Options) {
	o.Terms = func(string) ledger.Terms { return ledger.Terms{MaxAge: 2 * time.Hour} }
}

func TestNoEndingIsADeadEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	for name, ending := range endings() {
		d.party = name
		id := ending.reach(d)
		s := d.show(id)
		if s.Status != ending.is {
			t.Fatalf("%s: it is %s, want %s", name, s.Status, ending.is)
		}
		if s.Status == ledger.StatusDrafted {
			d.sends(id)
		}
		d.sends(d.file(d.filing("what comes after")).ObligationID)
	}
	checked, err := d.Check(t.Context())
	must(t, err)
	if !checked.OK {
		t.Errorf("check: %v", checked.Problems)
	}
}

// sends takes what waits all the way to sent.
func (d *desk) sends(id int64) {
	d.t.Helper()
	v, err := d.Decide(d.t.Context(), ledger.Decision{ObligationID: id, Epoch: d.show(id).Epoch, Verdict: ledger.Approve, Operator: d.ben})
	must(d.t, err)
	c := d.claim(v)
	d.begin(c)
	must(d.t, d.Complete(d.t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	if s := d.show(id); s.Status != ledger.StatusSent {
		d.t.Errorf("it is %s", s.Status)
	}
}

// No ending leaves an approval in circulation: nothing that was decided before it is ever claimed.
func TestNoEndingLeavesAnApprovalInCirculation(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	for name, ending := range endings() {
		d.party = name
		id := ending.reach(d)
		for _, v := range d.show(id).Decisions {
			if _, err := d.Claim(t.Context(), v.DecisionID, "w2"); err == nil {
				t.Errorf("decision %d was claimed after it was %s", v.DecisionID, name)
			}
		}
		for _, at := range mustList(d.Destinations(t.Context(), ledger.DeliverFilter{}))(t) {
			t.Errorf("%s, and offered to workers: %v", name, at)
		}
	}
}

func mustList[T any](list []T, err error) func(t *testing.T) []T {
	return func(t *testing.T) []T { t.Helper(); must(t, err); return list }
}

// An approval within its term is used, one second later it is not; a limit of zero is none.
func TestTheTermOfAnApproval(t *testing.T) {
	t.Parallel()
	d := newDesk(t, twoHours)
	v := d.approved("one")
	d.tick(2 * time.Hour)
	c := d.claim(v)
	d.tick(time.Second)
	_, err := d.BeginDispatch(t.Context(), c)
	expired := want[*ledger.ExpiredError](t, err)
	if expired.Limit != 2*time.Hour || expired.Age != 2*time.Hour+time.Second || expired.DecisionID != v.DecisionID {
		t.Errorf("%+v", expired)
	}
	s := d.show(v.ObligationID)
	if s.Status != ledger.StatusDrafted || s.Decisions[0].Voided != "expired" || s.Claim.State != ledger.ClaimCancelled {
		t.Errorf("%s, %s, %s", s.Status, s.Decisions[0].Voided, s.Claim.State)
	}
	forever := newDesk(t)
	v = forever.approved("one")
	forever.tick(10 * 365 * 24 * time.Hour)
	forever.begin(forever.claim(v))
}

// What an operator took back must not be approved by a machine: the deadline goes with the approval.
func TestTakingBackClearsTheDeadline(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := d.filing("one")
	f.AutoSendAfter = d.now.Unix() + 3600
	v := d.decide(d.file(f), ledger.Approve)
	must(t, second(d.Revoke(t.Context(), ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "no"})))
	if s := d.show(v.ObligationID); s.AutoSendAfter != nil {
		t.Errorf("the deadline is still %d", *s.AutoSendAfter)
	}
}
