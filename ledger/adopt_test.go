package ledger_test

import (
	"errors"
	"testing"

	"countersign/ledger"
)

// A sleeper wakes: another worker took over meanwhile, and everything that the sleeper does is refused.

func (d *desk) sleeperIsRefused(c ledger.Claim) {
	d.t.Helper()
	p, err := d.BeginDispatch(d.t.Context(), c)
	if want[*ledger.LostClaimError](d.t, err); p != (ledger.Payload{}) {
		d.t.Errorf("a payload came out: %+v", p)
	}
	want[*ledger.LostClaimError](d.t, d.Complete(d.t.Context(), c, ledger.Receipt{Coordinate: "of the sleeper"}))
	want[*ledger.LostClaimError](d.t, d.MarkUnknown(d.t.Context(), c, ledger.Failure{Outcome: ledger.Ambiguous}))
	want[*ledger.LostClaimError](d.t, d.Cancel(d.t.Context(), c, "of the sleeper"))
}

func TestASleeperWhoseClaimWasAdoptedCanDoNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	asleep := d.claim(v)
	adopted, err := d.Adopt(t.Context(), v.DecisionID, "w1", "w2")
	must(t, err)
	if adopted.Generation != asleep.Generation+1 || adopted.Worker != "w2" || adopted.Token != asleep.Token {
		t.Errorf("%+v after %+v", adopted, asleep)
	}
	d.sleeperIsRefused(asleep)
	d.begin(adopted)
	d.sleeperIsRefused(asleep)
	must(t, d.Complete(t.Context(), adopted, ledger.Receipt{Coordinate: "of the adopter"}))
	d.sleeperIsRefused(asleep)
	if s := d.show(v.ObligationID); s.Delivery.Coordinate != "of the adopter" {
		t.Errorf("%+v", s.Delivery)
	}
}

func TestASleeperWhoseDispatchWasMarkedUnknownCanDoNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	asleep := d.claim(v)
	d.begin(asleep)
	must(t, d.MarkDead(t.Context(), v.DecisionID, "w1", "w2"))
	d.sleeperIsRefused(asleep)
	if s := d.show(v.ObligationID); s.Claim.State != ledger.ClaimUnknown || s.Claim.Outcome != ledger.Ambiguous || s.Claim.Stage != "worker" {
		t.Errorf("%+v", s.Claim)
	}
	if n := d.count(`SELECT count(*) FROM notices WHERE kind = 'unknown'`); n != 1 { // noticed once
		t.Errorf("%d notices", n)
	}
	want[*ledger.LostClaimError](t, d.MarkDead(t.Context(), v.DecisionID, "w1", "w3"))
	want[*ledger.LostClaimError](t, d.MarkDead(t.Context(), v.DecisionID, "w2", "w3"))
}

// The very same worker under a fresh start: a later generation of its own claim fences the earlier one.
func TestAWorkerThatAdoptsItsOwnClaimFencesItsEarlierSelf(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	before := d.claim(v)
	after, err := d.Adopt(t.Context(), v.DecisionID, "w1", "w1")
	must(t, err)
	d.sleeperIsRefused(before)
	d.begin(after)
}

func TestOnlyWhatADeadWorkerLeftBehindIsTakenOver(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	_, err := d.Adopt(t.Context(), v.DecisionID, "w1", "w2")
	want[*ledger.LostClaimError](t, err) // nobody claimed
	want[*ledger.LostClaimError](t, d.MarkDead(t.Context(), v.DecisionID, "w1", "w2"))
	c := d.claim(v)
	_, err = d.Adopt(t.Context(), v.DecisionID, "w9", "w2")
	want[*ledger.LostClaimError](t, err)                                               // it is another's
	want[*ledger.LostClaimError](t, d.MarkDead(t.Context(), v.DecisionID, "w1", "w2")) // it has not begun
	d.begin(c)
	_, err = d.Adopt(t.Context(), v.DecisionID, "w1", "w2")
	want[*ledger.LostClaimError](t, err) // it has begun
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	want[*ledger.LostClaimError](t, d.MarkDead(t.Context(), v.DecisionID, "w1", "w2"))
}

func TestTwoAdoptersOneClaim(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	d.claim(v)
	results := make(chan error, 2)
	for _, name := range []string{"w2", "w3"} {
		l := d.open()
		go func() { results <- second(l.Adopt(t.Context(), v.DecisionID, "w1", name)) }()
	}
	first, other := <-results, <-results
	if first != nil {
		first, other = other, first
	}
	must(t, first)
	want[*ledger.LostClaimError](t, other)
}

func TestAForgedClaimGrantsNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	for name, forge := range map[string]func(c *ledger.Claim){
		"no token":             func(c *ledger.Claim) { c.Token = "" },
		"another token":        func(c *ledger.Claim) { c.Token = "guessed" },
		"another worker":       func(c *ledger.Claim) { c.Worker = "w2" },
		"a later generation":   func(c *ledger.Claim) { c.Generation++ },
		"an earlier one":       func(c *ledger.Claim) { c.Generation-- },
		"another obligation":   func(c *ledger.Claim) { c.ObligationID++ },
		"a decision not there": func(c *ledger.Claim) { c.DecisionID++ },
	} {
		t.Run(name, func(t *testing.T) {
			forged := c
			forge(&forged)
			d.sleeperIsRefused(forged)
		})
	}
	d.begin(c)
}

func TestASpooledReceiptEndsWhatItsWorkerCouldNotRecord(t *testing.T) {
	t.Parallel()
	for state, reach := range map[ledger.ClaimState]func(d *desk, c ledger.Claim){
		ledger.ClaimDispatching: func(*desk, ledger.Claim) {},
		ledger.ClaimUnknown:     func(d *desk, c ledger.Claim) { must(d.t, d.MarkDead(d.t.Context(), c.DecisionID, "w1", "w2")) },
	} {
		t.Run(string(state), func(t *testing.T) {
			d := newDesk(t)
			v := d.approved("one")
			c := d.claim(v)
			d.begin(c)
			reach(d, c)
			r := ledger.Receipt{Coordinate: "<1@x>", Detail: "250 ok"}
			authentic := func(token string) bool { return token == c.Token }
			err := d.ConfirmSpooled(t.Context(), v.DecisionID, "w2", r, func(string) bool { return false })
			want[*ledger.MismatchError](t, err)
			want[*ledger.InputError](t, d.ConfirmSpooled(t.Context(), v.DecisionID, "w2", ledger.Receipt{Coordinate: " "}, authentic))
			must(t, d.ConfirmSpooled(t.Context(), v.DecisionID, "w2", r, authentic))
			must(t, d.ConfirmSpooled(t.Context(), v.DecisionID, "w3", r, authentic)) // it lies there until somebody removes it
			err = d.ConfirmSpooled(t.Context(), v.DecisionID, "w3", ledger.Receipt{Coordinate: "<2@x>"}, authentic)
			want[*ledger.ContradictionError](t, err)
			s := d.show(v.ObligationID)
			if s.Status != ledger.StatusSent || s.Delivery.Coordinate != "<1@x>" {
				t.Errorf("%s, %+v", s.Status, s.Delivery)
			}
			if n := d.count(`SELECT count(*) FROM obligation_delivery_claims WHERE reconciliation_evidence LIKE '%w2%'`); (n == 1) != (state == ledger.ClaimUnknown) {
				t.Errorf("evidence in %d claims", n)
			}
		})
	}
}

func TestASpooledReceiptOfWhatNeverBeganIsRefused(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	r := ledger.Receipt{Coordinate: "<1@x>"}
	yes := func(string) bool { return true }
	want[*ledger.LostClaimError](t, d.ConfirmSpooled(t.Context(), v.DecisionID, "w2", r, yes))
	c := d.claim(v)
	want[*ledger.LostClaimError](t, d.ConfirmSpooled(t.Context(), v.DecisionID, "w2", r, yes))
	must(t, d.Cancel(t.Context(), c, "r"))
	want[*ledger.LostClaimError](t, d.ConfirmSpooled(t.Context(), v.DecisionID, "w2", r, yes))
}

// The token is a secret of its holder: no read gives it away, and the public name of a delivery does not either.
func TestTheTokenIsNeverShown(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	p := d.begin(c)
	claims, err := d.Claims(t.Context())
	must(t, err)
	if len(c.Token) != 64 || len(claims) != 1 || claims[0].Key != p.Key || p.Key == "" {
		t.Fatalf("%+v, %+v", claims, p)
	}
	for name, value := range map[string]any{"claims": claims, "show": d.show(v.ObligationID), "audit": d.audit(ledger.AuditFilter{}), "payload": p} {
		if containsToken(t, value, c.Token) {
			t.Errorf("%s shows the token", name)
		}
	}
}

func TestWithoutATokenThereIsNoClaim(t *testing.T) {
	t.Parallel()
	broken := errors.New("no entropy")
	d := newDesk(t, func(o *ledger.Options) { o.Token = func() (string, error) { return "", broken } })
	filed := d.file(filing("one"))
	v, err := d.Decide(t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Approve, Operator: d.anna, Nonce: "n"})
	must(t, err)
	if _, err := d.Claim(t.Context(), v.DecisionID, "w1"); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if n := d.count(`SELECT count(*) FROM obligation_delivery_claims`); n != 0 {
		t.Errorf("%d claims", n)
	}
}
