package slack

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	slackgo "github.com/slack-go/slack"

	"countersign/transports"
)

// hasToken looks for the token in every form in which it might stand.
func hasToken(words string) bool {
	words = strings.ToLower(words)
	for _, form := range []string{
		token, "PlantedSecret", url.QueryEscape(token), url.PathEscape(token), hex.EncodeToString([]byte(token)),
		base64.RawStdEncoding.EncodeToString([]byte(token)), base64.RawURLEncoding.EncodeToString([]byte(token)),
	} {
		if strings.Contains(words, strings.ToLower(form)) {
			return true
		}
	}
	return false
}

// FAULTS 28: whatever goes wrong, and with the library's debug log on, the token is in no
// error, wrapped ones and their fields included. The standard logger is looked at, too.
func TestTokenIsInNoError(t *testing.T) {
	var standard, debug lockedBuffer
	before := log.Writer()
	log.SetOutput(&standard)
	t.Cleanup(func() { log.SetOutput(before) })

	asSlackLogs := slackgo.OptionLog(log.New(&debug, "", 0))
	forms := []string{token, url.QueryEscape(token), base64.StdEncoding.EncodeToString([]byte(token)), hex.EncodeToString([]byte(token))}
	for _, form := range forms {
		for name, script := range scriptsWith(form) {
			f := newFakeSlack(t)
			var change []func(*Config)
			if script.dial != nil {
				change = append(change, func(c *Config) {
					c.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, script.dial }
				})
			}
			f.on(script.method, script.answer)
			tr := f.transport(change...)
			tr.debug = []slackgo.Option{slackgo.OptionDebug(true), asSlackLogs}
			r, err := deliverAnyhow(t, tr)
			if err == nil && r.Detail == "" {
				t.Errorf("%s: nothing went wrong", name)
			}
			all := fmt.Sprintf("%+v %v %+v %#v", r, err, err, err)
			for e := err; e != nil; e = errors.Unwrap(e) {
				all += fmt.Sprintf("\n%v %+v %#v", e, e, e)
			}
			if hasToken(all) {
				t.Errorf("%s, %q: the token is in\n%s", name, form, all)
			}
		}
	}
	if hasToken(standard.String()) {
		t.Errorf("the token is in the standard log:\n%s", standard.String())
	}
	for line := range strings.Lines(debug.String()) {
		if strings.Contains(line, "Sending request") && hasToken(line) {
			t.Errorf("the library logs the token: %s", line)
		}
	}
}

// A lockedBuffer takes what goroutines of net/http may still log.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

type script struct {
	method string
	answer answer
	dial   error
}

func scriptsWith(form string) map[string]script {
	no := `{"ok":false,"error":"` + form + `","needed":"` + form + `"}`
	known := `{"ok":false,"error":"missing_scope","needed":"` + form + `","response_metadata":{"messages":["` + form + `"]}}`
	all := map[string]script{
		"dial": {method: "x", dial: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: form}}},
	}
	for _, method := range []string{"auth.test", "conversations.info", "chat.postMessage"} {
		for name, a := range map[string]answer{
			"code": says(200, no), "words": says(200, known), "HTML": says(502, form), "not JSON": says(200, form),
			"no HTTP": octets(form + "\r\n\r\n"), "status": octets("HTTP/1.1 " + form + "\r\n\r\n"),
			"header": octets("HTTP/1.1 200 OK\r\n" + form + "\r\n\r\n"), "length": octets("HTTP/1.1 200 OK\r\nContent-Length: " + form + "\r\n\r\n"),
			"chunk": octets("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + form + "\r\n"), "encoding": octets("HTTP/1.1 200 OK\r\nTransfer-Encoding: " + form + "\r\n\r\n"),
			"moved": says(302, "", "Location: https://evil.example/"+form), "channel": says(200, `{"ok":true,"channel":{"id":"`+form+`"},"team_id":"`+form+`"}`),
			"reset": reset,
		} {
			if method != "auth.test" || name != "channel" { // which says yes
				all[method+" "+name] = script{method: method, answer: a}
			}
		}
	}
	all["warning"] = script{method: "chat.postMessage", answer: postsWith(func(string) string { return form }, `,"warning":"`+form+`"`)}
	return all
}

// deliverAnyhow goes as far as it can.
func deliverAnyhow(t *testing.T, tr *Transport) (transports.Receipt, error) {
	s, err := tr.Connect(t.Context())
	if err != nil {
		return transports.Receipt{}, err
	}
	defer s.Close()
	if err := s.Prepare(t.Context(), message()); err != nil {
		return transports.Receipt{}, err
	}
	return s.Send(t.Context(), claimed(message()))
}

// The library's log is off, as long as nobody switches it on.
func TestLibraryLogsNothing(t *testing.T) {
	f := newFakeSlack(t)
	tr := f.transport()
	s := &session{t: tr, token: token, hide: newSecrets(token)}
	asked := false
	_, _ = s.ask(t.Context(), authTest, func(_ context.Context, api *slackgo.Client) error {
		asked = true
		if api.Debug() {
			t.Error("the library's debug log is on")
		}
		return nil
	})
	if !asked {
		t.Error("not asked")
	}
}
