package config

import (
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

func (k *checker) notify(n Notify) {
	const year = 365 * 24 * time.Hour
	between(k, "notify.remind_p0", n.RemindP0, 0, year)
	between(k, "notify.remind_p1", n.RemindP1, 0, year)
	between(k, "notify.remind_p2", n.RemindP2, 0, year)
	between(k, "notify.remind_p3", n.RemindP3, 0, year)
}

// followups takes a command or a URL, and nothing that belongs to the other: what is configured and not used would look like protection.
func (k *checker) followups(f Followups) {
	const section = "followups."
	if len(f.Command) > 0 {
		k.command(section+"command", f.Command)
	} else if len(f.Env) > 0 {
		k.report(section+"env", "is for a command, and there is none; set command, or remove it")
	}
	k.variables(section+"env", f.Env)
	switch {
	case f.URL != "" && len(f.Command) > 0:
		k.report(section+"url", "and command can't both be set; remove one of them")
	case f.URL == "" && !f.Secret.IsZero():
		k.report(section+"secret", "signs what is posted to url, and there is none; set url, or remove it")
	case f.URL != "":
		k.hookURL(section+"url", f.URL)
		if f.Secret.IsZero() {
			k.report(section+"secret", "is missing: the receiver knows by it who posts; best as env:NAME or file:/path")
		}
	}
	between(k, section+"timeout", f.Timeout, time.Second, 10*time.Minute)
}

// command is a program by absolute path, with its arguments. Whether it is there is found out when it is run.
func (k *checker) command(key string, words []string) {
	if !filepath.IsAbs(words[0]) {
		k.report(indexed(key, 0), "must be the absolute path of a program, is %q; it is run without a shell", words[0])
	}
	if strings.ContainsRune(strings.Join(words, ""), 0) {
		k.report(key, "must not contain a NUL")
	}
}

// variables does not repeat a name that is none: it may be NAME=secret.
func (k *checker) variables(key string, names []string) {
	for i, name := range names {
		if !variable.MatchString(name) {
			k.report(indexed(key, i), "must be the name of an environment variable, such as PATH, without a value")
		}
	}
}

// hookURL does not repeat the URL: with many services the path is the secret.
func (k *checker) hookURL(key, text string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || !isLine(text):
		k.report(key, "must be a URL without login and fragment, such as https://agents.example.com/follow-ups")
	case u.Scheme == "http" && !isLoopback(u.Hostname()), u.Scheme != "http" && u.Scheme != "https":
		k.report(key, "must be https, or http to a server on this machine")
	}
}
