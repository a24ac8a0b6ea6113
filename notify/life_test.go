package notify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// quiet makes a pass that must find nothing to post or edit.
func (d *desk) quiet() {
	d.t.Helper()
	calls := d.calls()
	if out := d.pass(); d.calls() != calls || out.Told+len(out.Posted)+len(out.Edited) > 0 {
		d.t.Errorf("nothing is new, and yet %d messages: %+v", d.calls()-calls, out)
	}
}

func TestAFilingPostsOneCard(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing("text"))
	if out := d.pass(); len(out.Posted) != 1 || len(out.Edited) != 0 || out.Told != 1 {
		t.Errorf("%+v", out)
	}
	card := d.card(filed.ObligationID)
	if want := fmt.Sprintf("Draft filed for approval (P2, sha %.8s). Waiting on operator.", filed.DraftSHA256); card.Text != want {
		t.Errorf("the fallback is %q", card.Text)
	}
	ref, err := notify.ParseRef(fakeslack.Buttons(card)[0].Value)
	must(t, err)
	if ref != (notify.Ref{ID: filed.ObligationID, Epoch: filed.Epoch, SHA: filed.DraftSHA256[:8]}) {
		t.Errorf("the button carries %+v", ref)
	}
	if len(card.Edits) == 0 || len(fakeslack.Buttons(fakeslack.Message{Version: card.Edits[0]})) > 0 {
		t.Errorf("the first version of the card had buttons already")
	}
	d.quiet()
}

func TestQuickRefilesAreOneEdit(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing("pay 900 now"))
	d.pass()
	calls := d.calls()
	for _, text := range []string{"pay 910 now", "pay 920 now", "pay 930 now"} {
		filed = d.file(filing(text))
	}
	if out := d.pass(); len(out.Edited) != 1 || d.calls() != calls+1 {
		t.Errorf("%+v with %d calls", out, d.calls()-calls)
	}
	card := d.card(filed.ObligationID)
	for _, part := range []string{"920", "930"} { // what changed since the filing before
		if !strings.Contains(words(card), part) {
			t.Errorf("no %q in\n%s", part, words(card))
		}
	}
	d.checkSound(filed.ObligationID)
	d.quiet()
}

func TestAnIdenticalRefileIsANewEpochOnTheSameCard(t *testing.T) {
	d := newDesk(t)
	first := d.file(filing("text"))
	d.pass()
	old := d.card(first.ObligationID)
	second := d.file(filing("text"))
	d.pass()
	card := d.card(first.ObligationID)
	ref, err := notify.ParseRef(fakeslack.Buttons(card)[0].Value)
	must(t, err)
	if card.TS != old.TS || ref.Epoch != second.Epoch || second.Epoch == first.Epoch {
		t.Errorf("card %s then %s, epoch %d, the button's %d", old.TS, card.TS, second.Epoch, ref.Epoch)
	}
	d.checkSound(first.ObligationID)
}

// A re-file of another text of a long draft leaves no part of the old one to be taken for it.
func TestALongRefilePostsItsOwnParts(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing(strings.Repeat("old long text\n", 1_200)))
	d.pass()
	old := d.subject(filed.ObligationID).View.Parts
	d.file(filing(strings.Repeat("new long text\n", 1_200)))
	d.pass()
	for i, p := range d.subject(filed.ObligationID).View.Parts {
		if p.TS == old[i].TS || strings.Contains(words(d.message(p.TS)), "old long text") {
			t.Errorf("part %d is the old one", i)
		}
	}
	d.checkSound(filed.ObligationID)
}

