package telegram

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"countersign/transports"
)

// A logbook is everything that the library and net/http log in all tests.
type logbook struct {
	mu    sync.Mutex
	lines []string
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(p))
	return len(p), nil
}

func (l *logbook) Println(v ...any)               { fmt.Fprintln(l, v...) }
func (l *logbook) Printf(format string, v ...any) { fmt.Fprintf(l, format, v...) }

// FAULTS 28, for the whole run: the library logs requests and replies when it debugs,
// and URLs when it polls. Neither is ever on, so its log stays empty.
func TestMain(m *testing.M) {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"} {
		_ = os.Unsetenv(name) // each test that wants a proxy has its own
	}
	var library, others logbook
	if err := tgbotapi.SetLogger(&library); err != nil {
		panic(err)
	}
	log.SetOutput(&others)
	code := m.Run()
	if len(library.lines) > 0 {
		fmt.Fprintf(os.Stderr, "the library logged: %q\n", library.lines)
		code = 1
	}
	if hide := newSecrets(token); hide.In(strings.Join(others.lines, "\n")) {
		fmt.Fprintln(os.Stderr, "the token was logged")
		code = 1
	}
	os.Exit(code)
}

// forms are what a token might look like where it turns up.
func forms() map[string]string {
	var all strings.Builder
	for _, octet := range []byte(token) {
		fmt.Fprintf(&all, "%%%02X", octet)
	}
	once := url.QueryEscape(token)
	return map[string]string{
		"as it is":           token,
		"its second part":    key,
		"lower case":         strings.ToLower(token),
		"in a URL":           "https://api.telegram.org/bot" + token + "/getMe",
		"escaped":            once,
		"escaped twice":      url.QueryEscape(once),
		"escaped three":      url.QueryEscape(url.QueryEscape(once)),
		"every octet":        all.String(),
		"small escapes":      strings.ToLower(once),
		"beside bad escapes": "100% %zz %" + once + "%4",
		"base64":             base64.StdEncoding.EncodeToString([]byte(token)),
		"base64 of a URL":    base64.URLEncoding.EncodeToString([]byte("/bot" + token + "/getMe")),
		"base64 of a URL, 1": base64.RawStdEncoding.EncodeToString([]byte("x/bot" + token + "/x")),
		"base64 of a URL, 2": base64.RawStdEncoding.EncodeToString([]byte("xy/bot" + token)),
		"hex":                hex.EncodeToString([]byte(token)),
	}
}

func TestSecretsInWords(t *testing.T) {
	hide := newSecrets(token)
	for name, form := range forms() {
		if got := hide.clean("before " + form + " after"); got != withheld {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, words := range []string{"", "Bad Request: chat not found", "100% sure %41%zz%", "bot 4242 " + key[:7], "the reply isn't JSON"} {
		if got := hide.clean(words); got != words {
			t.Errorf("%q became %q", words, got)
		}
	}
}

// FAULTS 28: an error is kept as far as it can be, and never with the token in it,
// wherever in its chain it is.
func TestSecretsInErrors(t *testing.T) {
	hide := newSecrets(token)
	withURL := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://api.telegram.org/bot" + token + "/sendMessage", Err: err}
	}
	for name, err := range map[string]error{
		"reset":       withURL(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}),
		"twice":       withURL(fmt.Errorf("again: %w", withURL(syscall.ECONNRESET))),
		"in a field":  fmt.Errorf("a: %w", hiddenError{token, syscall.ECONNRESET}),
		"below":       errors.Join(errors.New("b"), fmt.Errorf("c: %w", withURL(syscall.ECONNRESET))),
		"only a URL":  withURL(nil),
		"words":       errors.New("malformed HTTP status code /bot4242%3A" + key),
		"too long":    errors.New(strings.Repeat("x", 3000)),
		"not UTF-8":   errors.New("\xff"),
		"nothing bad": syscall.ECONNRESET,
	} {
		got := hide.scrub(err)
		for _, e := range chain(got) {
			if text := fmt.Sprintf("%s %+v %#v", e, e, e); hide.In(text) || strings.Contains(text, key) {
				t.Errorf("%s: the token is in %s", name, text)
			}
		}
		if len(got.Error()) > transports.MaxWords || strings.Contains(got.Error(), "\xff") {
			t.Errorf("%s: %q", name, got)
		}
		if keeps := name == "reset" || name == "twice" || name == "below" || name == "nothing bad"; keeps != errors.Is(got, syscall.ECONNRESET) {
			t.Errorf("%s became %v", name, got)
		}
	}
}

// hiddenError has in a field what it doesn't say.
type hiddenError struct {
	request string
	err     error
}

func (e hiddenError) Error() string { return "failed" }
func (e hiddenError) Unwrap() error { return e.err }

