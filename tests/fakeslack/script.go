package fakeslack

import (
	"io"
	"net"
	"net/http"
	"strconv"
)

// An Outcome is what comes of one call. Those that answer fail before the call has any effect, unless they are wrapped in After.
type Outcome struct {
	effect bool
	answer func(s *Server, w http.ResponseWriter, r *http.Request, body []byte) // body: what would have been said; nil without effect
	echo   func(text string) string
	keep   int
}

// Script sets what comes of the next calls of a method, one each; the calls after them are served as usual.
func (s *Server) Script(method string, outcomes ...Outcome) {
	s.t.Helper()
	if _, known := s.methods[method]; !known {
		s.t.Fatalf("fakeslack: there is no method %q", method)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[method] = append(s.scripts[method], outcomes...)
}

// Normal serves the call as usual.
func Normal() Outcome { return Outcome{} }

// After lets the call take effect first: the message is posted, and then the answer is lost or lies.
func After(o Outcome) Outcome {
	o.effect = true
	return o
}

// Fail answers ok: false with an error code.
func Fail(code string) Outcome {
	return says(http.StatusOK, string(encode(reply{"ok": false, "error": code})))
}

// Status answers with an HTTP status and a body of any kind, such as the HTML of a proxy.
func Status(status int, body string) Outcome { return says(status, body) }

// RateLimited answers 429. The seconds of Retry-After are left out where they are negative.
// Source: https://docs.slack.dev/apis/web-api/rate-limits
func RateLimited(seconds int) Outcome {
	body := string(encode(reply{"ok": false, "error": "ratelimited"}))
	if seconds < 0 {
		return says(http.StatusTooManyRequests, body)
	}
	return says(http.StatusTooManyRequests, body, "Retry-After", strconv.Itoa(seconds))
}

func says(status int, body string, header ...string) Outcome {
	return Outcome{answer: func(_ *Server, w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if len(body) > 0 && body[0] == '{' {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
		}
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}}
}

// Reset ends the connection with RST.
func Reset() Outcome {
	return Outcome{answer: func(_ *Server, w http.ResponseWriter, _ *http.Request, _ []byte) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}}
}

// Stall never answers. It ends when the client gives up, or with the test.
func Stall() Outcome {
	return Outcome{answer: func(s *Server, _ http.ResponseWriter, r *http.Request, _ []byte) {
		select {
		case <-r.Context().Done():
		case <-s.done:
		}
		panic(http.ErrAbortHandler) // hangs up, without a word
	}}
}

// CutJSON answers 200 with the first half of the answer.
func CutJSON() Outcome {
	return Outcome{answer: func(_ *Server, w http.ResponseWriter, _ *http.Request, body []byte) {
		if body == nil {
			body = []byte(`{"ok":true,"channel":"C`)
		}
		writeJSON(w, http.StatusOK, body[:len(body)/2])
	}}
}

// Altered serves the call and echoes another text than was posted.
func Altered(change func(text string) string) Outcome { return Outcome{echo: change} }

// Truncated keeps only so many characters of the text, and says so in a warning.
func Truncated(characters int) Outcome { return Outcome{keep: characters} }