// Each thing that can happen to a draft edits its card, and is told once in its thread.
func TestEachEventEditsTheCardAndRepliesInItsThread(t *testing.T) {
	for _, test := range []struct {
		name    string
		happens func(d *desk, filed ledger.Filed)
		buttons string
		card    string
		reply   string
	}{
		{"approved", func(d *desk, f ledger.Filed) { d.decide(f, ledger.Approve) }, "undo", "Approved by anna", "Approved by anna"},
		{"rejected", func(d *desk, f ledger.Filed) { d.decide(f, ledger.Reject) }, "", "Rejected by anna", "Rejected by anna: because"},
		{"steered", func(d *desk, f ledger.Filed) { d.ok2(d.Steer(d.t.Context(), d.anna, f.ObligationID, "be brief")) },
			"approve request_changes reject", "be brief", "anna asks for changes: be brief"},
		{"revoked", func(d *desk, f ledger.Filed) {
			d.decide(f, ledger.Approve)
			d.pass()
			d.ok2(d.Revoke(d.t.Context(), ledger.Revocation{ObligationID: f.ObligationID, Operator: d.anna, Reason: "wait"}))
		}, "approve request_changes reject", "revoked by anna", "The approval was revoked by anna: wait"},
		{"withdrawn", func(d *desk, f ledger.Filed) { d.ok2(d.Withdraw(d.t.Context(), "quoter", f.ObligationID, f.Epoch)) },
			"", "closed", "Withdrawn by agent quoter."},
		{"closed", func(d *desk, f ledger.Filed) {
			d.ok2(d.CloseByHand(d.t.Context(), d.anna, f.ObligationID, "phoned them"))
		},
			"", "closed", "phoned them"},
		{"sent", func(d *desk, f ledger.Filed) { d.complete(d.dispatch(f), false) }, "", "Delivered at", "Delivered (" + abroad + "/1.2)."},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			filed := d.file(filing("text"))
			d.pass()
			card := d.card(filed.ObligationID)
			test.happens(d, filed)
			before := len(d.thread(card))
			d.pass()
			card = d.card(filed.ObligationID)
			if actions(card) != test.buttons || !strings.Contains(words(card), test.card) {
				t.Errorf("the card has %q:\n%s", actions(card), words(card))
			}
			replies := d.thread(card)[before:]
			if !strings.Contains(strings.Join(replies, "\n"), test.reply) {
				t.Errorf("the thread: %q", replies)
			}
			d.checkSound(filed.ObligationID)
			d.quiet()
		})
	}
}

func (d *desk) ok2(_ ledger.Decided, err error) {
	d.t.Helper()
	must(d.t, err)
}

// dispatch approves a draft and begins its dispatch.
func (d *desk) dispatch(f ledger.Filed) ledger.Claim {
	d.t.Helper()
	c, err := d.Claim(d.t.Context(), d.decide(f, ledger.Approve).DecisionID, "w1")
	must(d.t, err)
	_, err = d.BeginDispatch(d.t.Context(), c)
	must(d.t, err)
	return c
}

// Undo goes as soon as the dispatch begins, without a word in the thread.
func TestABegunDispatchTakesUndoAway(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing("text"))
	decided := d.decide(filed, ledger.Approve)
	d.pass()
	if got := actions(d.card(filed.ObligationID)); got != "undo" {
		t.Fatalf("the card has %q", got)
	}
	c, err := d.Claim(t.Context(), decided.DecisionID, "w1")
	must(t, err)
	_, err = d.BeginDispatch(t.Context(), c)
	must(t, err)
	replies := len(d.thread(d.card(filed.ObligationID)))
	d.pass()
	card := d.card(filed.ObligationID)
	if actions(card) != "" || !strings.Contains(words(card), "is being sent") || len(d.thread(card)) != replies {
		t.Errorf("buttons %q, %d replies:\n%s", actions(card), len(d.thread(card))-replies, words(card))
	}
}

func TestAReceiptCarriesItsFooter(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing("text"))
	c := d.dispatch(filed)
	d.complete(c, false)
	d.pass()
	footer := fmt.Sprintf("approved by anna · receipt %d · draft sha256 %.16s", c.DecisionID, filed.DraftSHA256)
	card := d.card(filed.ObligationID)
	if !strings.Contains(words(card), footer) {
		t.Errorf("no footer on the card:\n%s", words(card))
	}
	if thread := strings.Join(d.thread(card), "\n"); strings.Count(thread, footer) != 1 {
		t.Errorf("no footer in the thread: %q", thread)
	}
}

func TestAnAlteredSendIsToldInTheChannelToo(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing("text"))
	d.complete(d.dispatch(filed), true)
	d.pass()
	card := d.card(filed.ObligationID)
	if !strings.Contains(words(card), "another text than the approved one") {
		t.Errorf("the card:\n%s", words(card))
	}
	broadcast := 0
	for _, m := range d.slack.Messages(room) {
		if m.ThreadTS == card.TS && m.Params["reply_broadcast"] == "true" {
			broadcast++
		}
	}
	if broadcast != 1 {
		t.Errorf("%d replies were told in the channel", broadcast)
	}
}

// The proof that a rejection was told is a receipt in the ledger, with the place where.
func TestATelledRejectionIsAReceipt(t *testing.T) {
	d := newDesk(t)
	filed := d.file(filing("text"))
	d.decide(filed, ledger.Reject)
	if s := d.subject(filed.ObligationID); s.Delivery != nil {
		t.Fatalf("a receipt before anybody was told: %+v", s.Delivery)
	}
	d.pass()
	s := d.subject(filed.ObligationID)
	if s.Delivery == nil || s.Delivery.Kind != "reject_notice" || !strings.HasPrefix(s.Delivery.Coordinate, room+"/") {
		t.Fatalf("the receipt: %+v", s.Delivery)
	}
	if m := d.message(strings.TrimPrefix(s.Delivery.Coordinate, room+"/")); m.ThreadTS != s.Card.TS {
		t.Errorf("told at %+v", m)
	}
	if card := words(d.card(filed.ObligationID)); strings.Contains(card, "Delivered at") {
		t.Errorf("the card calls it a delivery:\n%s", card)
	}
}

