package ledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/operator"
)

// Who decides, and who wins.

// operatorSteps are the steps that need an operator, on a fresh obligation that each of them could work on.
func operatorSteps() map[string]func(d *desk, op operator.Operator) error {
	return map[string]func(d *desk, op operator.Operator) error{
		"approve": func(d *desk, op operator.Operator) error {
			filed := d.file(d.filing("one"))
			return second(d.Decide(d.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Approve, Operator: op}))
		},
		"reject": func(d *desk, op operator.Operator) error {
			filed := d.file(d.filing("one"))
			return second(d.Decide(d.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Reject, Reason: "r", Operator: op}))
		},
		"revoke": func(d *desk, op operator.Operator) error {
			return second(d.Revoke(d.t.Context(), ledger.Revocation{ObligationID: d.approved("one").ObligationID, Reason: "r", Operator: op}))
		},
		"steer": func(d *desk, op operator.Operator) error {
			return second(d.Steer(d.t.Context(), op, d.file(d.filing("one")).ObligationID, "shorter"))
		},
		"cancel": func(d *desk, op operator.Operator) error {
			return second(d.CancelByOperator(d.t.Context(), op, d.claim(d.approved("one")).ObligationID, "r"))
		},
		"reconcile": func(d *desk, op operator.Operator) error {
			return second(d.Reconcile(d.t.Context(), op, d.unknown("one").ObligationID, "c", "e"))
		},
		"settle": func(d *desk, op operator.Operator) error {
			return second(d.Settle(d.t.Context(), op, d.unknown("one").ObligationID, "e"))
		},
		"close": func(d *desk, op operator.Operator) error {
			return second(d.CloseByHand(d.t.Context(), op, d.file(d.filing("one")).ObligationID, "r"))
		},
		"declare dead": func(d *desk, op operator.Operator) error { return d.DeclareDead(d.t.Context(), op, "w1") },
	}
}

func TestNobodyDecidesWithoutAnIdentity(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	refusals := 0
	for name, step := range operatorSteps() {
		d.party = name
		if err := step(d, operator.Operator{}); !errors.Is(err, ledger.ErrNoOperator) {
			t.Errorf("%s by nobody: %v", name, err)
		}
		refusals++
		if n := d.count(`SELECT count(*) FROM audit_log WHERE event = 'refused' AND actor = ''`); n != refusals {
			t.Errorf("%s: %d refusals were recorded, want %d", name, n, refusals)
		}
		d.party = name + ", by anna"
		if err := step(d, d.anna); err != nil {
			t.Errorf("%s by anna: %v", name, err)
		}
	}
}

// Whoever has no identity could fill the log: his refusal is kept once a minute, on whatever obligation he tries.
func TestRefusalsOfNobodyAreRateLimited(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	refusals := func() int { return d.count(`SELECT count(*) FROM audit_log WHERE event = 'refused'`) }
	flood := func() {
		for id := range int64(30) {
			_, err := d.Steer(t.Context(), operator.Operator{}, id, "n")
			if !errors.Is(err, ledger.ErrNoOperator) {
				t.Fatal(err)
			}
			must(t, d.RecordRefusal(t.Context(), "approve", "nobody", id, errors.New("no such token")))
			must(t, d.RecordRefusal(t.Context(), "approve", strings.Repeat("n", 5000), id, errors.New("no such token")))
		}
	}
	flood()
	if n := refusals(); n != 3 {
		t.Errorf("%d refusals were kept, want one of each kind", n)
	}
	d.tick(time.Minute)
	flood()
	if n := refusals(); n != 6 {
		t.Errorf("%d refusals were kept after a minute, want 6", n)
	}
	if _, err := d.CloseByHand(t.Context(), d.anna, 999, "r"); !is[*ledger.NotFoundError](err) { // who has one is always kept
		t.Fatal(err)
	}
	_, err := d.CloseByHand(t.Context(), d.anna, 999, "r")
	want[*ledger.NotFoundError](t, err)
	if n := refusals(); n != 8 {
		t.Errorf("%d refusals were kept, want anna's two too", n)
	}
}

