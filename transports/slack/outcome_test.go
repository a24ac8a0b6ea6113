package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/transports"
)

// wantEnd checks how a Send ended, and where that was seen.
func wantEnd(t *testing.T, err error, want transports.Outcome, stage, code string) {
	t.Helper()
	var (
		refused   *transports.RefusedError
		ambiguous *transports.AmbiguousError
		gotStage  string
		gotCode   string
	)
	switch {
	case errors.As(err, &refused):
		gotStage, gotCode = refused.Stage, refused.Code
	case errors.As(err, &ambiguous):
		gotStage, gotCode = ambiguous.Stage, ambiguous.Code
	}
	if got := transports.Classify(err); got != want || gotStage != stage || gotCode != code {
		t.Errorf("%s at %q, code %q (%v); want %s at %q, code %q", got, gotStage, gotCode, err, want, stage, code)
	}
}

// A whole request, and then what Slack, or something on the way, does. There is one
// request whatever it is, and nothing after it on the same session.
func TestOutcomeOfAnswers(t *testing.T) {
	const (
		refused   = transports.Refused
		ambiguous = transports.Ambiguous
	)
	ts := `"ts":"1760000000.000001"`
	ok := `{"ok":true,"channel":"C0COUNTER1",` + ts + `}`
	for name, c := range map[string]struct {
		answer answer
		want   transports.Outcome
		stage  string
		code   string
	}{
		"reset":                        {reset, ambiguous, "request", ""},
		"closed":                       {hangUp, ambiguous, "request", ""},
		"half a status line":           {octets("HTTP/1.1 2"), ambiguous, "reply", ""},
		"no HTTP":                      {octets("220 mail.example.com ESMTP\r\n"), ambiguous, "reply", ""},
		"header cut off":               {octets("HTTP/1.1 200 OK\r\nContent-Le"), ambiguous, "reply", ""},
		"shorter than announced":       {octets("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n" + ok), ambiguous, "reply", ""},
		"a chunk too few":              {octets("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(ok), ok)), ambiguous, "reply", ""},
		"header without end":           {octets("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", maxHeader+8192) + "\r\n\r\n" + ok), ambiguous, "reply", ""},
		"200 empty":                    {says(200, ""), ambiguous, "reply", "200"},
		"200 cut-off JSON":             {says(200, ok[:len(ok)-1]), ambiguous, "reply", "200"},
		"200 two values":               {says(200, ok+"{}"), ambiguous, "reply", "200"},
		"200 HTML":                     {says(200, "<html>ok</html>"), ambiguous, "reply", "200"},
		"200 null":                     {says(200, "null"), ambiguous, "reply", "200"},
		"200 array":                    {says(200, "["+ok+"]"), ambiguous, "reply", "200"},
		"200 without ok":               {says(200, `{"channel":"C0COUNTER1",`+ts+`}`), ambiguous, "reply", "200"},
		"ok is no boolean":             {says(200, `{"ok":"true","channel":"C0COUNTER1",`+ts+`}`), ambiguous, "reply", "200"},
		"ok without anything":          {says(200, `{"ok":true}`), ambiguous, "reply", "200"},
		"ok without ts":                {says(200, `{"ok":true,"channel":"C0COUNTER1"}`), ambiguous, "reply", "200"},
		"ok with an empty ts":          {says(200, `{"ok":true,"channel":"C0COUNTER1","ts":""}`), ambiguous, "reply", "200"},
		"ok with a ts of two lines":    {says(200, `{"ok":true,"channel":"C0COUNTER1","ts":"1\n2"}`), ambiguous, "reply", "200"},
		"ok without a channel":         {says(200, `{"ok":true,`+ts+`}`), ambiguous, "reply", "200"},
		"ok false without a code":      {says(200, `{"ok":false}`), ambiguous, "reply", "200"}, // success to the library
		"ok false with a ts":           {says(200, `{"ok":false,"channel":"C0COUNTER1",`+ts+`}`), ambiguous, "reply", "200"},
		"ok false, words for a code":   {says(200, `{"ok":false,"error":"not posted, sorry"}`), ambiguous, "reply", "200"},
		"internal_error":               {says(200, `{"ok":false,"error":"internal_error"}`), ambiguous, "chat.postMessage", "internal_error"},
		"fatal_error":                  {says(200, `{"ok":false,"error":"fatal_error"}`), ambiguous, "chat.postMessage", "fatal_error"},
		"service_unavailable":          {says(200, `{"ok":false,"error":"service_unavailable"}`), ambiguous, "chat.postMessage", "service_unavailable"},
		"request_timeout":              {says(200, `{"ok":false,"error":"request_timeout"}`), ambiguous, "chat.postMessage", "request_timeout"},
		"a code of tomorrow":           {says(200, `{"ok":false,"error":"not_posted_2031"}`), ambiguous, "chat.postMessage", "not_posted_2031"},
		"500 with ok":                  {says(500, ok), ambiguous, "chat.postMessage", "500"},
		"500 with a known code":        {says(500, `{"ok":false,"error":"not_in_channel"}`), ambiguous, "chat.postMessage", "500"},
		"502 HTML":                     {says(502, "<html>Bad Gateway</html>"), ambiguous, "chat.postMessage", "502"},
		"503":                          {says(503, "", "Retry-After: 3"), ambiguous, "chat.postMessage", "503"},
		"504":                          {says(504, ""), ambiguous, "chat.postMessage", "504"},
		"201 with ok":                  {says(201, ok), ambiguous, "chat.postMessage", "201"},
		"403 of a proxy":               {says(403, "<html>blocked</html>"), ambiguous, "chat.postMessage", "403"},
		"408":                          {says(408, ""), ambiguous, "chat.postMessage", "408"},
		"307":                          {says(307, "", "Location: /api/chat.postMessage"), ambiguous, "chat.postMessage", "307"},
		"308 with a known code":        {says(308, `{"ok":false,"error":"is_archived"}`, "Location: /api/chat.postMessage"), ambiguous, "chat.postMessage", "308"},
		"103 and then nothing":         {octets("HTTP/1.1 103 Early Hints\r\n\r\n"), ambiguous, "reply", ""},
		"not_in_channel":               {says(200, `{"ok":false,"error":"not_in_channel"}`), refused, "chat.postMessage", "not_in_channel"},
		"is_archived":                  {says(200, `{"ok":false,"error":"is_archived"}`), refused, "chat.postMessage", "is_archived"},
		"msg_too_long":                 {says(200, `{"ok":false,"error":"msg_too_long"}`), refused, "chat.postMessage", "msg_too_long"},
		"token_revoked":                {says(200, `{"ok":false,"error":"token_revoked"}`), refused, "chat.postMessage", "token_revoked"},
		"a known code with 403":        {says(403, `{"ok":false,"error":"team_access_not_granted"}`), refused, "chat.postMessage", "team_access_not_granted"},
		"ratelimited with 200":         {says(200, `{"ok":false,"error":"ratelimited"}`), refused, "chat.postMessage", "ratelimited"},
		"a 429 without a Retry-After":  {says(429, ""), refused, "chat.postMessage", "429"},
		"a 429 with HTML":              {says(429, "<html>slow down</html>", "Retry-After: 3"), refused, "chat.postMessage", "429"},
		"a 429 that isn't whole":       {octets("HTTP/1.1 429 X\r\nContent-Length: 9\r\n\r\nslow"), ambiguous, "reply", ""},
		"a known code with a lost end": {octets("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + `{"ok":false,"error":"is_archived"}`), ambiguous, "reply", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeSlack(t)
			f.on("chat.postMessage", c.answer)
			s := connect(t, f.transport())
			prepare(t, s, message())
			r, err := s.Send(t.Context(), claimed(message()))
			wantEnd(t, err, c.want, c.stage, c.code)
			if r != (transports.Receipt{}) {
				t.Errorf("a receipt came with an error: %+v", r)
			}
			if finished := s.Reset(t.Context()) != nil; finished != (c.want == ambiguous) {
				t.Errorf("session finished: %v", finished)
			}
			_ = s.Close()
			f.settle()
			if n := f.attempts(); n != 1 {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}
}

// Cut wherever it may be, only the whole reply is a yes.
func TestEveryCutIsAmbiguous(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		f := newFakeSlack(t)
		at := new(atomic.Int64)
		size := new(atomic.Int64)
		f.on("chat.postMessage", func(conn net.Conn, r request) {
			body := yes(r, r.form.Get("text"))
			whole := string(wholeReply(200, body))
			if chunked {
				whole = fmt.Sprintf("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			}
			size.Store(int64(len(whole)))
			_, _ = conn.Write([]byte(whole)[:min(int(at.Load()), len(whole))])
		})
		tr := f.transport()
		for cut := int64(0); size.Load() == 0 || cut < size.Load(); cut += 3 {
			at.Store(cut)
			if _, err := deliver(t, tr, message()); transports.Classify(err) != transports.Ambiguous {
				t.Errorf("chunked %v, cut after %d of %d octets: %v", chunked, cut, size.Load(), err)
			}
		}
		at.Store(size.Load())
		if _, err := deliver(t, tr, message()); err != nil {
			t.Errorf("chunked %v, whole: %v", chunked, err)
		}
	}
}

// Before the first octet of the body nothing was handed over; from it on nobody knows.
func TestLineFailsInSend(t *testing.T) {
	const whole = math.MaxInt
	for _, c := range []struct {
		header, body int
		want         transports.Outcome
	}{
		{0, 0, transports.Refused},
		{1, 0, transports.Refused},
		{100, 0, transports.Refused},
		{whole, 1, transports.Ambiguous},
		{whole, 80, transports.Ambiguous},
	} {
		f := newFakeSlack(t)
		tr := f.transport(dialer(func(conn net.Conn) net.Conn {
			return brokenConn{Conn: conn, header: c.header, body: c.body, err: syscall.ECONNRESET}
		}))
		_, err := deliver(t, tr, message())
		wantEnd(t, err, c.want, "request", "")
		f.settle()
		for _, r := range f.seen("chat.postMessage") {
			_, body, _ := strings.Cut(string(r.raw), "\r\n\r\n")
			if r.whole || len(body) != c.body {
				t.Errorf("%d octets of the body were taken, %q arrived", c.body, body)
			}
		}
	}
}

// The time is over when the first octet would go out, and no timer has said so: a
// process that was stopped after the last look and goes on.
func TestTimeIsOverAtFirstOctet(t *testing.T) {
	f := newFakeSlack(t)
	s := connect(t, f.transport())
	prepare(t, s, message())
	late := new(atomic.Bool)
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{WroteHeaders: func() { late.Store(true) }})
	_, err := s.Send(turningLate{ctx, late}, claimed(message()))
	wantEnd(t, err, transports.Refused, transports.StageHandOver, "")
	if !errors.Is(err, transports.ErrTooLate) {
		t.Errorf("got %v", err)
	}
	_ = s.Close()
	f.settle()
	for _, r := range f.seen("chat.postMessage") {
		if r.whole || bytes.Contains(r.raw, []byte("900")) {
			t.Errorf("the text went out: %q", r.raw)
		}
	}
}

// turningLate has a deadline that passes when late is set, and no timer.
type turningLate struct {
	context.Context
	late *atomic.Bool
}

func (c turningLate) Deadline() (time.Time, bool) {
	if c.late.Load() {
		return time.Unix(1, 0), true
	}
	return time.Now().Add(time.Minute), true
}

// A server may say no once it has read the header. A yes to a text that it can't have read
// is for something else.
func TestReplyBeforeTheText(t *testing.T) {
	for body, want := range map[string]transports.Outcome{
		`{"ok":true,"channel":"C0COUNTER1","ts":"1760000000.000001"}`: transports.Ambiguous,
		`{"ok":false,"error":"invalid_auth"}`:                         transports.Refused,
	} {
		f := newFakeSlack(t)
		noticed := make(chan struct{})
		s := connect(t, f.transport(dialer(func(conn net.Conn) net.Conn {
			return &hastyConn{Conn: conn, body: body, asked: make(chan struct{}), noticed: noticed}
		})))
		prepare(t, s, message())
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotFirstResponseByte: func() { close(noticed) }})
		_, err := s.Send(ctx, claimed(message()))
		if got := transports.Classify(err); got != want {
			t.Errorf("%s: %s (%v), want %s", body, got, err, want)
		}
	}
}

// A hastyConn answers a chat.postMessage before it takes any of it.
type hastyConn struct {
	net.Conn
	body    string
	once    sync.Once
	asked   chan struct{} // by a first Write
	noticed <-chan struct{}
	hasty   bool
	reply   *strings.Reader
}

func (c *hastyConn) Write(p []byte) (int, error) {
	c.once.Do(func() {
		c.hasty = strings.HasPrefix(string(p), "POST "+postURI)
		c.reply = strings.NewReader(string(wholeReply(200, c.body)))
		close(c.asked)
	})
	if c.hasty {
		<-c.noticed
	}
	return c.Conn.Write(p)
}

func (c *hastyConn) Read(p []byte) (int, error) {
	<-c.asked
	if c.hasty {
		return c.reply.Read(p)
	}
	return c.Conn.Read(p)
}

// FAULTS 6: refused, one request, and the wait is told and kept to.
func TestRateLimit(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"Retry-After: 3":      3 * time.Second,
		"Retry-After: 30":     30 * time.Second,
		"Retry-After: 10072":  10072 * time.Second,
		"Retry-After: 0":      0,
		"Retry-After: soon":   0,
		"Retry-After: -5":     0,
		"Retry-After: 3.5":    0,
		"X-Other: 1":          0,
		"retry-after: 99 999": 0,
	} {
		f := newFakeSlack(t)
		clock := newClock()
		f.on("chat.postMessage", says(429, `{"ok":false,"error":"ratelimited"}`, header))
		s := connect(t, f.transport(func(c *Config) { c.Now = clock.Now }))
		prepare(t, s, message())
		_, err := s.Send(t.Context(), claimed(message()))
		wantEnd(t, err, transports.Refused, "chat.postMessage", "429")
		var refused *transports.RefusedError
		if !errors.As(err, &refused) || refused.RetryAfter != want {
			t.Errorf("%s: got %v, want it to ask for %s", header, err, want)
		}
		// The channel is left alone, before any claim; others are not.
		quiet := max(want, time.Second)
		p := wantPrepareError(t, s.Prepare(t.Context(), message()), "chat.postMessage", "429", false)
		if p.RetryAfter != quiet {
			t.Errorf("%s: Prepare asks for %s, want %s", header, p.RetryAfter, quiet)
		}
		other := message()
		other.Channel = "C0OTHER"
		prepare(t, s, other)
		clock.pass(quiet)
		prepare(t, s, message())
		_ = s.Close()
		f.settle()
		if n := f.attempts(); n != 1 {
			t.Errorf("%s: %d requests, want 1", header, n)
		}
	}
}

// What Slack says of the whole app is asked again before the next claim, of whatever
// channel; what it says of a channel, for that one.
func TestRefusalIsRemembered(t *testing.T) {
	for code, wantOther := range map[string]int{"token_revoked": 2, "not_in_channel": 1} {
		f := newFakeSlack(t)
		s := connect(t, f.transport())
		other := message()
		other.Channel = "C0OTHER"
		prepare(t, s, other)
		prepare(t, s, message())
		f.on("chat.postMessage", says(200, `{"ok":false,"error":"`+code+`"}`))
		_, err := s.Send(t.Context(), claimed(message()))
		wantEnd(t, err, transports.Refused, "chat.postMessage", code)

		prepare(t, s, other)
		prepare(t, s, message())
		asked := map[string]int{}
		for _, r := range f.seen("conversations.info") {
			asked[r.form.Get("channel")]++
		}
		if asked["C0OTHER"] != wantOther || asked[channel] != 2 {
			t.Errorf("%s: asked %v", code, asked)
		}
	}
}
