package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/emersion/go-smtp"

	"countersign/transports"
)

var (
	errPlaintext  = errors.New("plain text is for loopback addresses, or has to be allowed (allow_plaintext)")
	errPlainAuth  = errors.New("smtp: a password is never sent in plain text to another machine; set tls")
	errNoStartTLS = errors.New("the server doesn't offer STARTTLS; set tls = \"implicit\" if it has a port for that")
)

// Connect opens the connection, secures it and authenticates. When any of that
// fails the connection is closed without another command: there is no fall-back.
func (t *Transport) Connect(ctx context.Context) (transports.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, (&fault{stage: stageConnect, err: err}).notPrepared()
	}
	login, err := t.config.login()
	if err != nil {
		return nil, (&fault{stage: stageAuth, err: err}).notPrepared()
	}
	roots, err := t.config.roots()
	if err != nil {
		return nil, localFault(stageTLS, err).notPrepared()
	}
	raw, f := t.dialTCP(ctx)
	if f != nil {
		return nil, f.notPrepared()
	}
	s := &session{t: t, wire: newWire(raw), login: login, roots: roots}
	if f := s.open(ctx); f != nil {
		s.finish()
		return nil, f.notPrepared()
	}
	return s, nil
}

func (t *Transport) dialTCP(ctx context.Context) (net.Conn, *fault) {
	ctx, cancel := context.WithTimeout(ctx, t.config.Timeout)
	defer cancel()
	raw, err := t.dial(ctx, "tcp", t.config.Address)
	if err != nil {
		return nil, &fault{stage: stageConnect, err: err}
	}
	if t.config.TLS != TLSNone || isLoopback(raw.RemoteAddr()) {
		return raw, nil
	}
	// The name may lead anywhere: only the address it led to tells.
	switch {
	case t.config.Auth != AuthNone:
		err = errPlainAuth
	case !t.config.AllowPlaintext:
		err = errPlaintext
	default:
		return raw, nil
	}
	_ = raw.Close()
	return nil, localFault(stageTLS, err)
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// open goes from a fresh connection to a session that takes mail.
func (s *session) open(ctx context.Context) *fault {
	if s.t.config.TLS == TLSImplicit {
		if f := s.step(ctx, stageTLS, func() error { return s.wire.handshake(ctx, s.tlsConfig()) }); f != nil {
			return f
		}
	}
	if f := s.hello(ctx); f != nil {
		return f
	}
	if s.t.config.TLS == TLSStartTLS {
		if f := s.startTLS(ctx); f != nil {
			return f
		}
	}
	return s.authenticate(ctx)
}

// hello makes the client and lets it read the greeting and say EHLO.
func (s *session) hello(ctx context.Context) *fault {
	s.client = smtp.NewClient(s.wire)
	f := s.step(ctx, stageEhlo, s.sayHello)
	if f != nil && !s.wire.spoke {
		f.stage = stageGreeting
	}
	return f
}

func (s *session) sayHello() error { return s.client.Hello(s.wire.localName()) }

func (s *session) startTLS(ctx context.Context) *fault {
	if ok, _ := s.client.Extension("STARTTLS"); !ok {
		return &fault{stage: stageTLS, err: errNoStartTLS}
	}
	if f := s.step(ctx, stageTLS, func() error { return s.wire.startTLS(ctx, s.tlsConfig()) }); f != nil {
		return f
	}
	// RFC 3207 section 4.2: what was learnt in plain text is forgotten.
	s.wire.greetAgain()
	return s.hello(ctx)
}

func (s *session) tlsConfig() *tls.Config {
	return &tls.Config{ServerName: s.t.host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
}

func (s *session) authenticate(ctx context.Context) *fault {
	if s.t.config.Auth == AuthNone {
		return nil
	}
	if !s.client.SupportsAuth(s.login.mechanism) {
		return &fault{stage: stageAuth, err: fmt.Errorf("the server doesn't offer AUTH %s", s.login.mechanism)}
	}
	return s.step(ctx, stageAuth, func() error { return s.client.Auth(s.login.client) })
}

// localName is the address literal of RFC 5321 section 4.1.4, for a client that
// has no name of its own in the DNS.
func (w *wire) localName() string {
	tcp, ok := w.raw.LocalAddr().(*net.TCPAddr)
	switch {
	case !ok:
		return "localhost"
	case tcp.IP.To4() != nil:
		return "[" + tcp.IP.String() + "]"
	default:
		return "[IPv6:" + tcp.IP.String() + "]"
	}
}

// security names what protects the connection, for people.
func (w *wire) security() string {
	if conn, ok := w.conn.(*tls.Conn); ok {
		return tls.VersionName(conn.ConnectionState().Version)
	}
	return "plain text"
}
