package config

import (
	"cmp"
	"errors"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/operator"
	"countersign/plaintext"
)

// checker looks at the values of a configuration whose shape is right.
type checker struct{ findings }

func (c *Config) check(at lines) []Problem {
	k := &checker{findings{lines: at}}
	k.ledger(c.Ledger)
	k.operators(c.Operators)
	if c.Internal != nil {
		k.internal(*c.Internal)
		if c.Transports.Slack == nil {
			k.report("internal", "needs the section [transports.slack]: its bot is the one that tells")
		}
	}
	if c.Transports.Local != nil {
		k.path("transports.local.dir", c.Transports.Local.Dir)
	}
	if c.Transports.SMTP != nil {
		k.smtp(*c.Transports.SMTP)
	}
	if c.Transports.Slack != nil {
		k.slack(*c.Transports.Slack)
	}
	if c.Transports.Telegram != nil {
		k.telegram(*c.Transports.Telegram)
	}
	k.deliver(c.Deliver)
	k.notify(c.Notify)
	between(k, "agents.max_waiting", c.Agents.MaxWaiting, 0, 1_000_000)
	between(k, "agents.max_hourly", c.Agents.MaxHourly, 0, 1_000_000)
	k.followups(c.Followups)
	k.limits(c.Limits)
	return k.problems
}

// between reports a value outside of low and high, which are both allowed.
func between[T cmp.Ordered](k *checker, key string, value, low, high T) {
	if value < low || high < value {
		k.report(key, "must be between %v and %v, is %v", low, high, value)
	}
}

func (k *checker) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		k.report(key, "must be one of %s, is %q", quoteAll(allowed), value)
	}
}

func quoteAll(values []string) string {
	var all []string
	for _, v := range values {
		all = append(all, strconv.Quote(v))
	}
	return strings.Join(all, ", ")
}

func (k *checker) path(key, path string) {
	switch {
	case path == "":
		k.report(key, "must not be empty")
	case strings.ContainsRune(path, 0):
		k.report(key, "must not contain a NUL")
	}
}

func (k *checker) ledger(l Ledger) {
	k.path("ledger.path", l.Path)
	between(k, "ledger.busy_timeout", l.BusyTimeout, time.Millisecond, 10*time.Minute)
}

func (k *checker) operators(entries []operator.Entry) {
	_, err := operator.NewDirectory(entries)
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, one := range all {
		var entry *operator.EntryError
		if !errors.As(one, &entry) {
			k.report("operators", "%v", one)
			continue
		}
		k.report(join(indexed("operators", entry.Index), entry.Field), "%s (operator %q)", entry.Reason, entry.ID)
	}
}

// slackChannel is a public or private channel. A direct message has an id with D, and is no place for notices.
var slackChannel = regexp.MustCompile(`^[CG][A-Z0-9]+$`)

// internal is wanted whole: a destination that is named by half can't be verified.
func (k *checker) internal(i Internal) {
	const (
		team    = "the workspace id, such as T0EXAMPLE"
		channel = "the id of a channel, such as C0INTERNAL"
	)
	if i.Platform == "" {
		k.report("internal.platform", `is missing: "slack"`)
	} else {
		k.oneOf("internal.platform", i.Platform, "slack")
	}
	switch {
	case i.Team == "":
		k.report("internal.team", "is missing: "+team)
	case !operator.IsSlackTeam(i.Team):
		k.report("internal.team", "must be "+team+", is %q", i.Team)
	}
	switch {
	case i.Channel == "":
		k.report("internal.channel", "is missing: "+channel)
	case !slackChannel.MatchString(i.Channel):
		k.report("internal.channel", "must be "+channel+", no name and no direct message; is %q", i.Channel)
	}
}

func (k *checker) smtp(s SMTP) {
	const section = "transports.smtp."
	host := k.address(section+"address", s.Address)
	k.oneOf(section+"tls", s.TLS, TLSStartTLS, TLSImplicit, TLSNone)
	if s.TLS == TLSNone && host != "" && !isLoopback(host) && !s.AllowPlaintext {
		k.report(section+"tls", `"none" would send text and password readable to %s; use "starttls" or "implicit", or set allow_plaintext = true`, host)
	}
	if strings.ContainsRune(s.CAFile, 0) {
		k.report(section+"ca_file", "must not contain a NUL")
	}
	k.from(section+"from", s.From)
	k.login(section, s)
	between(k, section+"timeout", s.Timeout, time.Second, 10*time.Minute)
}

