package slack

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/transports"
	"countersign/transports/memory"
)

const (
	defaultTimeout = 30 * time.Second
	// sendLimit bounds a Send whose context has no nearer deadline. It is long on
	// purpose: giving up early makes messages ambiguous that were posted.
	sendLimit = 2 * time.Minute
	// channelMemory is how long what Slack said of a channel is believed.
	channelMemory = 5 * time.Minute
	// memorySize bounds what is remembered of channels.
	memorySize = 4096
)

// Config is one app in one workspace.
type Config struct {
	// Token gives the bot token. It is asked once for each Connect and Resolve.
	Token func() (string, error)
	// APIURL is Slack's when "". Plain http is for loopback addresses.
	APIURL string
	// Team is the id of the workspace that the token must be for; "" is any.
	Team string

	// TextLimit is the most UTF-16 units of a text, up to MaxText; DefaultText when 0.
	TextLimit int
	// Timeout bounds each Connect and Prepare, and each page that Resolve reads; 30 s
	// when 0. A Send has the time that its context leaves.
	Timeout time.Duration

	RootCAs *x509.CertPool                                                       // the system's when nil
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // net.Dialer's when nil
	Now     func() time.Time                                                     // time.Now when nil
}

// A Transport posts as one app.
type Transport struct {
	config   Config
	endpoint string // ends in a slash
	scheme   string
	address  string // host:port
	tls      *tls.Config

	known *memory.Memory[place] // channels that can be posted to
	quiet *memory.Memory[place] // channels that Slack wants left alone for a while

	// Tests set these: where a proxy is read from, and what the library logs.
	environment func(*http.Request) (*url.URL, error)
	debug       []slackgo.Option
}

var _ transports.Transport = (*Transport)(nil)

var teamID = regexp.MustCompile(`^[TE][A-Z0-9]+$`)

// New checks the configuration. It connects to nothing and asks for no token.
func New(c Config) (*Transport, error) {
	c = c.withDefaults()
	switch {
	case c.Token == nil:
		return nil, errors.New("slack: there is no token")
	case c.TextLimit < 1 || c.TextLimit > MaxText:
		return nil, fmt.Errorf("slack: text_limit is %d; it may be 1 to %d", c.TextLimit, MaxText)
	case c.Team != "" && !teamID.MatchString(c.Team):
		return nil, fmt.Errorf("slack: team %q is not a workspace's id like T0123ABCD", c.Team)
	}
	u, err := parseAPIURL(c.APIURL)
	if err != nil {
		return nil, err
	}
	return &Transport{
		config:   c,
		endpoint: u.String(),
		scheme:   u.Scheme,
		address:  hostPort(u),
		tls: &tls.Config{
			RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12,
			ClientSessionCache: tls.NewLRUClientSessionCache(0), // each request has a handshake
		},
		known: memory.New[place](memorySize),
		quiet: memory.New[place](memorySize),

		environment: http.ProxyFromEnvironment,
	}, nil
}

func (c Config) withDefaults() Config {
	if c.APIURL == "" {
		c.APIURL = slackgo.APIURL
	}
	if c.TextLimit == 0 {
		c.TextLimit = DefaultText
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// parseAPIURL takes a plain base URL. It isn't repeated in errors: one with a password
// in it is among those refused.
func parseAPIURL(base string) (*url.URL, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return nil, errors.New("slack: api_url is not a URL like https://slack.com/api/")
	case u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("slack: api_url has a user, a query or a fragment; it must be like https://slack.com/api/")
	case u.Scheme == "http" && !mayBeLoopback(u.Hostname()):
		return nil, fmt.Errorf("slack: api_url: %w", errPlaintext)
	}
	if !strings.HasSuffix(u.Path, "/") {
		u.Path += "/"
	}
	return u, nil
}

// mayBeLoopback finds what could never be. What a name leads to is checked once
// connected.
func mayBeLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip == nil || ip.IsLoopback()
}

func hostPort(u *url.URL) string {
	switch {
	case u.Port() != "":
		return net.JoinHostPort(u.Hostname(), u.Port())
	case u.Scheme == "https":
		return net.JoinHostPort(u.Hostname(), "443")
	default:
		return net.JoinHostPort(u.Hostname(), "80")
	}
}

// token asks for the token. What could not be one is not shown.
func (t *Transport) token() (string, error) {
	token, err := t.config.Token()
	switch {
	case err != nil:
		return "", err
	case token == "":
		return "", errors.New("the token is empty")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the token has a blank, a control character or a non-ASCII character")
	}
	return token, nil
}
