package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

const internalChannel = "C0INTERNAL"

// surfaced is a desk whose notices go to an internal channel.
func surfaced(t testing.TB, change ...func(*ledger.Options)) *desk {
	t.Helper()
	return newDesk(t, append(change, func(o *ledger.Options) {
		o.Route = func() ledger.Notice { return ledger.Notice{Routed: ledger.RoutedInternal, Reason: "test"} }
	})...)
}

func (d *desk) subject(id int64) ledger.Subject {
	d.t.Helper()
	s, err := d.Subject(d.t.Context(), id, internalChannel)
	must(d.t, err)
	return s
}

func (d *desk) outbox() []int64 {
	d.t.Helper()
	ids, err := d.Outbox(d.t.Context(), internalChannel, 100)
	must(d.t, err)
	return ids
}

// card posts a card that shows the obligation's text in these parts, or whole.
func (d *desk) card(id int64, ts string, parts ...string) (ledger.Card, ledger.ViewShown) {
	d.t.Helper()
	s := d.subject(id)
	c, err := d.RecordCard(d.t.Context(), ledger.Card{ObligationID: id, Kind: ledger.CardDraft, Team: "T1", CardRef: ledger.CardRef{Channel: internalChannel, TS: ts}})
	must(d.t, err)
	return c, d.view(c, s, parts...)
}

func (d *desk) view(c ledger.Card, s ledger.Subject, parts ...string) ledger.ViewShown {
	d.t.Helper()
	v := ledger.View{CardID: c.ID, Epoch: s.Epoch, EnvelopeSHA256: s.EnvelopeSHA256, ContentSHA256: "x"}
	if parts == nil {
		parts = []string{s.DraftText}
	}
	for _, p := range parts {
		v.Parts = append(v.Parts, ledger.Part{TS: c.TS, Text: p})
	}
	shown, err := d.RecordView(d.t.Context(), v)
	must(d.t, err)
	return shown
}

// toldAll takes everything of the obligation out of the outbox.
func (d *desk) toldAll(id int64) {
	d.t.Helper()
	s := d.subject(id)
	for _, n := range s.Notices {
		must(d.t, d.NoticesTold(d.t.Context(), id, []int64{n.ID}, internalChannel+"/9.9"))
	}
	must(d.t, d.Told(d.t.Context(), id, s.Mark))
}

func TestAnApprovalFromACardNeedsACompleteViewOfItsEpoch(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	filed := d.file(filing("first\nsecond"))
	approve := func(epoch int64, ts string) error {
		_, err := d.Decide(t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: epoch, Verdict: ledger.Approve, Operator: d.anna,
			Card: &ledger.CardRef{Channel: internalChannel, TS: ts}})
		return err
	}
	want[*ledger.UnshownError](t, approve(filed.Epoch, "1.1")) // nobody recorded such a card
	c, v := d.card(filed.ObligationID, "1.1", "first\n")
	if v.Complete {
		t.Fatal("half of the text counts as the whole")
	}
	want[*ledger.UnshownError](t, approve(filed.Epoch, "1.1"))
	for _, parts := range [][]string{{"second", "first\n"}, {"first\nsecond", "x"}, {}} {
		if v := d.view(c, d.subject(filed.ObligationID), parts...); v.Complete {
			t.Errorf("%q counts as the whole text", parts)
		}
	}
	d.view(c, d.subject(filed.ObligationID), "first\n", "second")
	again := d.file(filing("third"))
	want[*ledger.UnshownError](t, approve(again.Epoch, "1.1")) // the view is of the text before
	want[*ledger.StaleEpochError](t, approve(filed.Epoch, "1.1"))
	if n := d.count(`SELECT count(*) FROM obligation_approval_snapshots`); n != 0 {
		t.Fatalf("%d snapshots", n)
	}
	if v := d.view(c, d.subject(filed.ObligationID)); !v.Complete {
		t.Fatal("the whole text does not count")
	}
	other := d.file(ledger.Filing{Counterparty: "globex", Platform: "smtp", Channel: "x@globex.example", Text: "third", Agent: "quoter"})
	_, err := d.Decide(t.Context(), ledger.Decision{ObligationID: other.ObligationID, Epoch: other.Epoch, Verdict: ledger.Approve, Operator: d.anna,
		Card: &ledger.CardRef{Channel: internalChannel, TS: "1.1"}})
	want[*ledger.UnshownError](t, err) // another obligation's card
	must(t, approve(again.Epoch, "1.1"))
	if n := d.count(`SELECT count(*) FROM decision_views`); n != 1 {
		t.Errorf("%d decisions name their view", n)
	}
}