// address reports what isn't host:port, and returns the host.
func (k *checker) address(key, address string) (host string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || !isLine(host) {
		k.report(key, "must be host:port, such as smtp.example.com:587, is %q", address)
		return ""
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		k.report(key, "must end in a port between 1 and 65535, is %q", address)
	}
	return host
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (k *checker) from(key, from string) {
	address, err := mail.ParseAddress(from)
	switch {
	case from == "":
		k.report(key, "is missing: the address that messages come from")
	case err != nil:
		k.report(key, "must be one mail address, such as Desk <desk@example.com>, is %q", from)
	case !isLine(from) || !isLine(address.Name) || !isLine(address.Address):
		k.report(key, "must not contain control or hidden characters, is %q", from)
	}
}

// isLine tells whether s is as cleaning would leave it, and hides nothing.
func isLine(s string) bool {
	clean, err := plaintext.Line(s)
	return err == nil && clean == s && !plaintext.Hidden(s).Any()
}

// login takes neither half of a login: what is configured and not used would look like protection.
func (k *checker) login(section string, s SMTP) {
	k.oneOf(section+"auth", s.Auth, AuthNone, AuthPlain, AuthLogin, AuthXOAuth2)
	switch {
	case s.Auth == AuthNone && (s.Username != "" || !s.Password.IsZero()):
		k.report(section+"auth", `is "", so username and password would not be used; set it to "plain", "login" or "xoauth2", or remove them`)
	case s.Auth != AuthNone && s.Username == "":
		k.report(section+"username", "is missing: auth = %q needs it", s.Auth)
	}
	if s.Auth != AuthNone && s.Password.IsZero() {
		k.report(section+"password", "is missing: auth = %q needs it", s.Auth)
	}
}

func (k *checker) slack(s Slack) {
	const section = "transports.slack."
	k.token(section+"token", s.Token)
	k.apiURL(section+"api_url", s.APIURL)
	between(k, section+"text_limit", s.TextLimit, 1, 40_000)
	between(k, section+"timeout", s.Timeout, time.Second, 10*time.Minute)
}

func (k *checker) telegram(t Telegram) {
	const section = "transports.telegram."
	k.token(section+"token", t.Token)
	k.apiURL(section+"api_url", t.APIURL)
	between(k, section+"timeout", t.Timeout, time.Second, 10*time.Minute)
}

func (k *checker) token(key string, token Secret) {
	if token.IsZero() {
		k.report(key, "is missing: the bot's token, best as env:NAME or file:/path")
	}
}

// apiURL lets a token go to an encrypted server, or to one on this machine.
func (k *checker) apiURL(key, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !isLine(text):
		k.report(key, "must be the URL of a server without login, query and fragment")
	case u.Scheme == "http" && !isLoopback(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		k.report(key, "must be https, or http to a server on this machine, is %q", text)
	}
}

func (k *checker) deliver(d Deliver) {
	between(k, "deliver.timeout", d.Timeout, time.Second, 15*time.Minute)
	between(k, "deliver.rate_limit_waits", d.RateLimitWaits, 0, 5)
	between(k, "deliver.concurrency", d.Concurrency, 1, 64)
	between(k, "deliver.hold", d.Hold, 0, 7*24*time.Hour)
}

// limits have upper bounds too: the ledger keeps every filing, and an operator has to read it.
func (k *checker) limits(l Limits) {
	between(k, "limits.text", l.Text, 1, 1_000_000)
	between(k, "limits.subject", l.Subject, 1, 998)
	between(k, "limits.summary", l.Summary, 1, 10_000)
	between(k, "limits.context", l.Context, 1, 100_000)
	between(k, "limits.counterparty", l.Counterparty, 1, 1_000)
	between(k, "limits.channel", l.Channel, 1, 10_000)
	between(k, "limits.thread", l.Thread, 1, 998)
	between(k, "limits.user", l.User, 1, 1_000)
}