func chain(err error) []error {
	all := []error{err}
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		if next := u.Unwrap(); next != nil {
			all = append(all, chain(next)...)
		}
	case interface{ Unwrap() []error }:
		for _, next := range u.Unwrap() {
			all = append(all, chain(next)...)
		}
	}
	return all
}

// FAULTS 28: reset, names, TLS and lies, at every step.
func TestNoTokenInAnyError(t *testing.T) {
	dialError := func(words string) *dialler {
		return &dialler{fail: func(n int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: words, Name: "bot" + token + ".example.com"}}
		}}
	}
	lies := "HTTP/1.1 " + token + "\r\n\r\n"
	for name, c := range map[string]struct {
		answers map[string]answer
		dial    *dialler
	}{
		"name":            {nil, dialError("no such host")},
		"reset":           {map[string]answer{getMe: {then: reset}}, nil},
		"bad status":      {map[string]answer{getMe: {raw: lies, then: cut}}, nil},
		"bad header":      {map[string]answer{getMe: {raw: "HTTP/1.1 200 OK\r\n" + token + "\r\n\r\n", then: cut}}, nil},
		"bad JSON":        {map[string]answer{getMe: {body: `{"ok":true,"result":"` + token + `"}`}}, nil},
		"bad number":      {map[string]answer{getMe: {body: `{"ok":true,"result":{"id":"` + token + `"}}`}}, nil},
		"words":           {map[string]answer{getMe: no(401, "/bot"+token+"/getMe")}, nil},
		"undocumented":    {map[string]answer{getMe: no(418, "/bot"+url.QueryEscape(token)+"/getMe")}, nil},
		"redirect":        {map[string]answer{getMe: {raw: "HTTP/1.1 302 X\r\nLocation: http://bot" + token + "\r\nContent-Length: 0\r\n\r\n"}}, nil},
		"a bot's name":    {map[string]answer{getMe: {body: `{"ok":true,"result":{"id":1,"username":"` + key + `"}}`}}, nil},
		"chat, bad words": {map[string]answer{getChat: no(400, token)}, nil},
		"send, status":    {map[string]answer{sendMessage: {raw: lies, then: cut}}, nil},
		"send, words":     {map[string]answer{sendMessage: no(403, key)}, nil},
		"send, number":    {map[string]answer{sendMessage: {body: `{"ok":true,"result":{"message_id":"` + token + `"}}`}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.answers)
			tr := open(t, s, func(config *Config) {
				if c.dial != nil {
					config.Dial = c.dial.dial
				}
			})
			r, err := connectAndSend(t.Context(), tr)
			for _, words := range []string{r.Coordinate, r.Detail} {
				if strings.Contains(words, key) {
					t.Errorf("the token is in %q", words)
				}
			}
			if err == nil && name != "a bot's name" {
				t.Error("no error")
			}
			if err == nil {
				return
			}
			for _, e := range chain(err) {
				if text := fmt.Sprintf("%s %+v %#v", e, e, e); newSecrets(token).In(text) {
					t.Errorf("the token is in %s", text)
				}
			}
		})
	}
}

func connectAndSend(ctx context.Context, tr *Transport) (transports.Receipt, error) {
	session, err := tr.Connect(ctx)
	if err != nil {
		return transports.Receipt{}, err
	}
	defer session.Close()
	if err := session.Prepare(ctx, offer()); err != nil {
		return transports.Receipt{}, err
	}
	return session.Send(ctx, claimed(offer()))
}

// A token is asked for at each Connect, and one that isn't one goes nowhere.
func TestToken(t *testing.T) {
	s := serve(t, nil)
	asked := 0
	tr := open(t, s, func(c *Config) {
		c.Token = func() (string, error) {
			asked++
			return token, nil
		}
	})
	connect(t, tr)
	connect(t, tr)
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
	for _, bad := range []string{"", "4242", key, token + "\n", token + "/x", token + "%2F", "../" + token, token + "?", "4242:é", token + "#"} {
		tr := open(t, s, func(c *Config) { c.Token = func() (string, error) { return bad, nil } })
		_, err := tr.Connect(t.Context())
		if stage, _ := stageAndCode(err); stage != stageToken || strings.Contains(err.Error(), "4242") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	tr = open(t, s, func(c *Config) { c.Token = func() (string, error) { return "", errors.New("env:X is not set") } })
	if _, err := tr.Connect(t.Context()); err == nil || err.Error() != "not prepared at token: env:X is not set" {
		t.Errorf("got %v", err)
	}
	tr = open(t, s, func(c *Config) {
		c.Token = func() (string, error) { return token, fmt.Errorf("%s is a token of old", token) }
	})
	if _, err := tr.Connect(t.Context()); err == nil || err.Error() != "not prepared at token: "+withheld {
		t.Errorf("got %v", err)
	}
	if got := s.methods(); got != "getMe getMe" {
		t.Errorf("asked for %s", got)
	}
}
