package telegram

import (
	"errors"
	"testing"
	"time"

	"countersign/transports"
)

// getChat is asked once in a while for a chat, by whichever session comes first. In
// between, a session that was idle asks getMe, so that a broken line is found before
// the claim.
func TestChatIsRemembered(t *testing.T) {
	c := newClock()
	s := serve(t, nil)
	tr := open(t, s, func(config *Config) { config.Now = c.now })
	one, two := connect(t, tr), connect(t, tr)
	other := with(func(m *transports.Message) { m.Channel = "77" })
	want := "getMe getMe"
	for i, step := range []struct {
		session transports.Session
		m       transports.Message
		pass    time.Duration
		asks    string
	}{
		{one, offer(), 0, " getChat"},
		{one, offer(), 0, ""},
		{two, offer(), provenFor - 1, ""},
		{two, offer(), 1, " getMe"}, // idle since it connected
		{two, other, 0, " getChat"},
		{two, offer(), 0, ""},
		{one, other, 2 * provenFor, " getMe"},
		{one, offer(), chatMemory - 3*provenFor - 1, " getMe"},
		{one, offer(), 1, " getChat"},
		{one, other, -time.Hour, " getChat"}, // a clock set back remembers nothing
		{one, other, 0, ""},
	} {
		c.pass(step.pass)
		prepare(t, step.session, step.m)
		if want += step.asks; s.methods() != want {
			t.Fatalf("step %d: asked for %s, want %s", i, s.methods(), want)
		}
	}
}

func TestUncheckedChat(t *testing.T) {
	c := newClock()
	s := serve(t, map[string]answer{getChat: no(404, "Not Found: method not found")})
	session := connect(t, open(t, s, func(config *Config) { config.CheckChat, config.Now = false, c.now }))
	prepare(t, session, offer())
	c.pass(provenFor)
	prepare(t, session, offer()) // idle for too long
	prepare(t, session, offer())
	c.pass(-time.Hour)
	prepare(t, session, offer()) // nobody knows for how long
	if got := s.methods(); got != "getMe getMe getMe" {
		t.Errorf("asked for %s", got)
	}
	s.script(sendMessage, no(401, "Unauthorized"))
	if _, err := session.Send(t.Context(), claimed(offer())); transports.Classify(err) != transports.Refused {
		t.Fatalf("Send: %v", err)
	}
	s.script(getMe, no(401, "Unauthorized"))
	if err := session.Prepare(t.Context(), offer()); err == nil {
		t.Error("a token that was refused a moment ago was believed")
	}
}

// FAULTS 6, and what else getChat can say: nothing is claimed for it, and the next
// Prepare asks again.
func TestChatIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		answer answer
		want   transports.PrepareError
		words  string
	}{
		"unknown": {no(400, "Bad Request: chat not found"),
			transports.PrepareError{Stage: getChat, Code: "400", Permanent: true}, "Bad Request: chat not found"},
		"thrown out": {no(403, "Forbidden: bot was kicked from the supergroup chat"),
			transports.PrepareError{Stage: getChat, Code: "403", Permanent: true}, "Forbidden: bot was kicked from the supergroup chat"},
		"moved": {no(400, "Bad Request: group chat was upgraded to a supergroup chat", `{"migrate_to_chat_id":-1005}`),
			transports.PrepareError{Stage: getChat, Code: "400", Permanent: true},
			"Bad Request: group chat was upgraded to a supergroup chat; the chat is now -1005, which was not followed, for the approval was for this one: file again for -1005"},
		"another chat": {answer{body: `{"ok":true,"result":{"id":-1005}}`},
			transports.PrepareError{Stage: getChat, Permanent: true},
			"the answer is for another chat; the chat is now -1005, which was not followed, for the approval was for this one: file again for -1005"},
		"429 for long": {no(429, "Too Many Requests", `{"retry_after":10072}`),
			transports.PrepareError{Stage: getChat, Code: "429", RetryAfter: 10072 * time.Second}, "Too Many Requests; not before 2h47m52s from now"},
		"no id":     {answer{body: `{"ok":true,"result":{}}`}, transports.PrepareError{Stage: stageReply, Code: "200"}, "the reply makes no sense: it names no chat"},
		"502":       {answer{status: 502, body: "<html>"}, transports.PrepareError{Stage: stageReply, Code: "502"}, "the reply isn't JSON"},
		"cut":       {answer{then: cut}, transports.PrepareError{Stage: stageRequest}, "EOF"},
		"no secret": {no(400, "/bot"+token+"/getChat"), transports.PrepareError{Stage: getChat, Code: "400", Permanent: true}, withheld},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string]answer{getChat: c.answer})
			session := connect(t, open(t, s))
			for range 2 {
				var p *transports.PrepareError
				if err := session.Prepare(t.Context(), offer()); !errors.As(err, &p) {
					t.Fatalf("Prepare: %v", err)
				}
				if words := p.Err.Error(); words != c.words {
					t.Errorf("words %q, want %q", words, c.words)
				}
				if p.Err = nil; *p != c.want {
					t.Errorf("got %+v, want %+v", *p, c.want)
				}
			}
			if got := s.methods(); got != "getMe getChat getChat" {
				t.Errorf("asked for %s", got)
			}
			if _, err := session.Send(t.Context(), claimed(offer())); !errors.Is(err, transports.ErrNotPrepared) {
				t.Errorf("Send: %v", err)
			}
		})
	}
}