func TestARejectionFromAnyCardStands(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	filed := d.file(filing("text"))
	_, err := d.Decide(t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch, Verdict: ledger.Reject, Reason: "no", Operator: d.anna,
		Card: &ledger.CardRef{Channel: internalChannel, TS: "never recorded"}})
	must(t, err)
}

func TestAViewNeedsAFilingOfItsCard(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	c, _ := d.card(d.file(filing("text")).ObligationID, "1.1")
	_, err := d.RecordView(t.Context(), ledger.View{CardID: c.ID, Epoch: 1, EnvelopeSHA256: strings.Repeat("a", 64)})
	want[*ledger.InputError](t, err)
	_, err = d.CardAt(t.Context(), ledger.CardRef{Channel: internalChannel, TS: "2.2"})
	want[*ledger.UnshownError](t, err)
}

func TestWhatHappensStaysInTheOutboxUntilItIsTold(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	filed := d.file(filing("text"))
	id := filed.ObligationID
	before := d.subject(id)
	d.card(id, "1.1")
	d.decide(filed, ledger.Approve)
	must(t, d.NoticesTold(t.Context(), id, []int64{before.Notices[0].ID}, "x"))
	must(t, d.Told(t.Context(), id, before.Mark)) // something happened since that mark was read
	if got := d.outbox(); !slices.Equal(got, []int64{id}) {
		t.Fatalf("outbox %v", got)
	}
	s := d.subject(id)
	must(t, d.Told(t.Context(), id, s.Mark)) // a notice is left
	if got := d.outbox(); !slices.Equal(got, []int64{id}) {
		t.Fatalf("a notice was lost: outbox %v", got)
	}
	d.toldAll(id)
	d.toldAll(id) // at least once: the first record stands
	if got := d.outbox(); len(got) != 0 {
		t.Errorf("outbox %v", got)
	}
	if n := d.count(`SELECT count(*) FROM audit_log WHERE event = 'told'`); n != 2 {
		t.Errorf("%d notices are told by the audit log", n)
	}
	must(t, d.Outdated(t.Context(), id))
	if got := d.outbox(); !slices.Equal(got, []int64{id}) {
		t.Errorf("an old card was met, and the outbox is %v", got)
	}
}

func TestTheOutboxIsOnlyForAnInternalDestination(t *testing.T) {
	t.Parallel()
	d := newDesk(t) // notices are retained
	id := d.file(filing("text")).ObligationID
	if n := d.count(`SELECT count(*) FROM outbox`); n != 0 {
		t.Errorf("%d rows", n)
	}
	if got := d.outbox(); !slices.Equal(got, []int64{id}) { // one is configured later: what waits gets its card
		t.Errorf("outbox %v", got)
	}
}

func TestToldRejectionsHaveAReceipt(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	v := d.decide(d.file(filing("text")), ledger.Reject)
	d.toldAll(v.ObligationID)
	if n := d.count(`SELECT count(*) FROM obligation_deliveries WHERE kind = 'reject_notice' AND decision_id = $1`, v.DecisionID); n != 1 {
		t.Errorf("%d receipts", n)
	}
}

func TestAnUnknownDeliveryIsDueUntilItHasItsCard(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	v := d.unknown("text")
	d.card(v.ObligationID, "1.1")
	d.toldAll(v.ObligationID)
	if got := d.outbox(); !slices.Equal(got, []int64{v.ObligationID}) {
		t.Errorf("outbox %v", got)
	}
	_, err := d.RecordCard(t.Context(), ledger.Card{ObligationID: v.ObligationID, DecisionID: v.DecisionID, Kind: ledger.CardUnknown, Team: "T1",
		CardRef: ledger.CardRef{Channel: internalChannel, TS: "1.2"}})
	must(t, err)
	if got := d.outbox(); len(got) != 0 {
		t.Errorf("outbox %v", got)
	}
}

