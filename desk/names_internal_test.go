package desk

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/transports"
)

// describing is a transport that only says what it calls a channel, and counts how often it was asked.
type describing struct {
	transports.Transport
	asked int
	err   error
}

func (t *describing) Describe(_ context.Context, channel string) (transports.Description, error) {
	t.asked++
	return transports.Description{Name: "#" + channel, External: true}, t.err
}

// Each edit of a card asked the provider anew, which its rate limit answered; and the name came and went on the card.
func TestAProvidersNamesAreRememberedForAWhile(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	slack := &describing{}
	d := &Desk{now: func() time.Time { return now }, transports: map[string]transports.Transport{"slack": slack}}
	ask := func(channel string) {
		t.Helper()
		about, err := d.describe(t.Context(), "slack", channel)
		if err != nil || about.Name != "#"+channel || !about.External || !about.Known {
			t.Errorf("%+v, %v", about, err)
		}
	}
	ask("a")
	ask("a")
	ask("b")
	if slack.asked != 2 {
		t.Errorf("asked %d times, want 2", slack.asked)
	}
	now = now.Add(nameLife)
	ask("a")
	if slack.asked != 3 {
		t.Errorf("asked %d times, want 3", slack.asked)
	}
	slack.err = errors.New("not now")
	for range 2 { // a failure is asked again
		if _, err := d.describe(t.Context(), "slack", "c"); err == nil {
			t.Error("a failure was forgotten")
		}
	}
	if slack.asked != 5 {
		t.Errorf("asked %d times, want 5", slack.asked)
	}
	if about, err := d.describe(t.Context(), "smtp", "x@y.example"); err != nil || about.Known {
		t.Errorf("a transport that can't say: %+v, %v", about, err)
	}
}
