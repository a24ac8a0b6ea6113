package slack

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
)

// maxHeader bounds the header of a reply.
const maxHeader = 64 << 10

var errPlaintext = errors.New("plain http is for loopback addresses; use https")

// A line is one open connection, for one request. http.ClientConn has no pool, no
// redirects and no second try.
type line struct{ conn *http.ClientConn }

// open connects, through the environment's proxy where there is one, as far as the TLS
// handshake.
func (t *Transport) open(ctx context.Context, hide secrets) (*line, *fault) {
	stage := stageConnect
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{TLSHandshakeStart: func() { stage = stageTLS }})
	conn, err := t.client().NewClientConn(ctx, t.scheme, t.address)
	if err != nil {
		return nil, &fault{ending: unsent, permanent: errors.Is(err, errPlaintext), stage: stage, err: hide.scrub(err)}
	}
	return &line{conn}, nil
}

// client makes connections; it carries no request itself.
func (t *Transport) client() *http.Transport {
	var http1 http.Protocols
	http1.SetHTTP1(true) // with HTTP/2 a server may ask for a repetition (RFC 9113 section 8.7)
	return &http.Transport{
		DialContext:            t.dial,
		Protocols:              &http1,
		Proxy:                  t.proxy,
		TLSClientConfig:        t.tls,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// proxy is the environment's. One that is no URL is not repeated in the error, for it
// may hold a password. A proxy of plain http would read the token.
func (t *Transport) proxy(r *http.Request) (*url.URL, error) {
	if t.scheme == "http" {
		return nil, nil
	}
	u, err := t.environment(r)
	if err != nil {
		return nil, errors.New("the proxy in the environment is not a URL")
	}
	return u, nil
}

// dial refuses plain http to another machine: a name may lead anywhere, and only the
// address it led to tells.
func (t *Transport) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := t.config.Dial(ctx, network, address)
	if err != nil || t.scheme != "http" {
		return conn, err
	}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok && tcp.IP.IsLoopback() {
		return conn, nil
	}
	_ = conn.Close()
	return nil, errPlaintext
}

// open tells if the server has not closed its end, as far as is known.
func (l *line) open() bool { return l.conn.Err() == nil }

func (l *line) close() { _ = l.conn.Close() }
