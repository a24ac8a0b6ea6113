package ledger_test

import (
	"errors"
	"testing"
	"time"

	"countersign/ledger"
)

func TestStory(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filed := d.file(filing("Dear Sir,\n\n12 pieces at 4 EUR.\n"))
	if filed.Status != ledger.StatusDrafted || filed.Refiled || !filed.Cleaned {
		t.Fatalf("filed: %+v", filed)
	}
	v := d.decide(filed, ledger.Approve)
	c := d.claim(v)
	p := d.begin(c)
	if p.Text != "Dear Sir,\n\n12 pieces at 4 EUR." || p.Subject != "Offer" || p.TextSHA256 != filed.DraftSHA256 || p.EnvelopeSHA256 != filed.EnvelopeSHA256 {
		t.Fatalf("payload: %+v", p)
	}
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "<1@x> 250 ok"}))
	s := d.show(v.ObligationID)
	if s.Status != ledger.StatusSent || s.Delivery == nil || s.Delivery.Coordinate != "<1@x> 250 ok" || s.Claim.State != ledger.ClaimDelivered {
		t.Fatalf("shown: %+v", s)
	}
	var events []string
	for _, e := range s.Audit {
		events = append(events, e.Event)
	}
	if got, want := len(events), 5; got != want {
		t.Fatalf("audit has %v", events)
	}
	checked, err := d.Check(t.Context())
	must(t, err)
	if !checked.OK {
		t.Fatalf("check: %v", checked.Problems)
	}
}

func TestReceiptsGoOnlyToTheInternalDestination(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filed := d.file(filing("hello"))
	if filed.Notice.Routed != ledger.RoutedRetained || filed.Notice.Reason == "" {
		t.Fatalf("notice %+v, want retained with a reason: no internal destination exists", filed.Notice)
	}
	if n := d.count(`SELECT count(*) FROM notices WHERE routed = 'retained' AND body = 'Draft filed for approval (P2, sha ' || substr($1, 1, 8) || '). Waiting on operator.'`, filed.DraftSHA256); n != 1 {
		t.Fatalf("%d notices in the outbox, want 1", n)
	}
	if n := d.count(`SELECT count(*) FROM obligation_deliveries`); n != 0 {
		t.Fatalf("filing wrote %d receipts", n)
	}
}

func TestSamePairTwiceIsOneObligationWithTwoEpochs(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]time.Duration{"later": time.Minute, "within one second": 0, "clock goes back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			first := d.file(filing("one"))
			d.tick(step)
			second := d.file(filing("two"))
			if second.ObligationID != first.ObligationID || !second.Refiled || second.Epoch <= first.Epoch {
				t.Fatalf("first %+v, second %+v", first, second)
			}
			if n := len(d.show(first.ObligationID).Filings); n != 2 {
				t.Fatalf("%d filings kept, want 2", n)
			}
		})
	}
}

func TestStaleEpochNeverLeadsToADelivery(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.file(filing("one"))
	second := d.file(filing("two"))
	for _, verdict := range []ledger.Verdict{ledger.Approve, ledger.Reject} {
		_, err := d.Decide(t.Context(), ledger.Decision{ObligationID: first.ObligationID, Epoch: first.Epoch, Verdict: verdict, Operator: d.anna, Reason: "r"})
		stale := want[*ledger.StaleEpochError](t, err)
		if stale.Want != second.Epoch || stale.Got != first.Epoch {
			t.Fatalf("%+v", stale)
		}
	}
	for _, table := range []string{"obligation_decisions", "obligation_approval_snapshots", "obligation_delivery_claims", "obligation_deliveries"} {
		if n := d.count(`SELECT count(*) FROM ` + table); n != 0 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
	if got := d.show(first.ObligationID); got.Status != ledger.StatusDrafted || got.Epoch != second.Epoch {
		t.Fatalf("the new epoch was touched: %+v", got.Listed)
	}
	if n := d.count(`SELECT count(*) FROM audit_log WHERE event = 'refused'`); n != 2 {
		t.Fatalf("%d refusals recorded, want 2", n)
	}
}

func TestTwoClaimantsOnTwoConnections(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	other := d.open()
	results := make(chan error, 2)
	for i, l := range []*ledger.Ledger{d.Ledger, other} {
		go func() {
			_, err := l.Claim(t.Context(), v.DecisionID, []string{"w1", "w2"}[i])
			results <- err
		}()
	}
	var won int
	for range 2 {
		if err := <-results; err == nil {
			won++
		} else {
			want[*ledger.HeldError](t, err)
		}
	}
	if won != 1 {
		t.Fatalf("%d claims were granted, want 1", won)
	}
}

func TestBeginIsGrantedOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.claim(d.approved("one"))
	d.begin(c)
	_, err := d.open().BeginDispatch(t.Context(), c)
	want[*ledger.LostClaimError](t, err)
}

