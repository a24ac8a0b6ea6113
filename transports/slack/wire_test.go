package slack

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/transports"
)

// Exactly these parameters, whatever a later version of the library adds by itself.
func TestPostedForm(t *testing.T) {
	f := newFakeSlack(t)
	tr := f.transport()
	inThread := message()
	outside := message()
	outside.Thread = ""
	for _, m := range []transports.Message{inThread, outside} {
		if _, err := deliver(t, tr, m); err != nil {
			t.Fatal(err)
		}
	}
	want := url.Values{
		"token": {token}, "channel": {channel}, "thread_ts": {thread}, "text": {"the price is 900."},
		"mrkdwn": {"false"}, "parse": {"none"}, "link_names": {"false"}, "unfurl_links": {"false"}, "unfurl_media": {"false"},
	}
	for _, r := range f.seen("chat.postMessage") {
		if !maps.EqualFunc(r.form, want, slices.Equal) {
			t.Errorf("posted %v\nwant   %v", r.form, want)
		}
		delete(want, "thread_ts")
		head, _, _ := strings.Cut(string(r.raw), "\r\n\r\n")
		for _, line := range []string{"POST /api/chat.postMessage HTTP/1.1", "Content-Type: application/x-www-form-urlencoded", "Connection: close"} {
			if !slices.Contains(strings.Split(head, "\r\n"), line) {
				t.Errorf("no %q in\n%s", line, head)
			}
		}
		if strings.Contains(head, "xoxb") {
			t.Errorf("the token is in the header:\n%s", head)
		}
	}
}

// FAULTS 13: decoding the posted text once gives the stored text. The octets between
// are written out, so that no decoder of ours vouches for the encoder.
func TestEscaping(t *testing.T) {
	for text, octets := range map[string]string{
		"AT&T: 5 < 6 > 4":              "text=AT%26amp%3BT%3A+5+%26lt%3B+6+%26gt%3B+4&",
		"literal &lt;b&gt;":            "text=literal+%26amp%3Blt%3Bb%26amp%3Bgt%3B&",
		"literal &amp;lt;":             "text=literal+%26amp%3Bamp%3Blt%3B&",
		"https://example.com/?a=1&b=2": "text=https%3A%2F%2Fexample.com%2F%3Fa%3D1%26amp%3Bb%3D2&",
		"<!channel> <@U0X> @here #x":   "text=%26lt%3B%21channel%26gt%3B+%26lt%3B%40U0X%26gt%3B+%40here+%23x&",
		"a+b=c%41":                     "text=a%2Bb%3Dc%2541&",
		"*b* _i_ ~s~ `c`":              "text=%2Ab%2A+_i_+~s~+%60c%60&",
		"  a\n\tb  ":                   "text=++a%0A%09b++&",
		"é e\u0301 \u202ex":            "text=%C3%A9+e%CC%81+%E2%80%AEx&",
		`\u003c "q" 'q' \n`:            "text=%5Cu003c+%22q%22+%27q%27+%5Cn&",
	} {
		f := newFakeSlack(t)
		m := message()
		m.Text = text
		r, err := deliver(t, f.transport(), m)
		if err != nil || r.Altered {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
		f.settle()
		if raw := f.seen("chat.postMessage")[0].raw; !strings.Contains(string(raw), octets) {
			t.Errorf("%q: posted as\n%s\nwant %s", text, raw, octets)
		}
		if got := f.delivered(); got[0].Text != text {
			t.Errorf("%q arrived as %q", text, got[0].Text)
		}
	}
}

// Each request has a connection of its own: a server that ends idle connections, or says
// that they may live on, makes no difference, and nothing is asked twice.
func TestOneRequestAConnection(t *testing.T) {
	f := newFakeSlack(t)
	f.on("chat.postMessage", func(conn net.Conn, r request) {
		_, _ = conn.Write(wholeReply(200, yes(r, "x"), "Connection: keep-alive", "Keep-Alive: timeout=600"))
	})
	s := connect(t, f.transport())
	for range 5 {
		prepare(t, s, message())
		if _, err := s.Send(t.Context(), claimed(message())); err != nil {
			t.Fatal(err)
		}
	}
	_ = s.Close()
	f.settle()
	if f.attempts() != 5 || f.conns != 1+1+5 || len(f.requests) != f.conns {
		t.Errorf("%d posts and %d requests on %d connections, want 5, 7 and 7", f.attempts(), len(f.requests), f.conns)
	}
}

// The server gave up the waiting connection. That is known before anything is said, so
// another one is opened; when that fails, nothing was handed over.
func TestWaitingConnectionEnds(t *testing.T) {
	for _, c := range []struct {
		again   bool
		want    transports.Outcome
		stage   string
		arrived int
	}{
		{true, transports.Confirmed, "", 1},
		{false, transports.Refused, "connect", 0},
	} {
		f := newFakeSlack(t)
		var (
			mu   sync.Mutex
			down bool
		)
		tr := f.transport(func(config *Config) {
			config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				mu.Lock()
				defer mu.Unlock()
				if down {
					return nil, errors.New("no route")
				}
				return new(net.Dialer).DialContext(ctx, network, address)
			}
		})
		s := connect(t, tr)
		prepare(t, s, message())
		ended := make(chan struct{})
		end := sync.OnceFunc(func() { close(ended) })
		s.(*session).line.conn.SetStateHook(func(conn *http.ClientConn) {
			if conn.Err() != nil {
				end()
			}
		})
		f.endWaiting()
		<-ended
		mu.Lock()
		down = !c.again
		mu.Unlock()
		_, err := s.Send(t.Context(), claimed(message()))
		wantEnd(t, err, c.want, c.stage, "")
		f.settle()
		if f.attempts() != c.arrived {
			t.Errorf("%d requests, want %d", f.attempts(), c.arrived)
		}
	}
}

