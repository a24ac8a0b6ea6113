package sweep

import (
	"errors"
	"os"
	"testing"

	"countersign/ledger"
)

// A pass used to go on with the next messages on a ledger that was renamed under it, while another pass sent them from the new name.
func TestAMovedLedgerSendsNothingMore(t *testing.T) {
	for _, at := range []Step{AfterPrepare, AfterClaim, AfterBegin} {
		t.Run(string(at), func(t *testing.T) {
			b := newBench(t)
			v, next := b.approve("c1", "one"), b.approve("c1", "two")
			step := func(s Step, _ Item) {
				if s == at {
					if err := os.Rename(b.path, b.path+".moved"); err != nil {
						t.Error(err)
					}
				}
			}
			_, err := b.Deliver(t.Context(), Options{Step: step})
			var moved *ledger.MovedError
			if !errors.As(err, &moved) && at != AfterBegin {
				t.Errorf("the pass ended with %v", err)
			}
			b.expectWire()
			if at == AfterBegin {
				b.expect(v, "approved", "unknown")
			}
			b.expect(next, "approved", "")
		})
	}
}
