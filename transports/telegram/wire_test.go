package telegram

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"countersign/transports"
)

// The whole of what goes over the wire, octet for octet.
func TestRequestOnTheWire(t *testing.T) {
	s := serve(t, nil)
	m := with(func(m *transports.Message) { m.Text = "see /a_b/c_d, x*y & <b>\n1+1=2 é🙂" })
	r, err := sendOne(t, open(t, s), m)
	if err != nil {
		t.Fatal(err)
	}
	want := "POST /bot" + token + "/sendMessage HTTP/1.1\r\n" +
		"Host: " + s.listener.Addr().String() + "\r\n" +
		"User-Agent: countersign\r\n" +
		"Content-Length: 216\r\n" +
		"Content-Type: application/x-www-form-urlencoded\r\n\r\n" +
		"chat_id=-1001234567890123" +
		"&link_preview_options=%7B%22is_disabled%22%3Atrue%7D" +
		"&message_thread_id=42" +
		"&reply_parameters=%7B%22message_id%22%3A7%7D" +
		"&text=see+%2Fa_b%2Fc_d%2C+x%2Ay+%26+%3Cb%3E%0A1%2B1%3D2+%C3%A9%F0%9F%99%82"
	if got := s.seen(sendMessage)[0].raw; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := s.methods(); got != "getMe getChat sendMessage" {
		t.Errorf("asked for %s", got)
	}
	if r.Altered || r.Detail != "sent as @desk_bot" || !strings.HasPrefix(r.Coordinate, "-1001234567890123:") {
		t.Errorf("receipt %+v", r)
	}
}

func TestThreadsOnTheWire(t *testing.T) {
	s := serve(t, nil)
	session := connect(t, open(t, s))
	for i, c := range []struct{ thread, topic, reply string }{
		{"", "", ""},
		{"42", "42", ""},
		{"reply:7", "", `{"message_id":7}`},
		{"2147483647/reply:1", "2147483647", `{"message_id":1}`},
	} {
		m := with(func(m *transports.Message) { m.Thread = c.thread })
		prepare(t, session, m)
		if r, err := session.Send(t.Context(), claimed(m)); err != nil || r.Altered {
			t.Errorf("%q: %+v, %v", c.thread, r, err)
		}
		v := s.seen(sendMessage)[i].values
		if v.Get("message_thread_id") != c.topic || v.Get("reply_parameters") != c.reply || v.Has("message_thread_id") != (c.topic != "") {
			t.Errorf("%q went out as %v", c.thread, v)
		}
	}
}

