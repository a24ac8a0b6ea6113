package fakeslack

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// SignedRequest is an interaction as Slack posts it to the app's request URL, signed with the signing secret at a moment. It can be sent
// by a client or given to a handler.
// Source: https://docs.slack.dev/authentication/verifying-requests-from-slack
func (s *Server) SignedRequest(target string, payload []byte, at time.Time) *http.Request {
	s.t.Helper()
	body := []byte("payload=" + url.QueryEscape(string(payload)))
	r, err := http.NewRequest(http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		s.t.Fatalf("fakeslack: %v", err)
	}
	seconds := strconv.FormatInt(at.Unix(), 10)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	r.Header.Set("X-Slack-Request-Timestamp", seconds)
	r.Header.Set("X-Slack-Signature", Sign(s.config.secret, seconds, body))
	return r
}

// Sign is the signature of a body: "v0=" and the HMAC-SHA256 of "v0:timestamp:body" in hex.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}