func TestAnotherDecisionCantGetAroundAnActiveClaim(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	_, err := d.Claim(t.Context(), v.DecisionID, "w2")
	want[*ledger.HeldError](t, err)
	d.begin(c)
	must(t, d.MarkUnknown(t.Context(), c, ledger.Failure{Outcome: ledger.Refused, Stage: "rcpt", Code: "550"}))
	_, err = d.Decide(t.Context(), ledger.Decision{ObligationID: v.ObligationID, Epoch: v.Epoch, Verdict: ledger.Approve, Operator: d.ben})
	want[*ledger.DecidedError](t, err)
	_, err = d.Revoke(t.Context(), ledger.Revocation{ObligationID: v.ObligationID, Operator: d.ben, Reason: "r"})
	want[*ledger.TooLateError](t, err)
	// Not even a decision and snapshot by raw SQL.
	_, err = d.plain().Exec(`INSERT INTO obligation_decisions (obligation_id, decision, operator, decided_ts, nonce, draft_updated_ts)
		VALUES ($1, 'approve', 'anna', 1, 'raw', $2)`, v.ObligationID, v.Epoch)
	if err == nil {
		t.Fatal("a raw decision was accepted while the obligation is held")
	}
}

func TestUnknownNeverEnablesARetry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.unknown("one")
	l := d.open()
	_, err := l.Claim(t.Context(), v.DecisionID, "w2")
	want[*ledger.HeldError](t, err)
	ready, err := l.Next(t.Context(), ledger.Destination{Platform: "smtp", Channel: "buyer@acme.example"}, ledger.DeliverFilter{}, 0)
	must(t, err)
	if ready != nil {
		t.Fatalf("an unknown delivery is offered again: %+v", ready)
	}
	d.tick(10 * 365 * 24 * time.Hour)
	if _, err := l.Claim(t.Context(), v.DecisionID, "w2"); err == nil {
		t.Fatal("time freed an unknown claim")
	}
}

func TestClaimSurvivesReopening(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	must(t, d.Close())
	l := d.open()
	if _, err := l.Claim(t.Context(), v.DecisionID, "w2"); err == nil {
		t.Fatal("granted twice")
	}
	if _, err := l.BeginDispatch(t.Context(), c); err != nil {
		t.Fatalf("the holder lost its claim by reopening: %v", err)
	}
}

func TestFailedReceiptWriteNeverEnablesARetry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	d.begin(c)
	blocker := d.plain()
	tx, err := blocker.Begin()
	must(t, err)
	_, err = tx.Exec(`UPDATE prepare_backoff SET failures = 0`) // takes the write lock
	must(t, err)
	d.opts.BusyTimeout = 10 * time.Millisecond
	impatient := d.open()
	err = impatient.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"})
	if !errors.Is(err, ledger.ErrBusy) {
		t.Fatalf("got %v, want ErrBusy", err)
	}
	must(t, tx.Rollback())
	if _, err := d.Claim(t.Context(), v.DecisionID, "w2"); err == nil {
		t.Fatal("a failed receipt write freed the claim")
	}
	if s := d.show(v.ObligationID); s.Claim.State != ledger.ClaimDispatching {
		t.Fatalf("claim is %s", s.Claim.State)
	}
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
}

func TestCompletionIsOneTransactionAndRepeatable(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	c := d.claim(v)
	d.begin(c)
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	err := d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "y"})
	want[*ledger.ContradictionError](t, err)
	want[*ledger.LostClaimError](t, d.MarkUnknown(t.Context(), c, ledger.Failure{Outcome: ledger.Refused}))
	if n := d.count(`SELECT count(*) FROM obligation_deliveries d JOIN obligation_delivery_claims c ON c.decision_id = d.decision_id
		JOIN obligations o ON o.id = d.obligation_id WHERE c.state = 'delivered' AND o.status = 'sent' AND d.coordinate = 'x'`); n != 1 {
		t.Fatalf("%d complete deliveries, want 1", n)
	}
	if err := d.Complete(t.Context(), d.claim(d.approved("two")), ledger.Receipt{}); err == nil {
		t.Fatal("a receipt without a coordinate was accepted")
	}
}
