package smtp

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"countersign/transports"
)

// How the connection is secured.
const (
	TLSStartTLS = "starttls" // RFC 3207, the default
	TLSImplicit = "implicit" // RFC 8314
	TLSNone     = "none"     // to a loopback address, or with AllowPlaintext
)

// How the session is authenticated.
const (
	AuthNone    = ""
	AuthPlain   = "plain"   // RFC 4616
	AuthLogin   = "login"   // for servers that know nothing else
	AuthXOAuth2 = "xoauth2" // Password gives the access token
)

const (
	defaultTimeout = 30 * time.Second
	// finalDotLimit bounds content and reply where the context of a Send has no
	// nearer deadline: RFC 5321 section 4.5.3.2.6. It is long on purpose. Giving up
	// early makes messages ambiguous that were delivered.
	finalDotLimit = 10 * time.Minute
	// quitLimit bounds a farewell that changes nothing.
	quitLimit = 2 * time.Second
)

// Config is one submission server and how to speak to it.
type Config struct {
	Address string // host:port; the certificate must be for the host

	TLS            string // TLSStartTLS when ""
	AllowPlaintext bool   // TLSNone to any address, but never with Auth
	CAFile         string // PEM, roots besides the system's; read for each connection that uses TLS
	RootCAs        *x509.CertPool

	From string // mailbox, "Desk <desk@example.com>"; the envelope's sender too

	Auth     string
	Username string
	// Password is asked once for each connection, before anything is dialled: a server that repeats it, at
	// whatever stage, is then recognised.
	Password func() (string, error)

	// Timeout bounds connecting and each command; 30 s when 0. The content and
	// the reply to it have the time that the context of Send leaves.
	Timeout time.Duration
	Now     func() time.Time // for the Date field; time.Now when nil
}

// A Transport submits mail to one server.
type Transport struct {
	config Config
	host   string
	from   sender
	dial   func(ctx context.Context, network, address string) (net.Conn, error)
	quit   time.Duration
}

var _ transports.Transport = (*Transport)(nil)

type sender struct {
	name string
	address
}

// New checks the configuration. It connects to nothing, reads no file and asks for
// no password.
func New(c Config) (*Transport, error) {
	if c.TLS == "" {
		c.TLS = TLSStartTLS
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" {
		return nil, fmt.Errorf("smtp: address %q is not host:port", c.Address)
	}
	if err := checkSecurity(c, host); err != nil {
		return nil, err
	}
	from, err := parseSender(c.From)
	if err != nil {
		return nil, err
	}
	return &Transport{config: c, host: host, from: from, dial: new(net.Dialer).DialContext, quit: quitLimit}, nil
}

// checkSecurity finds what could never be allowed. What depends on the address
// that the host turns out to have is checked once connected.
func checkSecurity(c Config, host string) error {
	switch c.TLS {
	case TLSStartTLS, TLSImplicit, TLSNone:
	default:
		return fmt.Errorf("smtp: tls is %q; it may be %q, %q or %q", c.TLS, TLSStartTLS, TLSImplicit, TLSNone)
	}
	switch c.Auth {
	case AuthNone:
		return nil
	case AuthPlain, AuthLogin, AuthXOAuth2:
	default:
		return fmt.Errorf("smtp: auth is %q; it may be empty, %q, %q or %q", c.Auth, AuthPlain, AuthLogin, AuthXOAuth2)
	}
	if c.Username == "" || c.Password == nil {
		return errors.New("smtp: auth needs a username and a password")
	}
	if strings.ContainsFunc(c.Username, unicode.IsControl) {
		return errors.New("smtp: the username has a control character")
	}
	if ip := net.ParseIP(host); c.TLS == TLSNone && ip != nil && !ip.IsLoopback() {
		return errPlainAuth
	}
	return nil
}

func parseSender(from string) (sender, error) {
	parsed, err := mail.ParseAddress(from)
	if err != nil {
		return sender{}, fmt.Errorf("smtp: from is not a mailbox like Desk <desk@example.com>: %w", err)
	}
	a, err := parseAddress("from", parsed.Address)
	if err != nil {
		return sender{}, fmt.Errorf("smtp: %w", err)
	}
	// A sender that only some servers take would fail message by message.
	if !a.ascii() {
		return sender{}, errors.New("smtp: the local part of from is not ASCII")
	}
	if !utf8.ValidString(parsed.Name) || strings.ContainsFunc(parsed.Name, unicode.IsControl) {
		return sender{}, errors.New("smtp: the name in from has a control character or is not valid UTF-8")
	}
	return sender{name: parsed.Name, address: a}, nil
}