func TestNobodyApprovesTheirOwnDraft(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *ledger.Filing){
		"as its agent":                func(f *ledger.Filing) { f.Agent = "anna" },
		"as its agent, in capitals":   func(f *ledger.Filing) { f.Agent = "ANNA" },
		"as its agent, in look-alike": func(f *ledger.Filing) { f.Agent = "аnnа" }, // Cyrillic
		"as its origin user":          func(f *ledger.Filing) { f.User = "anna" },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			f := filing("one")
			change(&f)
			filed := d.file(f)
			approve := ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Approve, Operator: d.anna}
			_, err := d.Decide(t.Context(), approve)
			if own := want[*ledger.OwnDraftError](t, err); own.Operator != "anna" {
				t.Errorf("%+v", own)
			}
			approve.Operator = d.ben
			must(t, second(d.Decide(t.Context(), approve)))
		})
	}
	d := newDesk(t)
	f := filing("one")
	f.Agent = "anna"
	d.decide(d.file(f), ledger.Reject) // to reject it is always theirs
}

func TestOfTwoRacingDecisionsOneWinsAndTheOtherLearnsWho(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ledgers := []*ledger.Ledger{d.open(), d.open()}
	for i := range 5 {
		d.party = fmt.Sprint("c", i)
		filed := d.file(d.filing("one"))
		type result struct {
			out ledger.Decided
			err error
		}
		results := make(chan result, 2)
		for n, decision := range []ledger.Decision{{Verdict: ledger.Approve, Operator: d.anna}, {Verdict: ledger.Reject, Operator: d.ben, Reason: "r"}} {
			decision.ObligationID, decision.Epoch = filed.ObligationID, filed.Epoch
			go func() {
				out, err := ledgers[n].Decide(t.Context(), decision)
				results <- result{out, err}
			}()
		}
		first, other := <-results, <-results
		if first.err != nil {
			first, other = other, first
		}
		must(t, first.err)
		lost := want[*ledger.DecidedError](t, other.err)
		if lost.By != first.out.Operator || lost.Status != first.out.Status || !lost.At.Equal(d.now) {
			t.Errorf("the loser hears %+v, the winner is %+v", lost, first.out)
		}
		if n := d.count(`SELECT count(*) FROM obligation_decisions WHERE obligation_id = $1`, filed.ObligationID); n != 1 {
			t.Errorf("%d decisions", n)
		}
	}
}

