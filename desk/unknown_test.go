package desk_test

import (
	"slices"
	"strings"
	"testing"

	"countersign/desk"
	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// unknown brings a text as far as a delivery of which nobody knows whether it arrived, and waits for its card.
func (s *stage) unknown(text string) (ledger.Filed, fakeslack.Message) {
	s.t.Helper()
	filed := s.file(filing(text))
	claim := s.begin(s.approve(filed))
	s.must(s.term.Ledger.MarkUnknown(s.t.Context(), claim, ledger.Failure{Outcome: ledger.Ambiguous, Stage: "write", Detail: "cut off"}))
	s.serve(desk.ServeOptions{})
	var m fakeslack.Message
	s.until("the unknown card", func() bool {
		about := s.subject(filed.ObligationID)
		if about.UnknownCard != nil {
			m, _ = s.slack.Message(internalChannel, about.UnknownCard.TS)
		}
		return hasButton(m, notify.ActionArrived, filed.Epoch)
	})
	return filed, m
}

func TestItArrived(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed, m := s.unknown("120 pumps.")
	s.click(m, notify.ActionArrived, anna)
	s.submit(s.modal(1), map[string]string{"coordinate": "line 7", "words": "it is in the file"}, anna)
	s.status(filed.ObligationID, ledger.StatusSent)
	shown := s.show(filed.ObligationID)
	if shown.Delivery == nil || shown.Delivery.Coordinate != "line 7" || shown.Claim.State != ledger.ClaimDelivered {
		t.Errorf("%+v", shown)
	}
	contains(t, strings.Join(s.inbox("sent"), "\n"), "line 7")
	s.until("the card loses its buttons", func() bool {
		now, _ := s.slack.Message(internalChannel, m.TS)
		return len(fakeslack.Buttons(now)) == 0 && strings.Contains(strings.Join(fakeslack.DecodedTexts(now), "\n"), "It arrived")
	})
	// Who ended the delivery is named, and not who had approved it.
	s.click(m, notify.ActionNotArrived, bert)
	s.submit(s.modal(2), map[string]string{"words": "I saw nothing"}, bert)
	contains(t, s.said(bert, 1), "Already decided by anna at 20", "(sent)")
}

func TestDidNotArriveFilesTheSameTextAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed, m := s.unknown("120 pumps.")
	s.click(m, notify.ActionNotArrived, bert)
	submitted := s.submit(s.modal(1), map[string]string{"words": "the file ends before it"}, bert)
	s.until("it is filed again", func() bool { return s.again(filed) != 0 })
	again := s.show(s.again(filed))
	if again.Status != ledger.StatusDrafted || again.DraftText != "120 pumps." || again.DraftSHA256 != filed.DraftSHA256 || len(again.Decisions) != 0 ||
		again.Filings[0].Agent != "quoter" {
		t.Errorf("%+v", again)
	}
	if !slices.ContainsFunc(again.Markers, func(m string) bool { return strings.Contains(m, ledger.MarkUnresolved) }) {
		t.Errorf("markers: %q", again.Markers)
	}
	if old := s.show(filed.ObligationID); old.Status != ledger.StatusApproved || !old.Claim.Settled {
		t.Errorf("%+v", old)
	}
	if _, err := s.slack.Redeliver(s.ctx(), submitted); err != nil {
		t.Fatal(err)
	}
	contains(t, s.said(bert, 1), "Already decided by bert at 20")
	if n := s.count(`SELECT count(*) FROM filings WHERE text_sha256 = $1`, filed.DraftSHA256); n != 2 {
		t.Errorf("the text was filed %d times", n)
	}
	s.click(s.card(again.ObligationID, notify.ActionApprove), notify.ActionApprove, anna)
	contains(t, strings.Join(fakeslack.DecodedViewTexts(s.modal(2)), "\n"), ledger.MarkUnresolved)
	if _, err := s.term.Deliver(t.Context(), deliverOnce); err != nil {
		t.Fatal(err)
	}
	if n := s.count(`SELECT count(*) FROM obligation_deliveries WHERE obligation_id IN ($1, $2)`, filed.ObligationID, again.ObligationID); n != 0 {
		t.Errorf("something was sent without a fresh approval: %d receipts", n)
	}
}

// again is the obligation with the same text that was filed later; 0 where there is none.
func (s *stage) again(f ledger.Filed) int64 {
	s.t.Helper()
	return int64(s.count(`SELECT coalesce(max(obligation_id), 0) FROM filings WHERE text_sha256 = $1 AND obligation_id > $2`, f.DraftSHA256, f.ObligationID))
}

// An operator was told that nothing was decided, though the delivery was settled.
func TestWhatIsSettledAndNotFiledAgainIsSaid(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed, m := s.unknown("120 pumps.")
	s.must(s.stop())
	s.more = "\n[agents]\nmax_hourly = 1\n"
	s.write(operators)
	s.serve(desk.ServeOptions{})
	s.click(m, notify.ActionNotArrived, anna)
	s.submit(s.modal(1), map[string]string{"words": "it is not there"}, anna)
	contains(t, s.said(anna, 1), "It is settled", "could not be filed again")
	if old := s.show(filed.ObligationID); !old.Claim.Settled || s.again(filed) != 0 {
		t.Errorf("%+v", old)
	}
}
