package ledger_test

import (
	"reflect"
	"testing"

	"countersign/ledger"
)

// What happens when the same thing is handed in twice: by an agent with a key, by an operator with a nonce.

func keyed(text string) ledger.Filing {
	f := filing(text)
	f.IdempotencyKey = "order 7"
	return f
}

func TestTheSameKeyReturnsTheFirstResultWithTheCurrentStatus(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.file(keyed("one"))
	rows := func() int {
		return d.count(`SELECT (SELECT count(*) FROM obligations) + (SELECT count(*) FROM filings) + (SELECT count(*) FROM notices)
			+ (SELECT count(*) FROM audit_log) + (SELECT count(*) FROM followups)`)
	}
	again := func(status ledger.Status) {
		t.Helper()
		before := rows()
		d.tick(3600e9)
		got := d.file(keyed("one"))
		expected := first
		expected.Status, expected.Replayed = status, true
		if !reflect.DeepEqual(got, expected) {
			t.Errorf("got  %+v\nwant %+v", got, expected)
		}
		if after := rows(); after != before {
			t.Errorf("%d rows were written", after-before)
		}
		repeated, was, err := d.Repeated(t.Context(), d.clean(keyed("one")))
		if err != nil || !was || !reflect.DeepEqual(repeated, expected) {
			t.Errorf("Repeated: %v %+v, %v", was, repeated, err)
		}
	}
	again(ledger.StatusDrafted)
	v := d.decide(first, ledger.Approve)
	again(ledger.StatusApproved)
	c := d.claim(v)
	again(ledger.StatusApproved) // although the pair is held: nothing is filed
	d.begin(c)
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	again(ledger.StatusSent)
}

func TestARefiledObligationStillAnswersItsFirstKey(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.file(keyed("one"))
	second := d.file(filing("two"))
	if got := d.file(keyed("one")); got.Epoch != first.Epoch || got.DraftSHA256 != first.DraftSHA256 {
		t.Errorf("%+v", got)
	}
	if s := d.show(first.ObligationID); s.Epoch != second.Epoch || s.DraftText != "two" {
		t.Errorf("the repetition brought the old text back: %+v", s.Listed)
	}
}

func TestAKeyWithAnotherEnvelopeIsAConflict(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, change := range map[string]func(f *ledger.Filing){
		"text":         func(f *ledger.Filing) { f.Text = "two" },
		"subject":      func(f *ledger.Filing) { f.Subject = "Another offer" },
		"no subject":   func(f *ledger.Filing) { f.Subject = "" },
		"channel":      func(f *ledger.Filing) { f.Channel = "x@acme.example" },
		"thread":       func(f *ledger.Filing) { f.Thread = "<t@acme.example>" },
		"platform":     func(f *ledger.Filing) { f.Platform = "local" },
		"counterparty": func(f *ledger.Filing) { f.Counterparty = "another" },
	} {
		original := keyed("one")
		original.Counterparty, original.Agent = name, "agent of "+name
		first := d.file(original)
		f := original
		change(&f)
		_, err := d.File(t.Context(), d.clean(f), ledger.Gates{})
		conflict := want[*ledger.IdempotencyConflictError](t, err)
		if conflict.ObligationID != first.ObligationID || conflict.Key != "order 7" || conflict.Agent != f.Agent {
			t.Errorf("%s: %+v", name, conflict)
		}
		_, _, err = d.Repeated(t.Context(), d.clean(f))
		want[*ledger.IdempotencyConflictError](t, err)
		if n := d.count(`SELECT count(*) FROM filings WHERE agent = $1`, f.Agent); n != 1 {
			t.Errorf("%s: %d filings", name, n)
		}
	}
}

func TestAKeyBelongsToItsAgent(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.file(keyed("one"))
	f := keyed("two")
	f.Agent = "another"
	if filed := d.file(f); !filed.Refiled {
		t.Errorf("%+v", filed)
	}
}

func TestNoKeyIsNoRepetition(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	first := d.file(filing("one"))
	if again := d.file(filing("one")); again.Epoch <= first.Epoch || !again.Refiled {
		t.Errorf("%+v", again)
	}
	if _, was, err := d.Repeated(t.Context(), d.clean(filing("one"))); was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
}

