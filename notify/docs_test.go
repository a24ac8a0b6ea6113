package notify_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

var update = flag.Bool("update", false, "write docs/cards.html")

// docs/cards.html shows the card in each state, as it is really posted. `go test ./notify -run Picture -update` writes it.
func TestThePictureOfTheCards(t *testing.T) {
	d := newDesk(t, func(o *notify.Options) {
		o.Remind = map[ledger.Priority]time.Duration{"P0": time.Hour}
		o.Describe = func(context.Context, string, string) (notify.Destination, error) {
			return notify.Destination{Name: "#acme-orders", External: true, Known: true}, nil
		}
	})
	d.scenes()
	// Ids of blocks are Slack's, and timestamps come from its counter: the page is the same at each run.
	got := fakeslack.Render("Countersign: the card in each state", d.slack.Messages(room))
	path := filepath.Join("..", "docs", "cards.html")
	if *update {
		must(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what is posted; run the test with -update, and look at it", path)
	}
}

// party is a filing for one counterparty of the picture.
func party(name, text string) ledger.Filing {
	f := filing(text)
	f.Counterparty, f.Agent, f.Context = name, "quoter", "They asked for an offer by Friday."
	return f
}

// scenes brings an obligation into each state, with a pass after each step, as it would be told.
func (d *desk) scenes() {
	d.t.Helper()
	step := func(change func()) { change(); d.tick(time.Minute); d.pass() }
	step(func() { d.file(party("Short", "Dear Anna,\n\nthe rent is 900 EUR & due on Friday.\n\nBob")) })
	d.sceneMarked(step)
	step(func() {
		d.file(party("Long", strings.Repeat("A paragraph of a long contract, which nobody may cut.\n", 300)+"And pay 900."))
	})
	step(func() { d.decide(d.file(party("Approved", "We accept offer 8.")), ledger.Approve) })
	step(func() { d.dispatch(d.file(party("Being sent", "We accept offer 10."))) })
	step(func() { d.complete(d.dispatch(d.file(party("Sent", "We accept offer 4."))), false) })
	step(func() { d.decide(d.file(party("Rejected", "We refuse.")), ledger.Reject) })
	step(func() { d.unknown(d.begun(party("Unknown", "We accept offer 7."))) })
	step(func() {
		f := d.file(party("Withdrawn", "Never mind."))
		d.ok2(d.Withdraw(d.t.Context(), "quoter", f.ObligationID, f.Epoch))
	})
	d.slack.Script("chat.update", altered())
	step(func() { d.file(party("Not shown whole", "What Slack does not take.")) })
	step(func() {
		f := party("Waiting", "Answer me.")
		f.Priority = "P0"
		d.file(f)
	})
	step(func() { d.tick(2 * time.Hour) })
}

// sceneMarked is a draft with marks, of which a filing before was steered.
func (d *desk) sceneMarked(step func(func())) {
	d.t.Helper()
	var f ledger.Filed
	step(func() { f = d.file(party("Marked", "Please pay 900 EUR to our account.")) })
	step(func() { d.ok2(d.Steer(d.t.Context(), d.anna, f.ObligationID, "say which account")) })
	step(func() {
		d.file(party("Marked", "Please pay 9\u200b50 EUR to our account 7 at https://example.com/?a=1&b=2."))
	})
}
