package telegram

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// overTLS serves as api.telegram.org would, with a certificate for the name, and
// makes a transport that finds it there.
func overTLS(t *testing.T, name string, answers map[string]answer) (*server, *Transport) {
	t.Helper()
	config, roots, _ := transporttest.ServerTLS(t, name)
	config.NextProtos = []string{"h2", "http/1.1"}
	s := serve(t, answers, func(l net.Listener) net.Listener { return tls.NewListener(l, config) })
	return s, open(t, s, toServer(s, roots))
}

func toServer(s *server, roots *x509.CertPool) func(*Config) {
	return func(c *Config) {
		c.APIURL, c.RootCAs = "", roots
		c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != "api.telegram.org:443" {
				return nil, errors.New("dialled " + address)
			}
			return new(net.Dialer).DialContext(ctx, network, s.listener.Addr().String())
		}
	}
}

func TestOverTLS(t *testing.T) {
	s, tr := overTLS(t, "api.telegram.org", nil)
	r, err := sendOne(t, tr, offer())
	if err != nil || r.Altered {
		t.Errorf("%+v, %v", r, err)
	}
	if got := s.methods(); got != "getMe getChat sendMessage" {
		t.Errorf("asked for %s", got)
	}
	if host := s.seen(getMe)[0].raw; !strings.Contains(host, "\r\nHost: api.telegram.org\r\n") {
		t.Errorf("asked %q", host)
	}
}

// FAULTS 2 and 28: a server that isn't who it should be gets no token, and nothing is
// claimed.
func TestTLSFails(t *testing.T) {
	wrong, other := overTLS(t, "evil.example.com", nil)
	_, unknownRoots, _ := transporttest.ServerTLS(t, "api.telegram.org")
	unknown, _ := overTLS(t, "api.telegram.org", nil)
	plain := serve(t, nil)
	for name, c := range map[string]struct {
		server *server
		tr     *Transport
	}{
		"another name":    {wrong, other},
		"an unknown root": {unknown, open(t, unknown, toServer(unknown, unknownRoots))},
		"no TLS":          {plain, open(t, plain, toServer(plain, unknownRoots))},
	} {
		_, err := c.tr.Connect(t.Context())
		var p *transports.PrepareError
		if !errors.As(err, &p) || p.Stage != stageTLS || p.Code != "" {
			t.Errorf("%s: %v", name, err)
		}
		if len(c.server.seen("")) != 0 {
			t.Errorf("%s: asked for %s", name, c.server.methods())
		}
	}
}

// A proxyServer connects its clients to the server, whatever they ask for, and takes
// down what they ask.
type proxyServer struct {
	to     string
	answer string

	mu   sync.Mutex
	asks []string
}

func (p *proxyServer) serve(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.connect(c) })
		}
	})
	return l.Addr().String()
}

func (p *proxyServer) connect(client net.Conn) {
	defer client.Close()
	r, err := http.ReadRequest(bufio.NewReader(client))
	if err != nil {
		return
	}
	p.mu.Lock()
	p.asks = append(p.asks, r.Method+" "+r.RequestURI)
	p.mu.Unlock()
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer server.Close()
	_, _ = io.WriteString(client, p.answer)
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

func TestThroughAProxy(t *testing.T) {
	config, roots, _ := transporttest.ServerTLS(t, "api.telegram.org")
	s := serve(t, nil, func(l net.Listener) net.Listener { return tls.NewListener(l, config) })
	proxy := &proxyServer{to: s.listener.Addr().String(), answer: "HTTP/1.1 200 OK\r\n\r\n"}
	t.Setenv("HTTPS_PROXY", "http://user:p4ss@"+proxy.serve(t))
	tr := open(t, nil, func(c *Config) { c.RootCAs = roots })
	if r, err := sendOne(t, tr, offer()); err != nil || r.Altered {
		t.Errorf("%+v, %v", r, err)
	}
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	if len(proxy.asks) != 1 || proxy.asks[0] != "CONNECT api.telegram.org:443" || len(s.seen(sendMessage)) != 1 {
		t.Errorf("the proxy was asked for %q, the server for %s", proxy.asks, s.methods())
	}
}

func TestProxyRefuses(t *testing.T) {
	s := serve(t, nil)
	proxy := &proxyServer{to: s.listener.Addr().String(), answer: "HTTP/1.1 407 Who are you\r\n\r\n"}
	t.Setenv("HTTPS_PROXY", "http://user:p4ss@"+proxy.serve(t))
	_, err := open(t, nil).Connect(t.Context())
	if stage, _ := stageAndCode(err); stage != stageConnect || strings.Contains(err.Error(), "p4ss") {
		t.Errorf("got %v", err)
	}
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:9") // plain requests would show it the token
	if line := open(t, s).newLine(); line.http.Proxy != nil {
		t.Error("plain http goes through a proxy")
	}
}

// Plain http is for this machine, whatever a name leads to.
func TestPlainHTTPToAnotherMachine(t *testing.T) {
	s := serve(t, nil)
	tr := open(t, s, func(c *Config) {
		c.APIURL = "http://bot-api.example.com:8081"
		c.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, s.listener.Addr().String())
			return elsewhere{conn}, err
		}
	})
	_, err := tr.Connect(t.Context())
	var p *transports.PrepareError
	if !errors.As(err, &p) || !p.Permanent || p.Stage != stageConnect || !errors.Is(err, errPlaintext) {
		t.Errorf("got %v", err)
	}
	s.settle()
	if len(s.seen("")) != 0 {
		t.Errorf("asked for %s", s.methods())
	}
}

// elsewhere is a connection that led to another machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8081} }