// FAULTS 6: after a 429 the chat is left alone until its time has come, by every
// session, so that no other approval is used up on it. Other chats go on.
func TestFloodedChatIsLeftAlone(t *testing.T) {
	for seconds, a := range map[int]answer{
		10072: no(429, "Too Many Requests", `{"retry_after":10072}`),
		30:    no(429, "Too Many Requests", `{"retry_after":30}`),
		1:     no(429, "Too Many Requests"),
	} {
		c := newClock()
		s := serve(t, map[string]answer{sendMessage: a})
		tr := open(t, s, func(config *Config) { config.Now = c.now })
		if _, err := sendOne(t, tr, offer()); transports.Classify(err) != transports.Refused {
			t.Fatalf("Send: %v", err)
		}
		session := connect(t, tr)
		left := time.Duration(seconds) * time.Second
		c.pass(left - time.Second/2)
		before := s.methods()
		var p *transports.PrepareError
		if err := session.Prepare(t.Context(), offer()); !errors.As(err, &p) || p.Code != "429" || p.Permanent || p.RetryAfter != time.Second/2 {
			t.Errorf("%d s: Prepare: %v", seconds, err)
		}
		if s.methods() != before {
			t.Errorf("asked for %s", s.methods())
		}
		prepare(t, session, with(func(m *transports.Message) { m.Channel = "77" }))
		c.pass(time.Second / 2)
		prepare(t, session, offer())
		if len(s.seen(sendMessage)) != 1 {
			t.Errorf("asked for %s", s.methods())
		}
	}
}

// After a refusal both the chat and the token are asked about again.
func TestRefusalForgetsTheChat(t *testing.T) {
	s := serve(t, map[string]answer{sendMessage: no(403, "Forbidden: bot was kicked")})
	session := connect(t, open(t, s))
	prepare(t, session, offer())
	if _, err := session.Send(t.Context(), claimed(offer())); transports.Classify(err) != transports.Refused {
		t.Fatalf("Send: %v", err)
	}
	prepare(t, session, offer())
	if got := s.methods(); got != "getMe getChat sendMessage getChat" {
		t.Errorf("asked for %s", got)
	}
}

// A token that is withdrawn during a pass, and a server that answers as another bot.
func TestTokenWithdrawn(t *testing.T) {
	for want, a := range map[string]answer{
		"not prepared at getMe (401): Unauthorized": no(401, "Unauthorized"),
		"not prepared at reply (200): the reply makes no sense: it names another bot": {
			body: `{"ok":true,"result":{"id":5,"is_bot":true}}`},
	} {
		c := newClock()
		s := serve(t, nil)
		session := connect(t, open(t, s, func(config *Config) { config.CheckChat, config.Now = false, c.now }))
		s.script(getMe, a)
		c.pass(provenFor)
		if err := session.Prepare(t.Context(), offer()); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