// FAULTS 15: no parse mode, equal text, and what doesn't fit is refused at filing
// with the count.
func TestFault15(t *testing.T) {
	s := serve(t, nil)
	tr := open(t, s)
	session := connect(t, tr)
	for _, c := range []struct {
		text string
		size int // of a refusal for length
		ok   bool
	}{
		{text: "see /a_b/c_d, x*y", ok: true},
		{text: "1.5 - done!", ok: true},
		{text: strings.Repeat("a", 4096), ok: true},
		{text: strings.Repeat("a", 4097), size: 4097},
		{text: strings.Repeat("🙂", 2048), ok: true},
		{text: strings.Repeat("🙂", 2049), size: 4098},
		{text: "     "},
		{text: "*bold* _it_ [x](tg://user?id=1) `c` ||s|| <b>&amp;</b> \\*", ok: true},
	} {
		m := with(func(m *transports.Message) { m.Text = c.text })
		err := tr.Validate(m)
		var v *transports.ValidationError
		switch {
		case c.ok && err != nil:
			t.Errorf("%.20q: %v", c.text, err)
		case c.ok:
			prepare(t, session, m)
			if r, err := session.Send(t.Context(), claimed(m)); err != nil || r.Altered {
				t.Errorf("%.20q: %+v, %v", c.text, r, err)
			}
			sent := s.seen(sendMessage)
			if v := sent[len(sent)-1].values; v.Get("text") != c.text || v.Has("parse_mode") || v.Has("entities") {
				t.Errorf("%.20q went out as %.200q", c.text, v)
			}
		case !errors.As(err, &v) || v.Field != "text" || v.Size != c.size:
			t.Errorf("%.20q: %v, want a refusal of the text with size %d", c.text, err, c.size)
		case c.size > 0 && err.Error() != fmt.Sprintf("text is too long: %d UTF-16 units, the limit is 4096", c.size):
			t.Errorf("%.20q: %v", c.text, err)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, text := range []string{"", "a", "é", "\uffff", "🙂", "👩‍👩‍👧", "a🙂b"} {
		if want := len(utf16.Encode([]rune(text))); units(text) != want {
			t.Errorf("%q: %d, want %d", text, units(text), want)
		}
	}
}

// What was echoed is compared with what was sent. Fields that nobody needs for a yes
// can't turn it into a doubt.
func TestEcho(t *testing.T) {
	const chat = `"chat":{"id":-1001234567890123}`
	const placed = `"message_thread_id":42,"reply_to_message":{"message_id":7}`
	for name, c := range map[string]struct {
		result string
		detail string // after the bot's name
	}{
		"the same": {`{"message_id":5,` + chat + `,"text":"a<b","date":"soon","from":7,"entities":{},` + placed + `}`, ""},
		"trimmed": {`{"message_id":5,` + chat + `,"text":"a",` + placed + `}`,
			"; the text came back different from character 2 on, with 1 UTF-16 units of 3"},
		"longer": {`{"message_id":5,` + chat + `,"text":"a<b!",` + placed + `}`,
			"; the text came back different from character 4 on, with 4 UTF-16 units of 3"},
		"no text":   {`{"message_id":5,` + chat + `,` + placed + `}`, "; the text did not come back"},
		"odd text":  {`{"message_id":5,` + chat + `,"text":["a<b"],` + placed + `}`, "; the text did not come back"},
		"elsewhere": {`{"message_id":5,"chat":{"id":6},"text":"a<b",` + placed + `}`, "; it went to chat 6"},
		"no thread": {`{"message_id":5,` + chat + `,"text":"a<b"}`,
			"; it is not in the topic; it is not a reply to the message"},
		"another thread": {`{"message_id":5,` + chat + `,"text":"a<b","message_thread_id":"43","reply_to_message":{"message_id":"8"}}`,
			"; it is not in the topic; it is not a reply to the message"},
		"odd thread": {`{"message_id":5,` + chat + `,"text":"a<b","message_thread_id":{},"reply_to_message":7}`,
			"; it is not in the topic; it is not a reply to the message"},
	} {
		s := serve(t, map[string]answer{sendMessage: {body: `{"ok":true,"result":` + c.result + `}`}})
		r, err := sendOne(t, open(t, s), with(func(m *transports.Message) { m.Text = "a<b" }))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if r.Detail != "sent as @desk_bot"+c.detail || r.Altered != (c.detail != "") || !strings.HasSuffix(r.Coordinate, ":5") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A public name has no id to compare; the coordinate has the one Telegram names.
func TestPublicName(t *testing.T) {
	s := serve(t, nil)
	r, err := sendOne(t, open(t, s), with(func(m *transports.Message) { m.Channel = "@acme_support" }))
	if err != nil || r.Altered || !strings.HasPrefix(r.Coordinate, "-1009:") {
		t.Errorf("%+v, %v", r, err)
	}
	if got := s.seen(sendMessage)[0].values.Get("chat_id"); got != "@acme_support" {
		t.Errorf("sent to %q", got)
	}
}

// A server's address is used as it stands, path and escapes included.
func TestAPIURL(t *testing.T) {
	s := serve(t, nil)
	for _, suffix := range []string{"", "/", "/a/b/", "/100%25/%73%2F"} {
		before := len(s.seen(""))
		tr := open(t, s, func(c *Config) { c.APIURL += suffix })
		connect(t, tr)
		want := strings.TrimRight(suffix, "/") + "/bot" + token + "/getMe"
		if got := s.seen("")[before].path; got != want {
			t.Errorf("%q: asked for %q, want %q", suffix, got, want)
		}
	}
	for _, bad := range []string{
		"api.telegram.org", "ftp://127.0.0.1", "https://", "https://:443", "http://192.0.2.1", "http://[2001:db8::1]:8081",
		"https://u:p4ss@127.0.0.1", "https://127.0.0.1/?x=p4ss", "https://127.0.0.1/#p4ss", "https://127.0.0.1/?", "://p4ss", "https:p4ss", "https://p4ss\x7f",
	} {
		_, err := New(Config{Token: func() (string, error) { return token, nil }, APIURL: bad})
		if err == nil || strings.Contains(err.Error(), "p4ss") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("a transport without a token")
	}
	tr, err := New(Config{Token: func() (string, error) { return token, nil }})
	if err != nil || fmt.Sprintf(tr.endpoint, "T", "m") != "https://api.telegram.org/botT/m" {
		t.Errorf("the default is %q, %v", tr.endpoint, err)
	}
	if _, err := url.Parse(fmt.Sprintf(tr.endpoint, token, getMe)); err != nil {
		t.Error(err)
	}
}
