package fakeslack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
)

func TestFailuresBeforeAndAfterTheEffect(t *testing.T) {
	var limited *slackgo.RateLimitedError
	var status slackgo.StatusCodeError
	isCode := func(code string) func(error) bool {
		return func(err error) bool {
			var said slackgo.SlackErrorResponse
			return errors.As(err, &said) && said.Err == code
		}
	}
	for name, c := range map[string]struct {
		outcome Outcome
		is      func(error) bool
	}{
		"error":      {Fail("fatal_error"), isCode("fatal_error")},
		"bad status": {Status(502, "<html>Bad Gateway</html>"), func(err error) bool { return errors.As(err, &status) && status.Code == 502 }},
		"429":        {RateLimited(30), func(err error) bool { return errors.As(err, &limited) && limited.RetryAfter == 30*time.Second }},
		"bare 429":   {RateLimited(-1), func(err error) bool { return errors.As(err, &status) && status.Code == 429 }},
		"reset":      {Reset(), func(err error) bool { return err != nil }},
		"cut JSON":   {CutJSON(), func(err error) bool { return err != nil && strings.Contains(err.Error(), "EOF") }},
	} {
		t.Run(name, func(t *testing.T) {
			s, api := slack(t)
			s.Script("chat.postMessage", c.outcome, After(c.outcome), Normal())
			for i, messages := range []int{0, 1} {
				_, _, err := api.PostMessageContext(t.Context(), room, textOption("once"))
				if !c.is(err) {
					t.Fatalf("call %d: got %T %v", i, err, err)
				}
				if got := len(s.Messages(room)); got != messages {
					t.Fatalf("call %d left %d messages, want %d", i, got, messages)
				}
			}
			post(t, api, textOption("as usual"))
			post(t, api, textOption("as usual"))
			if got := len(s.Requests("chat.postMessage")); got != 4 {
				t.Fatalf("%d requests", got)
			}
		})
	}
}

func TestStallEndsWithTheClient(t *testing.T) {
	s, api := slack(t)
	s.Script("chat.postMessage", After(Stall()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := api.PostMessageContext(ctx, room, textOption("posted, and not answered"))
		ended <- err
	}()
	if err := s.Until(t.Context(), func() bool { return len(s.Messages(room)) == 1 }); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

// A stall that nobody gave up kept the test's end waiting.
func TestStallEndsWithTheTest(t *testing.T) {
	ended := make(chan error, 1)
	t.Run("inner", func(t *testing.T) {
		s, api := slack(t)
		s.Script("auth.test", Stall())
		go func() {
			_, err := api.AuthTestContext(context.WithoutCancel(t.Context()))
			ended <- err
		}()
		if err := s.Until(t.Context(), func() bool { return len(s.Requests("auth.test")) == 1 }); err != nil {
			t.Fatal(err)
		}
	})
	if err := <-ended; err == nil {
		t.Fatal("the stalled call was answered")
	}
}

func TestEchoesThatLie(t *testing.T) {
	s, api := slack(t)
	s.Script("chat.postMessage", Altered(strings.ToUpper), Truncated(3))
	_, _, m, err := api.PostMessageWithResponseContext(t.Context(), room, textOption("hello"))
	if err != nil || m.Text != "HELLO" || s.Messages(room)[0].Text != "hello" {
		t.Fatalf("altered: %q, %v", m.Text, err)
	}
	_, _, m, err = api.PostMessageWithResponseContext(t.Context(), room, textOption("hello"))
	if err != nil || m.Text != "hel" || s.Messages(room)[1].Text != "hel" {
		t.Fatalf("truncated: %q, %v", m.Text, err)
	}
}

func TestTruncationIsWarnedOf(t *testing.T) {
	s, _ := slack(t)
	s.Script("chat.postMessage", Truncated(3))
	answer := send(t, s, "chat.postMessage", "application/json", `{"channel":"C0ROOM","text":"hello"}`)
	want := `{"warnings":["missing_charset","message_truncated"]}`
	if got := string(encode(answer["response_metadata"])); got != want || answer["warning"] != "missing_charset,message_truncated" || answer["ok"] != true {
		t.Fatalf("got %s", encode(answer))
	}
	form := "channel=C0ROOM&text=" + strings.Repeat("x", 40_001)
	if answer := send(t, s, "chat.postMessage", "application/x-www-form-urlencoded", form); answer["warning"] != "message_truncated" || answer["ok"] != true {
		t.Fatalf("of a text over the limit: warning %v", answer["warning"])
	}
	if got := s.Messages(room)[1].Text; len(got) != 40_000 {
		t.Fatalf("%d characters were kept", len(got))
	}
}

// A test that changed a message it was given changed the server's too.
func TestMessagesAreCopies(t *testing.T) {
	s, api := slack(t)
	post(t, api, blocksOf(t, card))
	s.Messages(room)[0].Blocks[0]["type"] = "other"
	if got := s.Messages(room)[0].Blocks[0]["type"]; got != "section" {
		t.Fatalf("the block's type is %v", got)
	}
}
