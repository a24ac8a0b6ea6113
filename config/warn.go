package config

import (
	"fmt"
	"io/fs"
	"net"
	"runtime"
)

// isShared tells whether others than the owner may read the file. On Windows the mode says nothing about that.
func isShared(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o044 != 0
}

// warn lists what Warnings returns. shared says that others may read the configuration.
func (c *Config) warn(shared bool) []string {
	var w []string
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	c.warnOperators(add)
	if c.Transports == (Transports{}) {
		add("transports: none is configured, so every filing is refused")
	}
	if s := c.Transports.SMTP; s != nil {
		c.warnSMTP(*s, add)
	}
	for _, one := range c.secrets() {
		c.warnLiteral(one.key, one.secret, shared, add)
	}
	return w
}

func (c *Config) warnOperators(add func(string, ...any)) {
	if len(c.Operators) == 0 {
		add("operators: none is configured, so nobody can decide; `countersign init` makes the first")
	}
	for i, o := range c.Operators {
		if o.TokenSHA256 == "" && (o.SlackUser == "" || c.Internal == nil) {
			add("%s: operator %q has no terminal token, and no Slack user with an internal channel to decide in", indexed("operators", i), o.ID)
		}
	}
}

type namedSecret struct {
	key    string
	secret Secret
}

// secrets lists every secret that the configuration has a place for.
func (c *Config) secrets() []namedSecret {
	var all []namedSecret
	if t := c.Transports.SMTP; t != nil {
		all = append(all, namedSecret{"transports.smtp.password", t.Password})
	}
	if t := c.Transports.Slack; t != nil {
		all = append(all, namedSecret{"transports.slack.token", t.Token}, namedSecret{"transports.slack.app_token", t.AppToken},
			namedSecret{"transports.slack.signing_secret", t.SigningSecret})
	}
	if t := c.Transports.Telegram; t != nil {
		all = append(all, namedSecret{"transports.telegram.token", t.Token})
	}
	return append(all, namedSecret{"followups.secret", c.Followups.Secret})
}

func (c *Config) warnLiteral(key string, secret Secret, shared bool, add func(string, ...any)) {
	switch {
	case !secret.IsLiteral():
	case shared:
		add("%s: %s holds the secret itself and can be read by others than its owner: chmod 600 it, and better write env:NAME or file:/path", key, c.Path)
	default:
		add("%s: the configuration holds the secret itself; better write env:NAME or file:/path", key)
	}
}

func (c *Config) warnSMTP(s SMTP, add func(string, ...any)) {
	host, _, _ := net.SplitHostPort(s.Address)
	if s.TLS == TLSNone && !isLoopback(host) {
		add("transports.smtp.tls: messages go to %s unencrypted (allow_plaintext)", host)
	}
}
