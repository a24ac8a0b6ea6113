package slack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/transports"
	"countersign/transports/transporttest"
)

const (
	token   = "xoxb-1234567890-PlantedSecret.0/+"
	channel = "C0COUNTER1"
	thread  = "1750000000.000100"
	postURI = "/api/chat.postMessage"
)

func message() transports.Message {
	return transports.Message{ObligationID: 41, Platform: "slack", Channel: channel, Thread: thread, Text: "the price is 900."}
}

func claimed(m transports.Message) transports.Message {
	m.DecisionID, m.Key = 7, "c0ffee"
	return m
}

// An answer does something with a connection on which a whole request came. The
// connection is closed after it.
type answer func(conn net.Conn, r request)

// request is one, or what came of one, as raw octets.
type request struct {
	raw   []byte
	whole bool
	uri   string
	form  url.Values
}

// A fakeSlack speaks HTTP by hand on a loopback port, records raw octets, and can stall,
// cut the connection or lie.
type fakeSlack struct {
	t       *testing.T
	ln      net.Listener
	stalled chan struct{}

	mu       sync.Mutex
	answers  map[string]answer // by URI
	effect   bool              // a whole chat.postMessage is taken to be posted
	active   int
	idle     *sync.Cond // active is 0
	arrived  *sync.Cond // one more in waiting
	conns    int
	waiting  map[net.Conn]bool // nothing came on it yet
	requests []request
}

func newFakeSlack(t *testing.T) *fakeSlack {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fakeSlack{t: t, ln: ln, stalled: make(chan struct{}, 1), effect: true, waiting: map[net.Conn]bool{}, answers: map[string]answer{
		"/api/auth.test":          says(200, `{"ok":true,"team_id":"T0EXAMPLE","user_id":"U0BOT","bot_id":"B0BOT"}`),
		"/api/conversations.info": sayChannel(`"is_channel":true,"is_member":true`),
		postURI:                   posts,
	}}
	f.idle, f.arrived = sync.NewCond(&f.mu), sync.NewCond(&f.mu)
	go f.serve()
	t.Cleanup(func() { _ = ln.Close() })
	return f
}

func (f *fakeSlack) url() string { return "http://" + f.ln.Addr().String() + "/api" }

func (f *fakeSlack) serve() {
	for {
		conn, err := f.ln.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.active++
		f.conns++
		f.waiting[conn] = true
		f.arrived.Broadcast()
		f.mu.Unlock()
		go f.handle(conn)
	}
}

func (f *fakeSlack) handle(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.active--
		f.idle.Broadcast()
	}()
	r := readRequest(conn)
	f.mu.Lock()
	delete(f.waiting, conn)
	f.mu.Unlock()
	if len(r.raw) == 0 {
		return
	}
	f.mu.Lock()
	f.requests = append(f.requests, r)
	do := f.answers[r.uri]
	f.mu.Unlock()
	switch {
	case !r.whole:
	case do == nil:
		says(404, "no such method")(conn, r)
	default:
		do(conn, r)
	}
}

func readRequest(conn net.Conn) (r request) {
	var raw bytes.Buffer
	parsed, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &raw)))
	if err == nil {
		r.uri = parsed.RequestURI
		body, err := io.ReadAll(parsed.Body)
		if err == nil {
			r.form, err = url.ParseQuery(string(body))
			r.whole = err == nil
		}
	}
	r.raw = raw.Bytes()
	return r
}

// on sets the answer to a method.
func (f *fakeSlack) on(method string, a answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers["/api/"+method] = a
}

// settle waits until all connections are closed.
func (f *fakeSlack) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.active > 0 {
		f.idle.Wait()
	}
}

// endWaiting closes a connection on which nothing came, once there is one.
func (f *fakeSlack) endWaiting() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) == 0 {
		f.arrived.Wait()
	}
	for conn := range f.waiting {
		_ = conn.Close()
	}
}

// seen are the requests for a method, parts of requests included.
func (f *fakeSlack) seen(method string) (found []request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if bytes.HasPrefix(r.raw, []byte("POST /api/"+method+" ")) {
			found = append(found, r)
		}
	}
	return found
}

func (f *fakeSlack) attempts() int { return len(f.seen("chat.postMessage")) }

// delivered decodes what took effect. html knows more entities than Slack, but each &
// of the text is &amp; here.
func (f *fakeSlack) delivered() (all []transporttest.Delivered) {
	f.mu.Lock()
	effect := f.effect
	f.mu.Unlock()
	for _, r := range f.seen("chat.postMessage") {
		if r.whole && effect {
			all = append(all, transporttest.Delivered{
				Channel: r.form.Get("channel"), Thread: r.form.Get("thread_ts"), Text: html.UnescapeString(r.form.Get("text")),
			})
		}
	}
	return all
}

// says answers with a whole reply.
func says(status int, body string, header ...string) answer {
	return func(conn net.Conn, _ request) { _, _ = conn.Write(wholeReply(status, body, header...)) }
}

