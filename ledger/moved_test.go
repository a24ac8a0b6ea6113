package ledger_test

import (
	"os"
	"testing"

	"countersign/ledger"
)

// A worker on a file that was moved away can't see what others do on it.
func TestALedgerThatWasMovedIsNotTakenForTheOneAtItsPath(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	must(t, d.StillThere())
	d.approved("one")
	must(t, d.StillThere()) // its own writes change nothing about it
	must(t, os.Rename(d.path, d.path+".away"))
	if moved := want[*ledger.MovedError](t, d.StillThere()); moved.Path != d.Path() {
		t.Errorf("%+v", moved)
	}
	copied, err := emptyLedger()
	must(t, err)
	must(t, os.WriteFile(d.path, copied, 0o600))
	want[*ledger.MovedError](t, d.StillThere())
	must(t, os.Rename(d.path+".away", d.path))
	must(t, d.StillThere())
}
