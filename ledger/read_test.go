package ledger_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

// What is shown, and under which names.

func containsToken(t *testing.T, value any, token string) bool {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	return strings.Contains(string(text), token)
}

func TestThePanelShowsWhatWaitsTheMostUrgentFirst(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	file := func(counterparty string, priority ledger.Priority, platform, agent string) int64 {
		return d.file(ledger.Filing{Counterparty: counterparty, Platform: platform, Channel: "x", Text: "t", Priority: priority, Agent: agent}).ObligationID
	}
	calm, urgent, next := file("a", "P3", "smtp", "one"), file("b", "P0", "local", "two"), file("c", "P3", "smtp", "two")
	rejected := d.decide(d.file(filing("decided")), ledger.Reject).ObligationID
	approved := d.decide(d.file(filing("approved")), ledger.Approve).ObligationID
	_, err := d.plain().Exec(`INSERT INTO obligations VALUES (6, 'x', 'smtp', 'x', 'they_owe_us', 'drafted', NULL, 1, 1, 1)`)
	must(t, err)
	for name, test := range map[string]struct {
		filter ledger.ListFilter
		want   []int64
	}{
		"all":                               {ledger.ListFilter{}, []int64{urgent, calm, next}},
		"a priority":                        {ledger.ListFilter{Priority: "P3"}, []int64{calm, next}},
		"a platform":                        {ledger.ListFilter{Platform: "local"}, []int64{urgent}},
		"an agent":                          {ledger.ListFilter{Agent: "two"}, []int64{urgent, next}},
		"two at once":                       {ledger.ListFilter{Agent: "two", Platform: "smtp"}, []int64{next}},
		"a counterparty":                    {ledger.ListFilter{Counterparty: "b"}, []int64{urgent}},
		"older than now":                    {ledger.ListFilter{FiledBefore: d.now}, nil},
		"older than soon":                   {ledger.ListFilter{FiledBefore: d.now.Add(time.Second), Priority: "P3"}, []int64{calm, next}},
		"approved":                          {ledger.ListFilter{Status: ledger.StatusApproved}, []int64{approved}},
		"rejected":                          {ledger.ListFilter{Status: ledger.StatusRejected}, []int64{rejected}},
		"sent":                              {ledger.ListFilter{Status: ledger.StatusSent}, nil},
		"drafted, and not only what we owe": {ledger.ListFilter{Status: ledger.StatusDrafted}, []int64{6, urgent, calm, next}},
		"everything":                        {ledger.ListFilter{Status: ledger.AnyStatus}, []int64{6, urgent, rejected, approved, calm, next}},
	} {
		var got []int64
		for _, o := range mustList(d.Waiting(t.Context(), test.filter))(t) {
			got = append(got, o.ObligationID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// The keys are an interface: more may be added, none renamed, and none is left out when it has nothing to say.
func TestTheKeysOfTheContract(t *testing.T) {
	t.Parallel()
	const listed = "obligation_id epoch status counterparty platform channel thread subject priority draft_sha256 envelope_sha256 summary context markers filed_ts auto_send_after votes needed"
	d := newDesk(t)
	filed := d.file(filing("one"))
	has(t, "file", filed, "obligation_id epoch draft_sha256 envelope_sha256 refiled status priority cleaned markers warnings notice")
	has(t, "file notice", filed.Notice, "routed reason")
	has(t, "list", mustList(d.Waiting(t.Context(), ledger.ListFilter{}))(t)[0], listed)
	has(t, "show", d.show(filed.ObligationID), listed+" draft_text filings decisions snapshot claim delivery audit")
	v := d.decide(filed, ledger.Approve)
	has(t, "approve", v, "obligation_id decision_id epoch operator status")
	c := d.claim(v)
	has(t, "claim", d.show(v.ObligationID).Claim, "state outcome detail settled")
	d.begin(c)
	must(t, d.Complete(t.Context(), c, ledger.Receipt{Coordinate: "x", Altered: true}))
	s := d.show(v.ObligationID)
	has(t, "delivery", s.Delivery, "coordinate delivered_ts kind altered")
	if !s.Delivery.Altered || s.Delivery.Kind != "draft_sent" || s.Claim.Outcome != ledger.Confirmed {
		t.Errorf("%+v, %+v", s.Delivery, s.Claim)
	}
	has(t, "inbox", mustList(d.Inbox(t.Context(), "quoter"))(t)[0], "id obligation_id kind body created_ts")
}

func has(t *testing.T, what string, value any, keys string) {
	t.Helper()
	text, err := json.Marshal(value)
	must(t, err)
	var object map[string]any
	must(t, json.Unmarshal(text, &object))
	for _, key := range strings.Fields(keys) {
		if _, ok := object[key]; !ok {
			t.Errorf("%s lacks %s: it has %v", what, key, slices.Sorted(maps.Keys(object)))
		}
	}
	for key, value := range object {
		if value == nil && strings.HasSuffix(key, "s") && key != "status" {
			t.Errorf("%s: %s is null, want an empty list", what, key)
		}
	}
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	v := d.approved("one")
	for name, err := range map[string]error{
		"show":      second(d.Show(t.Context(), 99)),
		"decide":    second(d.Decide(t.Context(), ledger.Decision{ObligationID: 99, Epoch: 1, Verdict: ledger.Approve, Operator: d.anna})),
		"revoke":    second(d.Revoke(t.Context(), ledger.Revocation{ObligationID: 99, Operator: d.anna, Reason: "r"})),
		"steer":     second(d.Steer(t.Context(), d.anna, 99, "n")),
		"withdraw":  second(d.Withdraw(t.Context(), "quoter", 99, 1)),
		"cancel":    second(d.CancelByOperator(t.Context(), d.anna, 99, "r")),
		"reconcile": second(d.Reconcile(t.Context(), d.anna, 99, "c", "e")),
		"settle":    second(d.Settle(t.Context(), d.anna, 99, "e")),
		"close":     second(d.CloseByHand(t.Context(), d.anna, 99, "r")),
	} {
		if missing := want[*ledger.NotFoundError](t, err); missing.ObligationID != 99 {
			t.Errorf("%s: %+v", name, missing)
		}
	}
	_, err := d.Claim(t.Context(), v.DecisionID+1, "w1")
	want[*ledger.NotFoundError](t, err)
}
