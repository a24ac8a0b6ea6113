package hook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"countersign/transports/secret"
)

// The headers of a signed follow-up.
const (
	TimestampHeader = "Countersign-Timestamp" // when it was posted, in Unix seconds
	SignatureHeader = "Countersign-Signature" // see Sign
)

// maxAnswer bounds what is read of an answer's header, and of its body, in bytes.
const maxAnswer = 64 << 10

var (
	errNoSecret = errors.New("there is no secret to sign with")
	errNoURL    = errors.New("the webhook's URL is none, or neither https nor http")
	errLoopback = errors.New("plain http is for this machine only; use https")
	errProxy    = errors.New("the proxy in the environment is not a URL")
)

// WebhookConfig says where follow-ups are posted.
type WebhookConfig struct {
	URL     string                 // https, or http to a loopback address; may hold a secret
	Secret  func() (string, error) // read when something is posted; its error is shown
	Timeout time.Duration          // of one post, the answer included; 0 is 10 s
	Now     func() time.Time       // time.Now
}

// Webhook posts each follow-up to a URL, signed. An answer of 2xx says that it was taken. No redirect is followed: the signature is
// meant for one receiver.
type Webhook struct {
	config WebhookConfig
	url    *url.URL
	client *http.Client
}

var _ Receiver = (*Webhook)(nil)

// NewWebhook returns the webhook. It reads no secret and dials nobody; the error is about the URL, and does not repeat it.
func NewWebhook(c WebhookConfig) (*Webhook, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errNoURL
	}
	if c.Timeout == 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	w := &Webhook{config: c, url: u}
	w.client = &http.Client{
		Timeout:       c.Timeout,
		Transport:     w.transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return w, nil
}

func (w *Webhook) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxResponseHeaderBytes = maxAnswer
	t.DisableKeepAlives = true // minutes may pass until the next one
	t.Proxy = func(r *http.Request) (*url.URL, error) {
		proxy, err := http.ProxyFromEnvironment(r)
		if err != nil {
			return nil, errProxy // its own words repeat the proxy's login
		}
		return proxy, nil
	}
	if w.url.Scheme == "http" {
		t.Proxy = nil
		// A name may lead anywhere: only the address that it led to tells.
		t.DialContext = (&net.Dialer{Timeout: w.config.Timeout, Control: onlyLoopback}).DialContext
	}
	return t
}

func onlyLoopback(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return errLoopback
	}
	return nil
}

// Ready tells whether the secret can be read.
func (w *Webhook) Ready() error {
	_, err := w.secret()
	return err
}

func (w *Webhook) secret() (string, error) {
	s, err := w.config.Secret()
	if err == nil && s == "" {
		err = errNoSecret
	}
	return s, err
}

// Hand posts once. Only the transport's own repetition is left on: it happens when no byte was written yet.
func (w *Webhook) Hand(ctx context.Context, body []byte) error {
	key, err := w.secret()
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url.String(), bytes.NewReader(body))
	if err != nil {
		return errNoURL // its own words repeat the URL
	}
	now := w.config.Now()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "countersign")
	r.Header.Set(TimestampHeader, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(SignatureHeader, Sign(key, now, body))
	return w.post(r, secret.Of(key, longer(w.url.Path), longer(w.url.RawQuery)))
}

func (w *Webhook) post(r *http.Request, hide secret.Forms) error {
	answer, err := w.client.Do(r)
	if err != nil {
		return errors.New(hide.Clean(reason(err)))
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer) // a receiver that is cut off while it answers may take that for a failure
	switch {
	case answer.StatusCode >= 200 && answer.StatusCode < 300:
		return nil
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return fmt.Errorf("the webhook answered with status %d; redirects are not followed", answer.StatusCode)
	}
	return fmt.Errorf("the webhook answered with status %d", answer.StatusCode)
}

// longer drops a part of the URL that is too short to be a secret, and would be found in every other word.
func longer(part string) string {
	if len(part) < 4 {
		return ""
	}
	return part
}

// reason takes the URL off an error of net/http.
func reason(err error) string {
	timedOut := false
	if at, ok := errors.AsType[*url.Error](err); ok {
		err, timedOut = at.Err, at.Timeout()
	}
	if timedOut {
		return "the webhook did not answer in time"
	}
	return "the webhook could not be reached: " + err.Error()
}

// Sign returns the signature of a body that is posted at a time: "v1=" and the HMAC-SHA256 (RFC 2104) over "v1:", the time in Unix
// seconds, ":" and the body, in lower-case hex. A receiver makes it anew from the header and the bytes it got, compares the two in
// constant time, and refuses a time that is minutes away from its own.
func Sign(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v1:%d:%s", at.Unix(), body)
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}
