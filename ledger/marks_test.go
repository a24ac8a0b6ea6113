package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/ledger"
)

// The system's stamps on a draft, and that nobody else can put them there.

// marked returns the markers of the kind.
func marked(filed ledger.Filed, kind string) []string {
	var out []string
	for _, m := range filed.Markers {
		if strings.HasPrefix(m, "["+kind) {
			out = append(out, m)
		}
	}
	return out
}

func TestAFirstDestinationIsMarkedUntilItWasApproved(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, text := range []string{"one", "two"} { // to file twice takes no mark off
		filed := d.file(filing(text))
		if len(marked(filed, "NEW DESTINATION")) != 1 {
			t.Errorf("%q: %q", text, filed.Markers)
		}
	}
	rejected := d.decide(d.file(filing("three")), ledger.Reject)
	filed := d.file(filing("four"))
	if filed.ObligationID == rejected.ObligationID || len(marked(filed, "NEW DESTINATION")) != 1 {
		t.Errorf("after a rejection: %q", filed.Markers)
	}
	d.decide(filed, ledger.Approve)
	if filed = d.file(filing("five")); len(marked(filed, "NEW DESTINATION")) != 0 {
		t.Errorf("after an approval: %q", filed.Markers)
	}
	for name, change := range map[string]func(f *ledger.Filing){
		"another channel":      func(f *ledger.Filing) { f.Channel = "x@acme.example" },
		"another platform":     func(f *ledger.Filing) { f.Platform, f.Channel = "local", "buyer@acme.example" },
		"another counterparty": func(f *ledger.Filing) { f.Counterparty = "zenith" },
	} {
		f := filing("six")
		change(&f)
		if filed := d.file(f); len(marked(filed, "NEW DESTINATION")) != 1 {
			t.Errorf("%s: %q", name, filed.Markers)
		}
	}
}

func TestHiddenTextIsMarkedWithItsCounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, change := range map[string]func(f *ledger.Filing){
		"zero-width space in a price": func(f *ledger.Filing) { f.Text = "pay 9\u200b00" },
		"right-to-left override":      func(f *ledger.Filing) { f.Text = "see https://example.com/\u202egpj.exe" },
		"tag characters":              func(f *ledger.Filing) { f.Text = "yes\U000e006e\U000e006f" },
		"variation selector":          func(f *ledger.Filing) { f.Text = "yes\U000e0100" },
		"long run of blanks":          func(f *ledger.Filing) { f.Text = "fine." + strings.Repeat("\u00a0", 400) + "We pay double." },
		"mixed-script domain":         func(f *ledger.Filing) { f.Text = "pay at www.pаypal.com" },
		"in the subject":              func(f *ledger.Filing) { f.Subject = "Off\u200ber" },
		"in the counterparty":         func(f *ledger.Filing) { f.Counterparty = "ac\u200bme" },
	} {
		f := filing("hello")
		f.Counterparty = name
		change(&f)
		filed := d.file(f)
		if len(marked(filed, "HIDDEN TEXT: ")) != 1 || !strings.ContainsAny(filed.Markers[0], "0123456789") {
			t.Errorf("%s: %q", name, filed.Markers)
		}
		if s := d.show(filed.ObligationID); !strings.HasPrefix(s.Context, filed.Markers[0]) {
			t.Errorf("%s: the context is %q", name, s.Context)
		}
		if p := d.begin(d.claim(d.decide(filed, ledger.Approve))); p.Text != f.Text {
			t.Errorf("%s: it is sent as %q", name, p.Text)
		}
	}
	for _, honest := range []string{"שלום עולם", "مرحبا بالعالم", "👩\u200d🚀 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️", "کتاب\u200cها"} {
		f := filing(honest)
		f.Channel = "honest@acme.example"
		if filed := d.file(f); len(marked(filed, "HIDDEN TEXT")) != 0 {
			t.Errorf("%q: %q", honest, filed.Markers)
		}
	}
}

func TestANameThatReadsLikeAnotherIsMarked(t *testing.T) {
	t.Parallel()
	for name, twin := range map[string]string{"case": "ACME", "spaces": "ac me", "a Cyrillic letter": "аcme", "full width": "ａｃｍｅ", "a zero-width space": "ac\u200bme"} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			if filed := d.file(filing("one")); len(marked(filed, "LOOKS LIKE")) != 0 {
				t.Errorf("the first: %q", filed.Markers)
			}
			f := filing("two")
			f.Counterparty = twin
			if got := marked(d.file(f), "LOOKS LIKE"); !slices.Equal(got, []string{"[LOOKS LIKE acme]"}) {
				t.Errorf("the twin: %q", got)
			}
		})
	}
}

// Skeletons alone don't see that two names outside of the Latin script differ only in case.
func TestANameThatDiffersOnlyInCaseIsMarkedInEveryScript(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := filing("one")
	f.Counterparty = "ΝΙΚΗ"
	d.file(f)
	f.Counterparty = "νικη"
	if got := marked(d.file(f), "LOOKS LIKE"); !slices.Equal(got, []string{"[LOOKS LIKE ΝΙΚΗ]"}) {
		t.Errorf("%q", got)
	}
}

func TestTheNameInAMarkerCantEndIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	f := filing("one")
	f.Counterparty = "ac]me [x"
	d.file(f)
	f.Counterparty = "AC]ME [X"
	if got := marked(d.file(f), "LOOKS LIKE"); !slices.Equal(got, []string{"[LOOKS LIKE ac)me (x]"}) {
		t.Errorf("%q", got)
	}
}

func TestADuplicateWithinADayIsMarked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const nearlyADay = 24*time.Hour - time.Second
	for name, test := range map[string]struct {
		reach  func(d *desk) ledger.Decided
		after  time.Duration
		marked bool
	}{
		"approved":                   {func(d *desk) ledger.Decided { return d.approved("one") }, nearlyADay, true},
		"approved, a day ago":        {func(d *desk) ledger.Decided { return d.approved("one") }, 24 * time.Hour, false},
		"sent":                       {func(d *desk) ledger.Decided { return d.sent("one", 0) }, nearlyADay, true},
		"sent, a day ago":            {func(d *desk) ledger.Decided { return d.sent("one", 0) }, 24 * time.Hour, false},
		"sent, long approved":        {func(d *desk) ledger.Decided { return d.sent("one", 30*time.Hour) }, nearlyADay, true},
		"unknown":                    {func(d *desk) ledger.Decided { return d.settled("one") }, nearlyADay, true},
		"unknown, a day ago":         {func(d *desk) ledger.Decided { return d.settled("one") }, 24 * time.Hour, false},
		"revoked":                    {func(d *desk) ledger.Decided { return d.revoked("one") }, time.Hour, false},
		"rejected":                   {func(d *desk) ledger.Decided { return d.decide(d.file(d.filing("one")), ledger.Reject) }, time.Hour, false},
		"approved by a faster clock": {func(d *desk) ledger.Decided { return d.approved("one") }, -time.Hour, true},
	} {
		d.party, d.channel = name, name // the envelope has no counterparty
		v := test.reach(d)
		d.tick(test.after)
		var expected []string
		if test.marked {
			expected = []string{fmt.Sprintf("[DUPLICATE OF #%d]", v.ObligationID)}
		}
		if got := marked(d.file(d.filing("one")), "DUPLICATE OF"); !slices.Equal(got, expected) {
			t.Errorf("%s: %q, want %q", name, got, expected)
		}
		if got := marked(d.file(d.filing("another text")), "DUPLICATE OF"); len(got) != 0 {
			t.Errorf("%s, another text: %q", name, got)
		}
	}
}

// sent sends the text, some time after its approval.
func (d *desk) sent(text string, after time.Duration) ledger.Decided {
	d.t.Helper()
	v := d.approved(text)
	d.tick(after)
	c := d.claim(v)
	d.begin(c)
	must(d.t, d.Complete(d.t.Context(), c, ledger.Receipt{Coordinate: "x"}))
	return v
}

func (d *desk) settled(text string) ledger.Decided {
	d.t.Helper()
	v := d.unknown(text)
	must(d.t, second(d.Settle(d.t.Context(), d.anna, v.ObligationID, "no trace")))
	return v
}

func (d *desk) revoked(text string) ledger.Decided {
	d.t.Helper()
	v := d.approved(text)
	must(d.t, second(d.Revoke(d.t.Context(), ledger.Revocation{ObligationID: v.ObligationID, Operator: d.anna, Reason: "no"})))
	return v
}

func TestTheGatesMarksComeFirstAndAreKept(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	gates := ledger.Gates{Markers: []string{"[BASELINE_CHECK_UNAVAILABLE]"}, Warnings: []string{"no checker"}}
	filed, err := d.File(t.Context(), d.clean(filing("one")), gates)
	must(t, err)
	if !slices.Equal(filed.Markers, []string{"[BASELINE_CHECK_UNAVAILABLE]", "[NEW DESTINATION]"}) || !slices.Equal(filed.Warnings, gates.Warnings) {
		t.Errorf("%+v", filed)
	}
	v := d.decide(filed, ledger.Approve)
	if n := d.count(`SELECT count(*) FROM approval_envelopes WHERE decision_id = $1 AND markers = '["[BASELINE_CHECK_UNAVAILABLE]","[NEW DESTINATION]"]'`, v.DecisionID); n != 1 {
		t.Error("the approval does not say what was marked")
	}
}

func TestAnAgentsImitationsOfMarkersAreNeutralised(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, mark := range []string{"BASELINE_OVERRIDE_SIGNED_CONTRACT", "BASELINE_CHECK_UNAVAILABLE", "BASELINE FACTS: none", "HIDDEN TEXT: none",
		"NEW DESTINATION", "LOOKS LIKE acme", "DUPLICATE OF #1", "UNRESOLVED_DELIVERY #1", "ROLLBACK", "new destination", "ΝEW DESTINATION"} {
		f := filing("one")
		f.Context, f.Summary, f.Counterparty = "hm ["+mark+"] hm", "["+mark+"]", "acme ["+mark+"]"
		draft := d.clean(f)
		for field, got := range map[string]string{"context": draft.Filing().Context, "summary": draft.Filing().Summary, "counterparty": draft.Filing().Counterparty} {
			if strings.Contains(got, "["+mark) || !strings.Contains(got, "("+mark+")") {
				t.Errorf("%s: %q", field, got)
			}
		}
		if filed := d.file(f); !filed.Cleaned {
			t.Errorf("[%s]: not told as cleaned", mark)
		}
	}
}
