package ledger_test

import (
	"testing"
	"time"

	"countersign/ledger"
)

func TestPacingHoldsAcrossConnections(t *testing.T) {
	d := newDesk(t)
	other := d.open()
	paces := []ledger.Pace{{Scope: "slack channel C1", Every: time.Second}}
	for i, l := range []*ledger.Ledger{d.Ledger, other, d.Ledger} {
		at, taken, err := l.Reserve(t.Context(), paces, time.Time{})
		must(t, err)
		if want := d.now.Add(time.Duration(i) * time.Second); !taken || !at.Equal(want) {
			t.Fatalf("call %d may be made at %v (taken %v), want %v", i, at, taken, want)
		}
	}
}

func TestPacingTakesTheLatestOfAllScopes(t *testing.T) {
	d := newDesk(t)
	bot := ledger.Pace{Scope: "telegram bot", Every: 40 * time.Millisecond}
	chat := ledger.Pace{Scope: "telegram chat 7", Every: time.Second}
	for _, step := range []struct {
		paces []ledger.Pace
		want  time.Duration
	}{
		{[]ledger.Pace{bot, chat}, 0},
		{[]ledger.Pace{bot}, 40 * time.Millisecond},
		{[]ledger.Pace{bot, chat}, time.Second},
		{[]ledger.Pace{bot}, time.Second + 40*time.Millisecond},
	} {
		at, _, err := d.Reserve(t.Context(), step.paces, time.Time{})
		must(t, err)
		if got := at.Sub(d.now); got != step.want {
			t.Fatalf("%v: in %v, want %v", step.paces, got, step.want)
		}
	}
}

func TestPacingLeavesAloneWhatComesTooLate(t *testing.T) {
	d := newDesk(t)
	paces := []ledger.Pace{{Scope: "s", Every: time.Minute}}
	_, taken, err := d.Reserve(t.Context(), paces, d.now)
	must(t, err)
	if !taken {
		t.Fatal("the first call was not granted")
	}
	for range 3 { // none of these takes a place
		at, taken, err := d.Reserve(t.Context(), paces, d.now.Add(time.Second))
		must(t, err)
		if taken || !at.Equal(d.now.Add(time.Minute)) {
			t.Fatalf("granted %v at %v", taken, at)
		}
	}
}

// A clock that ran a year ahead once must not silence a provider for a year.
func TestPacingDisbelievesAFarFuture(t *testing.T) {
	d := newDesk(t)
	paces := []ledger.Pace{{Scope: "s", Every: time.Second}}
	d.tick(365 * 24 * time.Hour)
	_, _, err := d.Reserve(t.Context(), paces, time.Time{})
	must(t, err)
	d.tick(-365 * 24 * time.Hour)
	at, taken, err := d.Reserve(t.Context(), paces, time.Time{})
	must(t, err)
	if !taken || !at.Equal(d.now) {
		t.Fatalf("granted %v at %v, want now", taken, at)
	}
}