func TestTheSubjectTellsWhatAnOperatorSawBefore(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	first := d.file(filing("first"))
	if s := d.subject(first.ObligationID); s.Previous != nil || s.Remark != nil {
		t.Errorf("a first filing has a past: %+v %+v", s.Previous, s.Remark)
	}
	_, err := d.SteerOnce(t.Context(), d.anna, first.ObligationID, "shorter", "n1")
	must(t, err)
	_, err = d.SteerOnce(t.Context(), d.anna, first.ObligationID, "shorter", "n1") // delivered twice
	must(t, err)
	if inbox, err := d.Inbox(t.Context(), "quoter"); err != nil || len(inbox) != 1 {
		t.Errorf("the agent was told %d times, %v", len(inbox), err)
	}
	d.file(filing("second"))
	s := d.subject(first.ObligationID)
	if s.Previous == nil || s.Previous.Text != "first" || s.Previous.Rejected || s.Remark == nil || s.Remark.Note != "shorter" || s.Remark.By != "anna" {
		t.Errorf("%+v %+v", s.Previous, s.Remark)
	}
	d.decide(ledger.Filed{ObligationID: s.ObligationID, Epoch: s.Epoch}, ledger.Reject)
	s = d.subject(d.file(filing("third")).ObligationID)
	if s.Previous == nil || s.Previous.Text != "second" || !s.Previous.Rejected || s.Remark == nil || s.Remark.Note != "because" {
		t.Errorf("%+v %+v", s.Previous, s.Remark)
	}
}

func TestRemovingAnOperatorVoidsWhatNobodyDispatched(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	party := func(name string) ledger.Filed {
		f := filing("text")
		f.Counterparty = name
		return d.file(f)
	}
	waiting, claimed, begun := d.decide(party("a"), ledger.Approve), d.decide(party("b"), ledger.Approve), d.decide(party("c"), ledger.Approve)
	c := d.claim(claimed)
	d.begin(d.claim(begun))
	voided, err := d.VoidApprovalsOf(t.Context(), "anna", "left the company")
	must(t, err)
	if len(voided) != 2 || voided[0].ObligationID != waiting.ObligationID || voided[1].ObligationID != claimed.ObligationID {
		t.Fatalf("%+v", voided)
	}
	_, err = d.BeginDispatch(t.Context(), c)
	want[*ledger.LostClaimError](t, err)
	if s := d.show(begun.ObligationID); s.Status != ledger.StatusApproved || s.Claim.State != ledger.ClaimDispatching {
		t.Errorf("what was on its way is %s", s.Status)
	}
	if s := d.show(waiting.ObligationID); s.Status != ledger.StatusDrafted {
		t.Errorf("it is %s", s.Status)
	}
}

func TestAnAgentThatRunsWildIsStopped(t *testing.T) {
	t.Parallel()
	d := newDesk(t, func(o *ledger.Options) { o.Agents = ledger.AgentLimits{Waiting: 2, Hourly: 4} })
	try := func(agent, party string) error {
		f := filing("text of " + party)
		f.Agent, f.Counterparty = agent, party
		_, err := d.File(t.Context(), d.clean(f), ledger.Gates{})
		return err
	}
	must(t, try("quoter", "a"))
	must(t, try("quoter", "b"))
	if e := want[*ledger.AgentLimitError](t, try("quoter", "c")); e.Limit != 2 || e.Have != 2 || e.What != "waiting drafts" {
		t.Errorf("%+v", e)
	}
	must(t, try("other", "c"))  // another agent's limit is its own
	must(t, try("quoter", "b")) // a re-filing adds nothing to what waits
	must(t, try("quoter", "a"))
	if e := want[*ledger.AgentLimitError](t, try("quoter", "a")); e.Limit != 4 || e.What != "filings within an hour" {
		t.Errorf("%+v", e)
	}
	d.tick(time.Hour + time.Second)
	must(t, try("quoter", "a"))
}

func TestWhatWasFiledCanBeFiledAgainAsItWas(t *testing.T) {
	t.Parallel()
	d := surfaced(t)
	f := ledger.Filing{Counterparty: "acme", Platform: "smtp", Channel: "buyer@acme.example", Thread: "<1@acme.example>", User: "u1", Subject: "Offer",
		Text: "text", Priority: "P1", Summary: "an offer", Context: "they asked\nfor it", Agent: "quoter"}
	filed := d.file(f)
	got, err := d.FilingOf(t.Context(), filed.ObligationID)
	must(t, err)
	if got != f {
		t.Errorf("got  %+v\nwant %+v", got, f)
	}
	_, err = d.FilingOf(t.Context(), 99)
	want[*ledger.NotFoundError](t, err)
}
