package memory

import (
	"testing"
	"time"
)

var start = time.Unix(1_750_000_000, 0)

func TestFullForgetsWhatEndsFirst(t *testing.T) {
	m := New[int](3)
	for i := range 10 {
		m.Keep(i%5, start, time.Duration(10+i)*time.Minute)
	}
	if len(m.spans) != 3 {
		t.Errorf("%d keys, want 3", len(m.spans))
	}
	for k, want := range []time.Duration{0, 0, 17 * time.Minute, 18 * time.Minute, 19 * time.Minute} {
		if got := m.Left(k, start); got != want {
			t.Errorf("%d: %s left, want %s", k, got, want)
		}
	}
}

func TestAgainTakesNoRoom(t *testing.T) {
	m := New[string](2)
	m.Keep("a", start, time.Minute)
	m.Keep("b", start, time.Second)
	m.Keep("a", start, time.Hour)
	if m.Left("a", start) != time.Hour || m.Left("b", start) != time.Second {
		t.Errorf("a: %s, b: %s", m.Left("a", start), m.Left("b", start))
	}
}

func TestWhatEndedIsForgotten(t *testing.T) {
	m := New[string](2)
	for what, at := range map[string]time.Time{"its end": start.Add(time.Minute), "a clock set back": start.Add(-time.Second)} {
		m.Keep("a", start, time.Minute)
		if m.Left("a", at) != 0 || len(m.spans) != 0 {
			t.Errorf("%s: still remembered", what)
		}
	}
}

func TestForgetAndClear(t *testing.T) {
	m := New[string](3)
	for _, k := range []string{"a", "b", "c"} {
		m.Keep(k, start, time.Minute)
	}
	m.Forget("a")
	if m.Left("a", start) != 0 || m.Left("b", start) == 0 {
		t.Error("Forget forgot another key")
	}
	m.Clear()
	if m.Left("b", start) != 0 || m.Left("c", start) != 0 {
		t.Error("Clear left something")
	}
}
