package telegram

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"golang.org/x/net/http/httpproxy"
)

const (
	// idleLimit is how long a connection may lie idle and still be used. A server
	// that closes an idle one just as a message is handed over makes it ambiguous.
	idleLimit = 30 * time.Second
	// maxReply bounds a reply; those that are read here have a few thousand octets.
	maxReply  = 1 << 20
	maxHeader = 64 << 10
	userAgent = "countersign"
)

var (
	errReplySize = fmt.Errorf("the reply has more than %d octets", maxReply)
	errNotJSON   = errors.New("the reply isn't JSON")
)

// A line carries the requests of one session. The library takes no context and
// builds requests that can be repeated; here each gets its context, and is made one
// that can't.
type line struct {
	http    *http.Transport
	current *exchange // the request in hand: a session has one at a time
}

var _ tgbotapi.HTTPClient = (*line)(nil)

func (t *Transport) newLine() *line {
	var http1 http.Protocols
	http1.SetHTTP1(true) // HTTP/2 repeats requests on its own (RFC 9113 section 8.7)
	h := &http.Transport{
		DialContext:            t.dial,
		Protocols:              &http1,
		Proxy:                  proxy(),
		TLSClientConfig:        &tls.Config{RootCAs: t.config.RootCAs, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    t.config.Timeout,
		IdleConnTimeout:        idleLimit,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true,
	}
	if t.plain {
		h.Proxy = nil // it would see the token
	}
	return &line{http: h}
}

// proxy is the one the environment names (HTTPS_PROXY, NO_PROXY). It gets a CONNECT,
// and sees nothing of what goes through.
func proxy() func(*http.Request) (*url.URL, error) {
	choose := httpproxy.FromEnvironment().ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}

// dial refuses plain http to another machine: a name may lead anywhere, and only the
// address it led to tells.
func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := t.config.Dial(ctx, network, address)
	if err != nil || !t.plain {
		return conn, err
	}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return conn, nil
	}
	_ = conn.Close()
	return nil, errPlaintext
}

// Do makes one HTTP request and reads the whole reply, so that the library never
// sees a part of one. RoundTrip, unlike http.Client, follows no redirect; and without
// GetBody it can't send a body again, whatever becomes of the connection.
func (l *line) Do(r *http.Request) (*http.Response, error) {
	x := l.current
	r = r.WithContext(x.traced())
	r.Header.Set("User-Agent", userAgent)
	r.GetBody = nil
	if r.Body != http.NoBody {
		x.text.body = r.Body
		r.Body = x.text
	}
	reply, err := l.http.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	x.replied(reply.StatusCode)
	data, err := readReply(reply.Body)
	if err != nil {
		return nil, err
	}
	reply.Body = io.NopCloser(bytes.NewReader(data))
	return reply, nil
}

// readReply wants one whole JSON value: the library's decoder would take the first of
// several, and never notice that the rest is missing.
func readReply(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, maxReply+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxReply:
		return nil, errReplySize
	case !json.Valid(data):
		return nil, errNotJSON
	}
	return data, nil
}

// close ends the connection. It is not in use: whatever was, was ended with its
// exchange.
func (l *line) close() { l.http.CloseIdleConnections() }