func TestTheUnknownCard(t *testing.T) {
	for _, test := range []struct {
		name  string
		ended func(d *desk, id int64)
		says  string
	}{
		{"arrived", func(d *desk, id int64) { d.ok2(d.Reconcile(d.t.Context(), d.anna, id, abroad+"/9.9", "saw it")) }, "approved by anna · receipt"},
		{"settled", func(d *desk, id int64) { d.ok2(d.Settle(d.t.Context(), d.anna, id, "not there")) }, "ettled"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			c := d.begun(filing("text"))
			d.unknown(c)
			d.pass()
			card := d.unknownCard(c.ObligationID)
			if actions(card) != "arrived not_arrived" {
				t.Errorf("the card has %q", actions(card))
			}
			for _, part := range []string{"post", "reset", "the line <broke> & fell", "ambiguous"} {
				if !strings.Contains(words(card), part) {
					t.Errorf("no %q in\n%s", part, words(card))
				}
			}
			d.quiet()
			test.ended(d, c.ObligationID)
			d.pass()
			if after := d.unknownCard(c.ObligationID); after.TS != card.TS || actions(after) != "" || !strings.Contains(words(after), test.says) {
				t.Errorf("it ended as %q:\n%s", actions(after), words(after))
			}
			d.checkSound(c.ObligationID)
			d.quiet()
		})
	}
}

func (d *desk) unknownCard(id int64) fakeslack.Message {
	d.t.Helper()
	s := d.subject(id)
	if s.UnknownCard == nil {
		d.t.Fatalf("no unknown card")
	}
	return d.message(s.UnknownCard.TS)
}

// A mended text after a rejection shows what changed since, and what was said.
func TestARefileAfterARejectionShowsWhatChanged(t *testing.T) {
	d := newDesk(t)
	d.decide(d.file(filing("pay 900 now")), ledger.Reject)
	filed := d.file(filing("pay 950 now"))
	d.pass()
	for _, part := range []string{"because", "rejected", "900", "950"} {
		if !strings.Contains(words(d.card(filed.ObligationID)), part) {
			t.Errorf("no %q in\n%s", part, words(d.card(filed.ObligationID)))
		}
	}
}

// The reminder is one message, edited as it changes, posted anew after a day, even unchanged, and ends.
func TestTheReminderIsOneMessage(t *testing.T) {
	d := newDesk(t, func(o *notify.Options) {
		o.Remind = map[ledger.Priority]time.Duration{ledger.DefaultPriority: time.Hour}
	})
	first := d.file(filing("one"))
	d.pass()
	if _, ok := d.digest(); ok {
		t.Fatal("reminded too early")
	}
	d.tick(2 * time.Hour)
	d.pass()
	reminder, ok := d.digest()
	if !ok || !strings.Contains(words(reminder), fmt.Sprintf("#%d", first.ObligationID)) {
		t.Fatalf("the reminder: %v\n%s", ok, words(reminder))
	}
	d.quiet()
	other := filing("two")
	other.Counterparty = "globex"
	second := d.file(other)
	d.pass()
	d.tick(2 * time.Hour)
	d.pass()
	edited, _ := d.digest()
	if edited.TS != reminder.TS || !strings.Contains(words(edited), fmt.Sprintf("#%d", second.ObligationID)) {
		t.Errorf("not edited: %s", words(edited))
	}
	d.tick(25 * time.Hour)
	d.pass()
	anew, _ := d.digest()
	if anew.TS == reminder.TS || words(anew) == "" || words(d.message(reminder.TS)) != "This reminder goes on in a newer message below." {
		t.Errorf("not posted anew: %q, the old one says %q", anew.TS, words(d.message(reminder.TS)))
	}
	d.quiet()
	d.decide(first, ledger.Approve)
	d.decide(second, ledger.Approve)
	d.pass()
	if last, _ := d.digest(); last.TS != anew.TS || words(last) != "Nothing waits too long for a decision." {
		t.Errorf("it ends with %q", words(last))
	}
	d.quiet()
}

func (d *desk) digest() (fakeslack.Message, bool) {
	d.t.Helper()
	g, err := d.DigestIn(d.t.Context(), room)
	must(d.t, err)
	return d.slack.Message(room, g.TS)
}