func TestALateRejectionRewritesNothing(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(d *desk, v ledger.Decided){
		"approved":    func(*desk, ledger.Decided) {},
		"claimed":     func(d *desk, v ledger.Decided) { d.claim(v) },
		"dispatching": func(d *desk, v ledger.Decided) { d.begin(d.claim(v)) },
		"sent": func(d *desk, v ledger.Decided) {
			c := d.claim(v)
			d.begin(c)
			must(d.t, d.Complete(d.t.Context(), c, ledger.Receipt{Coordinate: "x"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			v := d.approved("one")
			reach(d, v)
			before := d.show(v.ObligationID)
			d.tick(time.Hour)
			for _, verdict := range []ledger.Verdict{ledger.Reject, ledger.Approve} { // late, and a double click without its nonce
				_, err := d.Decide(t.Context(), ledger.Decision{ObligationID: v.ObligationID, Epoch: v.Epoch, Verdict: verdict, Operator: d.ben, Reason: "too dear"})
				late := want[*ledger.DecidedError](t, err)
				if late.By != "anna" || !late.At.Equal(time.Unix(1_800_000_000, 0)) || late.Status != before.Status {
					t.Errorf("%+v", late)
				}
			}
			after := d.show(v.ObligationID)
			if len(after.Decisions) != 1 || after.Status != before.Status || after.Epoch != before.Epoch || after.Snapshot.Text != before.Snapshot.Text {
				t.Errorf("before %+v\nafter %+v", before, after)
			}
		})
	}
}

func TestWhatADecisionNeeds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filed := d.file(filing("one"))
	try := func(change func(x *ledger.Decision)) error {
		decision := ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Reject, Operator: d.anna, Reason: "r"}
		change(&decision)
		return second(d.Decide(t.Context(), decision))
	}
	for _, reason := range []string{"", " \n", strings.Repeat("r", 4001), "\xff"} {
		want[*ledger.InputError](t, try(func(x *ledger.Decision) { x.Reason = reason }))
	}
	for _, reason := range []string{strings.Repeat("r", 4001), "\xff"} { // none is needed to approve, but what there is is checked
		want[*ledger.InputError](t, try(func(x *ledger.Decision) { x.Verdict, x.Reason = ledger.Approve, reason }))
	}
	want[*ledger.InputError](t, try(func(x *ledger.Decision) { x.Verdict = "maybe" }))
	want[*ledger.NotFoundError](t, try(func(x *ledger.Decision) { x.ObligationID = 99 }))
	_, err := d.plain().Exec(`INSERT INTO obligations VALUES (2, 'x', 'smtp', 'x', 'they_owe_us', 'drafted', NULL, 1, 1, 1)`)
	must(t, err)
	want[*ledger.StatusError](t, try(func(x *ledger.Decision) { x.ObligationID, x.Epoch = 2, 1 }))
	must(t, try(func(*ledger.Decision) {}))
}

func TestSteeringIsNoDecision(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := filing("one")
	f.AutoSendAfter = d.now.Unix() + 60
	filed := d.file(f)
	out, err := d.Steer(t.Context(), d.anna, filed.ObligationID, "name the price")
	must(t, err)
	s := d.show(filed.ObligationID)
	if out.Status != ledger.StatusDrafted || s.Epoch != filed.Epoch || s.AutoSendAfter != nil || len(s.Decisions) != 0 {
		t.Errorf("%+v, %+v", out, s.Listed)
	}
	inbox, err := d.Inbox(t.Context(), "quoter")
	must(t, err)
	if len(inbox) != 1 || inbox[0].Kind != "steered" || !strings.Contains(inbox[0].Body, "name the price") || !strings.Contains(inbox[0].Body, "anna") {
		t.Errorf("%+v", inbox)
	}
	d.decide(filed, ledger.Approve) // its epoch is still the same
	_, err = d.Steer(t.Context(), d.anna, filed.ObligationID, "too late")
	want[*ledger.DecidedError](t, err)
}

func TestOnlyTheFilingAgentWithdrawsWhatIsOnlyDrafted(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filed := d.file(filing("one"))
	for _, agent := range []string{"another", ""} {
		_, err := d.Withdraw(t.Context(), agent, filed.ObligationID, filed.Epoch)
		want[*ledger.WrongAgentError](t, err)
	}
	_, err := d.Withdraw(t.Context(), "quoter", filed.ObligationID, filed.Epoch-1)
	want[*ledger.StaleEpochError](t, err)
	out, err := d.Withdraw(t.Context(), "quoter", filed.ObligationID, filed.Epoch)
	if err != nil || out.Status != ledger.StatusClosed {
		t.Fatalf("%+v, %v", out, err)
	}
	_, err = d.Withdraw(t.Context(), "quoter", filed.ObligationID, filed.Epoch)
	want[*ledger.DecidedError](t, err)
	v := d.approved("two")
	_, err = d.Withdraw(t.Context(), "quoter", v.ObligationID, v.Epoch)
	want[*ledger.DecidedError](t, err)
	_, err = d.plain().Exec(`INSERT INTO obligations VALUES (3, 'x', 'smtp', 'x', 'we_owe_them', 'drafted', NULL, 1, 1, 1)`)
	must(t, err)
	_, err = d.Withdraw(t.Context(), "", 3, 1) // nobody filed it, and so nobody's name fits
	want[*ledger.WrongAgentError](t, err)
}
