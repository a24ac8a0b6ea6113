package telegram

import (
	"testing"
	"time"

	"countersign/transports"
)

func TestPaceKnowsPeopleFromGroups(t *testing.T) {
	transport, err := New(Config{Token: func() (string, error) { return "", nil }})
	if err != nil {
		t.Fatal(err)
	}
	for channel, want := range map[string]time.Duration{"7": time.Second, "-1001234567890": 3 * time.Second, "@news": 3 * time.Second} {
		paces := transport.Pace(transports.Message{Channel: channel})
		if len(paces) != 2 || paces[0].Every > time.Second/29 || paces[1].Every != want {
			t.Errorf("%s: %v, want the chat's interval to be %v", channel, paces, want)
		}
	}
}
