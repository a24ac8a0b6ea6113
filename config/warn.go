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
	if c.Transports.Local == nil && c.Transports.SMTP == nil {
		add("transports: none is configured, so every filing is refused")
	}
	if s := c.Transports.SMTP; s != nil {
		c.warnSMTP(*s, shared, add)
	}
	return w
}

func (c *Config) warnOperators(add func(string, ...any)) {
	if len(c.Operators) == 0 {
		add("operators: none is configured, so nobody can decide; `countersign init` makes the first")
	}
	for i, o := range c.Operators {
		if o.TokenSHA256 == "" {
			add("%s: operator %q has no terminal token, and this version has no other way to decide", indexed("operators", i), o.ID)
		}
	}
}

func (c *Config) warnSMTP(s SMTP, shared bool, add func(string, ...any)) {
	const section = "transports.smtp."
	if s.Password.IsLiteral() {
		if shared {
			add("%spassword: %s holds the password itself and can be read by others than its owner: chmod 600 it, and better write env:NAME or file:/path", section, c.Path)
		} else {
			add("%spassword: the configuration holds the password itself; better write env:NAME or file:/path", section)
		}
	}
	host, _, _ := net.SplitHostPort(s.Address)
	if s.TLS == TLSNone && !isLoopback(host) {
		add("%stls: messages go to %s unencrypted (allow_plaintext)", section, host)
	}
}