func TestOneKeyFiledOnManyConnectionsAtOnceIsOneFiling(t *testing.T) {
	t.Parallel()
	const filers = 6
	d := newDesk(t)
	draft := d.clean(keyed("one"))
	results := make(chan ledger.Filed, filers)
	for range filers {
		l := d.open()
		go func() {
			filed, err := l.File(t.Context(), draft, ledger.Gates{})
			if err != nil {
				t.Error(err)
			}
			results <- filed
		}()
	}
	first, replayed := <-results, 0
	for range filers - 1 {
		filed := <-results
		if filed.Replayed {
			replayed++
		}
		if filed.Replayed = first.Replayed; !reflect.DeepEqual(filed, first) {
			t.Errorf("%+v and %+v", first, filed)
		}
	}
	if first.Replayed {
		replayed++
	}
	if replayed != filers-1 {
		t.Errorf("%d of %d were told that their key had been used", replayed, filers)
	}
	if n := d.count(`SELECT count(*) FROM filings`); n != 1 {
		t.Errorf("%d filings", n)
	}
}

func TestTheSameNonceTwiceIsANoOp(t *testing.T) {
	t.Parallel()
	for _, verdict := range []ledger.Verdict{ledger.Approve, ledger.Reject} {
		t.Run(string(verdict), func(t *testing.T) {
			d := newDesk(t)
			filed := d.file(filing("one"))
			decision := ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: verdict, Operator: d.anna, Reason: "because", Nonce: "click 1"}
			first, err := d.Decide(t.Context(), decision)
			must(t, err)
			rows := d.count(`SELECT (SELECT count(*) FROM obligation_decisions) + (SELECT count(*) FROM audit_log) + (SELECT count(*) FROM followups)`)
			again, err := d.Decide(t.Context(), decision)
			must(t, err)
			if again != first {
				t.Errorf("first %+v, again %+v", first, again)
			}
			if n := d.count(`SELECT (SELECT count(*) FROM obligation_decisions) + (SELECT count(*) FROM audit_log) + (SELECT count(*) FROM followups)`); n != rows {
				t.Errorf("%d rows were written", n-rows)
			}
			for name, change := range map[string]func(x *ledger.Decision){
				"verdict": func(x *ledger.Decision) {
					x.Verdict = map[ledger.Verdict]ledger.Verdict{ledger.Approve: ledger.Reject, ledger.Reject: ledger.Approve}[verdict]
				},
				"operator":   func(x *ledger.Decision) { x.Operator = d.ben },
				"epoch":      func(x *ledger.Decision) { x.Epoch++ },
				"obligation": func(x *ledger.Decision) { x.ObligationID++ },
				"reason":     func(x *ledger.Decision) { x.Reason = "for another reason" },
			} {
				other := decision
				change(&other)
				_, err := d.Decide(t.Context(), other)
				if nonce := want[*ledger.NonceError](t, err); nonce.Nonce != "click 1" {
					t.Errorf("%s: %+v", name, nonce)
				}
			}
		})
	}
}

func TestTheSameRevocationTwiceIsANoOp(t *testing.T) {
	t.Parallel()
	for _, reject := range []bool{false, true} {
		d := newDesk(t)
		v := d.approved("one")
		r := ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "a typo", Reject: reject, Nonce: "click 2"}
		first, err := d.Revoke(t.Context(), r)
		must(t, err)
		again, err := d.Revoke(t.Context(), r)
		must(t, err)
		if again.Status != first.Status || again.Epoch != first.Epoch || again.Operator != first.Operator {
			t.Errorf("first %+v, again %+v", first, again)
		}
		for name, change := range map[string]func(x *ledger.Revocation){
			"operator":   func(x *ledger.Revocation) { x.Operator = d.ben },
			"obligation": func(x *ledger.Revocation) { x.ObligationID++ },
			"reason":     func(x *ledger.Revocation) { x.Reason = "for another reason" },
			"reject":     func(x *ledger.Revocation) { x.Reject = !x.Reject },
		} {
			other := r
			change(&other)
			if _, err := d.Revoke(t.Context(), other); !is[*ledger.NonceError](err) {
				t.Errorf("%s: %v", name, err)
			}
		}
		filed := d.file(filing("two"))
		_, err = d.Decide(t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Approve, Operator: d.anna, Nonce: "click 2"})
		want[*ledger.NonceError](t, err)
	}
}
