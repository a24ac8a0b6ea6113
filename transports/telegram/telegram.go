package telegram

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"countersign/transports"
	"countersign/transports/memory"
)

const (
	// DefaultAPIURL is where Telegram itself serves the Bot API.
	DefaultAPIURL = "https://api.telegram.org"

	defaultTimeout = 30 * time.Second
	// sendLimit bounds a Send whose context has no nearer deadline. It is long on
	// purpose: giving up early makes messages ambiguous that were sent.
	sendLimit = 5 * time.Minute
	// chatMemory is how long a yes of getChat is believed.
	chatMemory = 10 * time.Minute
	// maxRemembered bounds what is remembered of chats, each way.
	maxRemembered = 4096
)

// Config is one bot.
type Config struct {
	// Token is asked once for each Connect, for a token like 123456:ABC-DEF.
	Token func() (string, error)

	// APIURL is the server, without /bot; DefaultAPIURL when "". It is https, or
	// http to a loopback address, for a Bot API server on this machine.
	APIURL string

	// CheckChat lets Prepare ask getChat for chats it hasn't asked for lately. Off,
	// a chat that doesn't exist or threw the bot out is found only by Send.
	CheckChat bool

	// Timeout bounds Connect and each Prepare; 30 s when 0. A Send has the time that
	// its context leaves.
	Timeout time.Duration

	Now func() time.Time // for what is remembered; time.Now when nil

	RootCAs *x509.CertPool // nil: the system's
	// Dial opens connections; a net.Dialer's DialContext when nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Transport sends as one bot. What it knows of chats is shared by its sessions.
type Transport struct {
	config   Config
	endpoint string // as the library wants it, a format of token and method
	plain    bool   // http

	known *memory.Memory[chatKey] // chats that getChat said yes to
	flood *memory.Memory[chatKey] // chats that took no more messages for a while
}

var _ transports.Transport = (*Transport)(nil)

// New checks the configuration. It connects to nothing and asks for no token.
func New(c Config) (*Transport, error) {
	if c.Token == nil {
		return nil, errors.New("telegram: there is no token")
	}
	if c.APIURL == "" {
		c.APIURL = DefaultAPIURL
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	server, err := parseServer(c.APIURL)
	if err != nil {
		return nil, err
	}
	return &Transport{
		config:   c,
		endpoint: strings.ReplaceAll(strings.TrimRight(c.APIURL, "/"), "%", "%%") + "/bot%s/%s",
		plain:    server.Scheme == "http",
		known:    memory.New[chatKey](maxRemembered),
		flood:    memory.New[chatKey](maxRemembered),
	}, nil
}

var errPlaintext = errors.New("plain http is only for loopback addresses, for the token is part of every request")

// parseServer finds what could never be allowed. Where a name leads is checked once
// connected. The URL itself is not in its errors: it may hold a password.
func parseServer(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "" {
		return nil, errors.New("telegram: api_url is not a URL like " + DefaultAPIURL)
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errors.New("telegram: api_url has more than scheme, host and path")
	}
	switch u.Scheme {
	case "https":
	case "http":
		if ip := net.ParseIP(u.Hostname()); ip != nil && !ip.IsLoopback() {
			return nil, fmt.Errorf("telegram: api_url: %w", errPlaintext)
		}
	default:
		return nil, errors.New("telegram: api_url is neither https nor http")
	}
	return u, nil
}

// tokenForm keeps a token from being more than one part of a URL's path.
var tokenForm = regexp.MustCompile(`^[0-9]{1,20}:[A-Za-z0-9_-]{1,200}$`)

var errToken = errors.New("the token doesn't look like 123456:ABC-DEF; it is not shown here")

// token asks for the token. Nobody knows what an error of a foreign function says
// about the secret it failed to give, so it must not have it.
func (t *Transport) token() (string, error) {
	token, err := t.config.Token()
	if err != nil {
		return "", newSecrets(token).scrub(err)
	}
	if !tokenForm.MatchString(token) {
		return "", errToken
	}
	return token, nil
}
