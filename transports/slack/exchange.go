package slack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/transports"
)

// maxReply bounds a reply. A page of channels has a few thousand octets for each.
const maxReply = 16 << 20

const userAgent = "countersign"

var (
	errOnce      = errors.New("the library asked for a second request")
	errNoRequest = errors.New("the library made no request")
	errReplySize = fmt.Errorf("the reply has more than %d octets", maxReply)
)

// An exchange is one request on one line, and what is known of it. It stands in for
// the library's HTTP client, and makes one request at most.
type exchange struct {
	line   *line
	method string // of the API
	ctx    context.Context
	used   bool
	err    error  // why there is no reply
	reply  *reply // whole, or nil

	mu     sync.Mutex // what follows comes from goroutines of net/http
	handed bool       // the body, which has all that matters, began to be handed over
	whole  bool       // its end was
	began  bool       // an octet of a reply came
	early  bool       // it came before the end of the body was handed over
}

// exchange runs one method of the library's client over l, and closes it.
func (s *session) exchange(ctx context.Context, l *line, method string, call func(context.Context, *slackgo.Client) error) *exchange {
	defer l.close()
	x := &exchange{line: l, method: method, ctx: ctx}
	options := append([]slackgo.Option{slackgo.OptionAPIURL(s.t.endpoint), slackgo.OptionHTTPClient(x)}, s.t.debug...)
	err := call(ctx, slackgo.New(s.token, options...))
	if x.reply == nil && x.err == nil {
		x.err = errors.Join(errNoRequest, err)
	}
	return x
}

// Do makes the request and reads the whole reply, so that the library never sees a part
// of one.
func (x *exchange) Do(r *http.Request) (*http.Response, error) {
	if x.used {
		return nil, errOnce
	}
	x.used = true
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotFirstResponseByte: x.noteReply}))
	r.Close = true
	r.Header.Set("User-Agent", userAgent)
	r.Body = &content{ReadCloser: r.Body, left: r.ContentLength, x: x}
	response, err := x.line.conn.RoundTrip(r)
	if err != nil {
		x.err = err
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	if err == nil && len(body) > maxReply {
		err = errReplySize
	}
	if err != nil {
		x.err = err
		return nil, err
	}
	x.reply = newReply(response.StatusCode, response.Header, body)
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func (x *exchange) noteReply() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.began, x.early = true, !x.whole
}

func (x *exchange) isEarly() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.early
}

// handOver notes that a part of the body goes out, unless it is the first and there is no
// time left. This is where a process that was stopped for long goes on.
func (x *exchange) handOver(end bool) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.handed {
		if err := transports.CheckTime(x.ctx); err != nil {
			return err
		}
	}
	x.handed, x.whole = true, x.whole || end
	return nil
}

// content is the body of a request on its way to the connection. What it says of itself
// comes before its octets can be out, so that no answer overtakes it. (The trace's
// WroteRequest can be overtaken.)
type content struct {
	io.ReadCloser
	left int64
	x    *exchange
}

func (c *content) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.left -= int64(n)
	if late := c.x.handOver(c.left <= 0 || err == io.EOF); late != nil {
		return 0, late
	}
	return n, err
}

// A reply is one that was read whole.
type reply struct {
	status int
	after  time.Duration // Retry-After; 0 is unsaid
	body   []byte

	// OK is nil where the body is not one JSON object that says it.
	OK    *bool
	Error string
}

func newReply(status int, header http.Header, body []byte) *reply {
	r := &reply{status: status, after: retryAfter(header.Get("Retry-After")), body: body}
	var head struct {
		OK    *bool  `json:"ok"`
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &head) == nil { // it wants one value and nothing behind it
		r.OK, r.Error = head.OK, head.Error
	}
	return r
}

// maxRetryAfter is a year, in seconds: more is no usable answer.
const maxRetryAfter = 365 * 24 * 60 * 60

// retryAfter reads seconds (https://docs.slack.dev/apis/web-api/rate-limits). The date
// that RFC 9110 section 10.2.3 allows too isn't used by Slack.
func retryAfter(header string) time.Duration {
	seconds, err := strconv.ParseUint(strings.TrimSpace(header), 10, 32)
	if err != nil {
		return 0
	}
	return time.Duration(min(seconds, maxRetryAfter)) * time.Second
}

func (r *reply) saysYes() bool { return r.OK != nil && *r.OK }
func (r *reply) saysNo() bool  { return r.OK != nil && !*r.OK }

// words are what else Slack says of a no.
func (r *reply) words() string {
	var more struct {
		Needed   string `json:"needed"`
		Metadata struct {
			Messages []string `json:"messages"`
		} `json:"response_metadata"`
	}
	if json.Unmarshal(r.body, &more) != nil {
		return ""
	}
	words := more.Metadata.Messages
	if more.Needed != "" {
		words = append(words, "it needs the scope "+more.Needed)
	}
	return strings.Join(words, "; ")
}
