package telegram

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/transports"
)

const (
	botID = 4242
	key   = "AAHplanted_Secret_0123456789abcdefg"
	token = "4242:" + key
)

// What happens to the connection after an answer, or instead of one.
type ending string

const (
	keep  ending = ""      // it serves the next request
	cut   ending = "cut"   // it is closed
	reset ending = "reset" // and what was on the way is lost
	hang  ending = "hang"  // it says nothing more
)

// An answer is what the fake says to one request.
type answer struct {
	status int    // 200 when 0
	body   string // JSON, most of the time
	short  int    // octets of body that are announced and never come
	raw    string // instead of all these, octet for octet
	then   ending
}

func (a answer) octets() string {
	if a.raw != "" || a.body == "" && a.status == 0 {
		return a.raw
	}
	status := cmp.Or(a.status, 200)
	return fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(a.body)+a.short, a.body)
}

// A request is one as it came over the wire.
type request struct {
	conn   int // number of the connection, from 0
	raw    string
	path   string
	method string // of the API
	values url.Values
}

// A server speaks HTTP over plain sockets and records what it is sent, octet for
// octet: net/http's own server would hide repeated and half requests.
type server struct {
	answers map[string]answer // by method; a yes where there is none
	stalled chan struct{}     // a value for each hang

	listener net.Listener
	wg       sync.WaitGroup

	mu       sync.Mutex
	changed  *sync.Cond // of talking
	talking  int        // connections that are open
	conns    []net.Conn
	requests []request
}

// serve starts it; wrap may put TLS over its listener.
func serve(t *testing.T, answers map[string]answer, wrap ...func(net.Listener) net.Listener) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range wrap {
		l = w(l)
	}
	s := &server{answers: answers, listener: l, stalled: make(chan struct{}, 16)}
	s.changed = sync.NewCond(&s.mu)
	s.wg.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

func (s *server) accept() {
	for n := 0; ; n++ {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns = append(s.conns, c)
		s.talking++
		s.mu.Unlock()
		s.wg.Go(func() { s.converse(n, c) })
	}
}

func (s *server) stop() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *server) url() string { return "http://" + s.listener.Addr().String() }

// settle waits until every client has left.
func (s *server) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.talking > 0 {
		s.changed.Wait()
	}
}

func (s *server) leave(c net.Conn) {
	_ = c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.talking--
	s.changed.Broadcast()
}

func (s *server) converse(n int, c net.Conn) {
	defer s.leave(c)
	var raw bytes.Buffer
	in := bufio.NewReader(io.TeeReader(c, &raw))
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		values, formErr := url.ParseQuery(string(body))
		if err != nil && len(body) == 0 {
			return // a head alone carries nothing
		}
		q := request{conn: n, raw: raw.String(), path: r.URL.EscapedPath(), method: path.Base(r.URL.Path), values: values}
		raw.Reset()
		s.mu.Lock()
		s.requests = append(s.requests, q)
		s.mu.Unlock()
		if err != nil || formErr != nil || !s.answer(c, q) {
			return
		}
	}
}

// answer tells if the connection goes on.
func (s *server) answer(c net.Conn, q request) bool {
	s.mu.Lock()
	a, scripted := s.answers[q.method]
	s.mu.Unlock()
	if !scripted {
		a = yes(q)
	}
	_, _ = io.WriteString(c, a.octets())
	switch a.then {
	case reset:
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return false
	case cut:
		return false
	case hang:
		s.stalled <- struct{}{}
		_, _ = io.Copy(io.Discard, c)
		return false
	}
	return true
}

// yes is what Telegram answers when all is well.
func yes(q request) answer {
	id, _ := strconv.ParseInt(q.values.Get("chat_id"), 10, 64)
	if id == 0 {
		id = -1009
	}
	chat := map[string]any{"id": id, "type": "supergroup", "title": "Acme"}
	result := map[string]any{}
	switch q.method {
	case "getMe":
		result = map[string]any{"id": botID, "is_bot": true, "first_name": "Desk", "username": "desk_bot"}
	case "getChat":
		result = chat
	case "sendMessage":
		result = map[string]any{"message_id": nextMessage(), "date": 1_750_000_000, "chat": chat, "text": q.values.Get("text")}
		if topic := q.values.Get("message_thread_id"); topic != "" {
			result["message_thread_id"] = json.Number(topic)
		}
		if q.values.Has("reply_parameters") {
			result["reply_to_message"] = json.RawMessage(q.values.Get("reply_parameters"))
		}
	}
	return answer{body: object(map[string]any{"ok": true, "result": result})}
}

var nextMessage = func() func() int {
	var mu sync.Mutex
	n := 0
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		n++
		return n
	}
}()

func object(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// no is a refusal in Telegram's words.
func no(code int, words string, parameters ...string) answer {
	more := ""
	for _, p := range parameters {
		more = `,"parameters":` + p
	}
	return answer{status: code, body: fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q%s}`, code, words, more)}
}

// script changes what the fake says from now on.
func (s *server) script(method string, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = make(map[string]answer)
	}
	s.answers[method] = a
}

// seen are the requests for a method, all of them for "".
func (s *server) seen(method string) []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []request
	for _, q := range s.requests {
		if method == "" || q.method == method {
			all = append(all, q)
		}
	}
	return all
}

// methods are the methods asked for, in order.
func (s *server) methods() string {
	var all []string
	for _, q := range s.seen("") {
		all = append(all, q.method)
	}
	return strings.Join(all, " ")
}

// A clock stands until it is set.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_750_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// open makes a transport for a server, if it isn't nil; change adds to its configuration.
func open(t *testing.T, s *server, change ...func(*Config)) *Transport {
	t.Helper()
	c := Config{
		Token:     func() (string, error) { return token, nil },
		CheckChat: true,
		Now:       newClock().now,
	}
	if s != nil {
		c.APIURL = s.url()
	}
	for _, f := range change {
		f(&c)
	}
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func connect(t *testing.T, tr *Transport) transports.Session {
	t.Helper()
	session, err := tr.Connect(t.Context())
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func prepare(t *testing.T, session transports.Session, m transports.Message) {
	t.Helper()
	if err := session.Prepare(t.Context(), m); err != nil {
		t.Fatalf("Prepare: %v", err)
	}
}

// sendOne is Connect, Prepare and Send of one message.
func sendOne(t *testing.T, tr *Transport, m transports.Message) (transports.Receipt, error) {
	t.Helper()
	session := connect(t, tr)
	prepare(t, session, m)
	return session.Send(t.Context(), claimed(m))
}

func offer() transports.Message {
	return transports.Message{
		ObligationID: 41, Platform: "telegram", Channel: "-1001234567890123", Thread: "42/reply:7",
		Text: "Hello,\n\nthe price is 900.",
	}
}

func with(change func(*transports.Message)) transports.Message {
	m := offer()
	change(&m)
	return m
}

func claimed(m transports.Message) transports.Message {
	m.DecisionID, m.Key = 7, "c0ffee"
	return m
}

// A dialler counts connections, and can be told to fail or to change them.
type dialler struct {
	mu     sync.Mutex
	dials  int
	fail   func(n int) error // n counts from 1
	change func(net.Conn) net.Conn
}

func (d *dialler) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d.mu.Lock()
	d.dials++
	n := d.dials
	d.mu.Unlock()
	if d.fail != nil {
		if err := d.fail(n); err != nil {
			return nil, err
		}
	}
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil && d.change != nil {
		c = d.change(c)
	}
	return c, err
}

func (d *dialler) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dials
}