func wholeReply(status int, body string, header ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n", status, len(body))
	for _, h := range header {
		b.WriteString(h + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return b.Bytes()
}

// octets answers with just these.
func octets(raw string) answer {
	return func(conn net.Conn, _ request) { _, _ = conn.Write([]byte(raw)) }
}

// reset answers with RST.
func reset(conn net.Conn, _ request) { _ = conn.(*net.TCPConn).SetLinger(0) }

// hangUp answers with FIN.
func hangUp(net.Conn, request) {}

// stall never answers; it ends when the other side does.
func (f *fakeSlack) stall(conn net.Conn, _ request) {
	f.stalled <- struct{}{}
	_, _ = io.Copy(io.Discard, conn)
}

func sayChannel(fields string) answer {
	return func(conn net.Conn, r request) {
		says(200, fmt.Sprintf(`{"ok":true,"channel":{"id":%q,%s}}`, r.form.Get("channel"), fields))(conn, r)
	}
}

// posts answers as Slack does: the text comes back escaped, links wrapped, emoji by name.
func posts(conn net.Conn, r request) { says(200, yes(r, slackEcho(r.form.Get("text"))))(conn, r) }

// postsWith posts, and echoes something else.
func postsWith(echo func(text string) string, fields string) answer {
	return func(conn net.Conn, r request) {
		body := strings.TrimSuffix(yes(r, echo(r.form.Get("text"))), "}") + fields + "}"
		says(200, body)(conn, r)
	}
}

var tsCount struct {
	sync.Mutex
	n int
}

func yes(r request, echoed string) string {
	tsCount.Lock()
	tsCount.n++
	ts := fmt.Sprintf("1760000000.%06d", tsCount.n)
	tsCount.Unlock()
	message := map[string]any{"type": "message", "user": "U0BOT", "text": echoed, "ts": ts}
	if thread := r.form.Get("thread_ts"); thread != "" {
		message["thread_ts"] = thread
	}
	body, err := json.Marshal(map[string]any{"ok": true, "channel": r.form.Get("channel"), "ts": ts, "message": message})
	if err != nil {
		panic(err)
	}
	return string(body)
}

var (
	webLink   = regexp.MustCompile(`https?://[^\s<>"]+`)
	emojiText = strings.NewReplacer("👩‍👩‍👧", ":woman-woman-girl:", "🇫🇷", ":flag-fr:", "✅", ":white_check_mark:", "🙂", ":slightly_smiling_face:", "👍🏽", ":+1::skin-tone-4:")
)

func slackEcho(text string) string {
	return emojiText.Replace(webLink.ReplaceAllString(text, "<$0>"))
}

// aClock is set, not waited for.
type aClock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *aClock { return &aClock{now: time.Unix(1_750_000_000, 0)} }

func (c *aClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *aClock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// transport is one that talks to f.
func (f *fakeSlack) transport(change ...func(*Config)) *Transport {
	f.t.Helper()
	c := Config{Token: func() (string, error) { return token, nil }, APIURL: f.url(), TextLimit: MaxText, Now: newClock().Now}
	for _, change := range change {
		change(&c)
	}
	tr, err := New(c)
	if err != nil {
		f.t.Fatal(err)
	}
	return tr
}

func connect(t *testing.T, tr *Transport) transports.Session {
	t.Helper()
	s, err := tr.Connect(t.Context())
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func prepare(t *testing.T, s transports.Session, m transports.Message) {
	t.Helper()
	if err := s.Prepare(t.Context(), m); err != nil {
		t.Fatalf("Prepare: %v", err)
	}
}

// deliver makes all steps for one message on a session of its own.
func deliver(t *testing.T, tr *Transport, m transports.Message) (transports.Receipt, error) {
	t.Helper()
	s := connect(t, tr)
	defer s.Close()
	prepare(t, s, m)
	return s.Send(t.Context(), claimed(m))
}

// wantPrepareError checks stage and code of an error before the claim.
func wantPrepareError(t *testing.T, err error, stage, code string, permanent bool) *transports.PrepareError {
	t.Helper()
	var p *transports.PrepareError
	if !errors.As(err, &p) || p.Stage != stage || p.Code != code || p.Permanent != permanent {
		t.Fatalf("got %#v (%v), want stage %q, code %q, permanent %v", err, err, stage, code, permanent)
	}
	return p
}

// dialer dials for real, and hands the connection to change.
func dialer(change func(net.Conn) net.Conn) func(*Config) {
	return func(c *Config) {
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return change(conn), nil
		}
	}
}

// A brokenConn takes the header of a chat.postMessage, or fails there, and so many octets
// of its body, and then fails.
type brokenConn struct {
	net.Conn
	header, body int
	err          error
}

func (c brokenConn) Write(p []byte) (int, error) {
	takes := c.body
	switch {
	case bytes.HasPrefix(p, []byte("POST "+postURI)) && c.header < len(p):
		takes = c.header
	case bytes.HasPrefix(p, []byte("POST ")), !bytes.Contains(p, []byte("&text=")):
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:takes])
	return n, errors.Join(err, c.err)
}