// FAULTS 2, the control: what can't be reached is known before the claim, also when the
// channel is remembered.
func TestUnreachableBeforeTheClaim(t *testing.T) {
	f := newFakeSlack(t)
	tr := f.transport()
	s := connect(t, tr)
	prepare(t, s, message())
	_ = f.ln.Close() // and the port with it
	wantPrepareError(t, s.Prepare(t.Context(), message()), "connect", "", false)
	_, err := s.Send(t.Context(), claimed(message()))
	wantEnd(t, err, transports.Refused, transports.StageHandOver, "")
	_, err = tr.Connect(t.Context())
	wantPrepareError(t, err, "connect", "", false)

	unknown := f.transport(func(c *Config) { c.APIURL = "https://slack.invalid/api/" }, func(c *Config) {
		c.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "slack.invalid", IsNotFound: true}
		}
	})
	_, err = unknown.Connect(t.Context())
	wantPrepareError(t, err, "connect", "", false)
}

// secure is a Slack behind TLS that would speak HTTP/2.
func secure(t *testing.T) (server *httptest.Server, protocols func() []string) {
	var (
		mu   sync.Mutex
		seen []string
	)
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Proto)
		mu.Unlock()
		_ = r.ParseForm()
		switch r.URL.Path {
		case "/api/conversations.info":
			_, _ = io.WriteString(w, `{"ok":true,"channel":{"id":"C0COUNTER1","is_member":true}}`)
		case postURI:
			_, _ = io.WriteString(w, yes(request{form: r.PostForm}, r.PostForm.Get("text")))
		default:
			_, _ = io.WriteString(w, `{"ok":true,"team_id":"T0EXAMPLE"}`)
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

func over(server *httptest.Server, trust bool) func(*Config) {
	return func(c *Config) {
		c.APIURL = server.URL + "/api/"
		c.RootCAs = x509.NewCertPool()
		if trust {
			c.RootCAs.AddCert(server.Certificate())
		}
	}
}

// With HTTP/2 a server may ask for a repetition, so it isn't spoken.
func TestTLSIsHTTP1(t *testing.T) {
	server, protocols := secure(t)
	f := newFakeSlack(t)
	r, err := deliver(t, f.transport(over(server, true)), message())
	if err != nil || r.Altered {
		t.Fatal(r, err)
	}
	if got := protocols(); !slices.Equal(got, []string{"HTTP/1.1", "HTTP/1.1", "HTTP/1.1"}) {
		t.Errorf("spoke %v", got)
	}
}

func TestUntrustedCertificate(t *testing.T) {
	server, protocols := secure(t)
	f := newFakeSlack(t)
	_, err := f.transport(over(server, false)).Connect(t.Context())
	wantPrepareError(t, err, "tls", "", false)
	if got := protocols(); len(got) > 0 {
		t.Errorf("%d requests reached a server nobody trusts", len(got))
	}
}

// A proxy passes TLS through and sees nothing of it.
func TestProxy(t *testing.T) {
	server, _ := secure(t)
	f := newFakeSlack(t)
	tr := f.transport(over(server, true))
	seen := proxyFor(t, tr)
	if _, err := deliver(t, tr, message()); err != nil {
		t.Fatal(err)
	}
	target := strings.TrimPrefix(server.URL, "https://")
	if got := seen(); !slices.Equal(got, []string{target, target, target}) {
		t.Errorf("the proxy was asked for %q", got)
	}

	tr.environment = func(*http.Request) (*url.URL, error) { return nil, errors.New(`invalid proxy address "user:pass@"`) }
	_, err := tr.Connect(t.Context())
	wantPrepareError(t, err, "connect", "", false)
	if strings.Contains(err.Error(), "pass") {
		t.Errorf("the proxy's password is in %v", err)
	}
}

// proxyFor puts a proxy before tr, and tells for what it was asked.
func proxyFor(t *testing.T, tr *Transport) (targets func() []string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	tr.environment = http.ProxyURL(&url.URL{Scheme: "http", Host: ln.Addr().String()})
	var (
		mu    sync.Mutex
		asked []string
	)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go tunnel(conn, func(target string) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, target)
			})
		}
	}()
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

func tunnel(conn net.Conn, note func(target string)) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	r, err := http.ReadRequest(in)
	if err != nil || r.Method != http.MethodConnect {
		return
	}
	note(r.Host)
	out, err := net.Dial("tcp", r.Host)
	if err != nil {
		return
	}
	defer out.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(conn, out)
}

// Only the address a name led to tells if plain http stays on this machine.
func TestPlainHTTPElsewhere(t *testing.T) {
	f := newFakeSlack(t)
	tr := f.transport(func(c *Config) { c.APIURL = "http://slack.example/api/" }, dialer(func(conn net.Conn) net.Conn {
		return elsewhere{conn}
	}), func(c *Config) {
		dial := c.Dial
		c.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dial(ctx, network, f.ln.Addr().String())
		}
	})
	_, err := tr.Connect(t.Context())
	wantPrepareError(t, err, "connect", "", true)
	f.settle()
	if len(f.requests) > 0 {
		t.Error("the token went out in plain text")
	}
}

type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }
