package slack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/transports"
)

func TestConnect(t *testing.T) {
	inTeam := func(id string) func(*Config) { return func(c *Config) { c.Team = id } }
	whole := `{"ok":true,"team_id":"T0EXAMPLE","user_id":"U0BOT"}`
	for name, c := range map[string]struct {
		answer    answer
		change    func(*Config)
		stage     string // "" connects
		code      string
		permanent bool
	}{
		"yes":                   {says(200, whole), inTeam(""), "", "", false},
		"the right workspace":   {says(200, whole), inTeam("T0EXAMPLE"), "", "", false},
		"another workspace":     {says(200, whole), inTeam("T0OTHER"), "auth.test", "", true},
		"no workspace":          {says(200, `{"ok":true}`), inTeam("T0OTHER"), "auth.test", "", true},
		"wrong token":           {says(200, `{"ok":false,"error":"invalid_auth"}`), inTeam(""), "auth.test", "invalid_auth", true},
		"the app was removed":   {says(200, `{"ok":false,"error":"account_inactive"}`), inTeam(""), "auth.test", "account_inactive", true},
		"Slack is ill":          {says(200, `{"ok":false,"error":"internal_error"}`), inTeam(""), "auth.test", "internal_error", false},
		"ok false and no code":  {says(200, `{"ok":false}`), inTeam(""), "reply", "200", false}, // success to the library
		"502":                   {says(502, "<html>"), inTeam(""), "auth.test", "502", false},
		"a web page":            {says(200, "<html>"), inTeam(""), "reply", "200", false},
		"moved":                 {says(301, "", "Location: https://evil.example/"), inTeam(""), "auth.test", "301", false},
		"cut off":               {octets("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"), inTeam(""), "reply", "", false},
		"hung up":               {hangUp, inTeam(""), "request", "", false},
		"a token of two lines":  {says(200, whole), func(c *Config) { c.Token = gives("xoxb-1\n", nil) }, "token", "", false},
		"an empty token":        {says(200, whole), func(c *Config) { c.Token = gives("", nil) }, "token", "", false},
		"no token":              {says(200, whole), func(c *Config) { c.Token = gives("", errors.New("SLACK_BOT_TOKEN is not set")) }, "token", "", false},
		"a token with a letter": {says(200, whole), func(c *Config) { c.Token = gives("xoxb-ä", nil) }, "token", "", false},
	} {
		f := newFakeSlack(t)
		f.on("auth.test", c.answer)
		s, err := f.transport(c.change).Connect(t.Context())
		if c.stage != "" {
			wantPrepareError(t, err, c.stage, c.code, c.permanent)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
		f.settle()
		if n := len(f.seen("auth.test")); n > 1 {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

func gives(token string, err error) func() (string, error) {
	return func() (string, error) { return token, err }
}

func TestRateLimitInConnect(t *testing.T) {
	f := newFakeSlack(t)
	f.on("auth.test", says(429, "", "Retry-After: 30"))
	_, err := f.transport().Connect(t.Context())
	if p := wantPrepareError(t, err, "auth.test", "429", false); p.RetryAfter != 30*time.Second {
		t.Errorf("asks for %s", p.RetryAfter)
	}
}

func TestPrepareChannel(t *testing.T) {
	for name, c := range map[string]struct {
		answer    answer
		channel   string
		stage     string // "" prepares
		code      string
		permanent bool
	}{
		"a member":             {sayChannel(`"is_channel":true,"is_member":true,"is_archived":false`), channel, "", "", false},
		"a private channel":    {sayChannel(`"is_group":true,"is_private":true,"is_member":true`), "G0PRIVATE", "", "", false},
		"a direct message":     {sayChannel(`"is_im":true,"user":"U0PERSON"`), "D0PERSON", "", "", false},
		"a group of people":    {sayChannel(`"is_mpim":true,"is_group":true`), "G0PEOPLE", "", "", false},
		"odd fields":           {sayChannel(`"is_member":true,"created":"yesterday","properties":[1],"latest":7`), channel, "", "", false},
		"not a member":         {sayChannel(`"is_channel":true,"is_member":false`), channel, "conversations.info", "not_in_channel", true},
		"membership unsaid":    {sayChannel(`"is_channel":true`), channel, "conversations.info", "not_in_channel", true},
		"archived":             {sayChannel(`"is_channel":true,"is_member":true,"is_archived":true`), channel, "conversations.info", "is_archived", true},
		"a deactivated person": {sayChannel(`"is_im":true,"is_user_deleted":true`), "D0PERSON", "conversations.info", "", true},
		"another id":           {says(200, `{"ok":true,"channel":{"id":"C0NEW","is_member":true}}`), channel, "conversations.info", "", true},
		"no channel":           {says(200, `{"ok":true}`), channel, "conversations.info", "", false},
		"a channel of no kind": {says(200, `{"ok":true,"channel":"C0COUNTER1"}`), channel, "conversations.info", "", false},
		"channel_not_found":    {says(200, `{"ok":false,"error":"channel_not_found"}`), channel, "conversations.info", "channel_not_found", true},
		"missing_scope":        {says(200, `{"ok":false,"error":"missing_scope","needed":"channels:read"}`), channel, "conversations.info", "missing_scope", true},
		"token_revoked since":  {says(200, `{"ok":false,"error":"token_revoked"}`), channel, "conversations.info", "token_revoked", true},
		"ok false and no code": {says(200, `{"ok":false,"channel":{"id":"C0COUNTER1","is_member":true}}`), channel, "reply", "200", false},
		"internal_error":       {says(200, `{"ok":false,"error":"internal_error"}`), channel, "conversations.info", "internal_error", false},
		"503":                  {says(503, ""), channel, "conversations.info", "503", false},
		"reset":                {reset, channel, "request", "", false},
		"not whole":            {octets("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"ok\":true}"), channel, "reply", "", false},
		"a subject to prepare": {sayChannel(`"is_member":true`), "#general", "message", "", true},
	} {
		f := newFakeSlack(t)
		f.on("conversations.info", c.answer)
		s := connect(t, f.transport())
		m := message()
		m.Channel = c.channel
		err := s.Prepare(t.Context(), m)
		if c.stage != "" {
			wantPrepareError(t, err, c.stage, c.code, c.permanent)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := s.Reset(t.Context()); err != nil {
			t.Errorf("%s: the session serves no other message: %v", name, err)
		}
		_ = s.Close()
		f.settle()
		if f.attempts() > 0 {
			t.Errorf("%s: something was posted", name)
		}
	}
}

// What to do is in the words.
func TestWordsOfARefusal(t *testing.T) {
	f := newFakeSlack(t)
	f.on("conversations.info", says(200, `{"ok":false,"error":"missing_scope","needed":"channels:read","response_metadata":{"messages":["[ERROR] a"]}}`))
	err := connect(t, f.transport()).Prepare(t.Context(), message())
	for _, want := range []string{"missing_scope", "lacks a scope", "channels:read", "[ERROR] a"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// What Slack said of a channel is remembered for minutes, by all sessions; a no isn't.
func TestChannelIsRemembered(t *testing.T) {
	f := newFakeSlack(t)
	clock := newClock()
	tr := f.transport(func(c *Config) { c.Now = clock.Now })
	asked := func(want int) {
		t.Helper()
		if got := len(f.seen("conversations.info")); got != want {
			t.Errorf("asked %d times, want %d", got, want)
		}
	}
	f.on("conversations.info", says(200, `{"ok":false,"error":"channel_not_found"}`))
	if connect(t, tr).Prepare(t.Context(), message()) == nil {
		t.Error("prepared")
	}
	f.on("conversations.info", sayChannel(`"is_member":true`))
	prepare(t, connect(t, tr), message())
	asked(2)
	prepare(t, connect(t, tr), message())
	clock.pass(channelMemory - 1)
	prepare(t, connect(t, tr), message())
	asked(2)
	clock.pass(1)
	prepare(t, connect(t, tr), message())
	asked(3)
	clock.pass(-time.Hour) // set back: nothing is known of then
	prepare(t, connect(t, tr), message())
	asked(4)

	// The same id in another workspace is another channel.
	f.on("auth.test", says(200, `{"ok":true,"team_id":"T0OTHER"}`))
	prepare(t, connect(t, tr), message())
	asked(5)
}

// Timeout bounds each step, though its context has all the time.
func TestTimeout(t *testing.T) {
	f := newFakeSlack(t)
	tr := f.transport()
	s := connect(t, tr)
	tr.config.Timeout = 1
	_, connecting := tr.Connect(t.Context())
	_, resolving := tr.Resolve(t.Context(), "#general")
	for _, err := range []error{connecting, resolving, s.Prepare(t.Context(), message())} {
		wantPrepareError(t, err, "connect", "", false)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
}

// A Slack that says nothing costs the time that the context leaves, whatever the step.
func TestStall(t *testing.T) {
	for _, method := range []string{"auth.test", "conversations.info", "conversations.list"} {
		f := newFakeSlack(t)
		f.on(method, f.stall)
		tr := f.transport()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-f.stalled
			cancel()
		}()
		var err error
		switch method {
		case "auth.test":
			_, err = tr.Connect(ctx)
		case "conversations.info":
			err = connect(t, tr).Prepare(ctx, message())
		default:
			_, err = tr.Resolve(ctx, "#general")
		}
		wantPrepareError(t, err, "request", "", false)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

func TestCoordinate(t *testing.T) {
	f := newFakeSlack(t)
	f.on("chat.postMessage", says(200, `{"ok":true,"channel":"C0COUNTER1","ts":"1760000000.000009","message":{"text":"the price is 900.","thread_ts":"1750000000.000100"}}`))
	r, err := deliver(t, f.transport(), message())
	if want := (transports.Receipt{Coordinate: "C0COUNTER1:1760000000.000009"}); err != nil || r != want {
		t.Errorf("%+v, %v; want %+v", r, err, want)
	}
}
