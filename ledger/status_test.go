package ledger_test

import (
	"errors"
	"reflect"
	"testing"

	"countersign/ledger"
)

// Waiting used to read an obligation whole each time, with every text and audit row that it ever had.
func TestStatusTellsWhatShowTellsOfTheStanding(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filed := d.file(filing("one"))
	check := func(when string) ledger.Standing {
		t.Helper()
		got, err := d.Status(t.Context(), filed.ObligationID)
		must(t, err)
		s := d.show(filed.ObligationID)
		want := ledger.Standing{ObligationID: s.ObligationID, Status: s.Status, Epoch: s.Epoch, Claim: s.Claim, Delivery: s.Delivery}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
		return got
	}
	check("drafted")
	v := d.decide(filed, ledger.Approve)
	check("approved")
	c := d.claim(v)
	if got := check("claimed"); got.Claim == nil || got.Claim.State != ledger.ClaimClaimed {
		t.Errorf("claimed: %+v", got.Claim)
	}
	d.begin(c)
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	if got := check("sent"); got.Delivery == nil || got.Delivery.Coordinate != "x" || got.Status != ledger.StatusSent {
		t.Errorf("sent: %+v", got)
	}
	var missing *ledger.NotFoundError
	if _, err := d.Status(t.Context(), 99); !errors.As(err, &missing) {
		t.Errorf("no such obligation: %v", err)
	}
}
