package telegram

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http/httptrace"
	"sync"

	"countersign/transports"
)

// An exchange is what is known of one request and its reply.
type exchange struct {
	ctx    context.Context
	text   *handOver
	status int // of HTTP; 0 as long as no reply has begun

	mu    sync.Mutex
	stage string
}

func newExchange(ctx context.Context) *exchange {
	return &exchange{ctx: ctx, text: &handOver{ctx: ctx}, stage: stageConnect}
}

// traced is the context of the request, which takes down how far it comes. A dial
// may go on in the background after its request was given up.
func (x *exchange) traced() context.Context {
	return httptrace.WithClientTrace(x.ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { x.reach(stageTLS) },
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err == nil {
				x.reach(stageRequest)
			}
		},
		GotConn: func(httptrace.GotConnInfo) { x.reach(stageRequest) },
	})
}

func (x *exchange) reach(stage string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.stage = stage
}

func (x *exchange) replied(status int) {
	x.status = status
	x.reach(stageReply)
}

func (x *exchange) reached() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.stage
}

// handOver is the body of a request. The message is in it, so that the first Read is
// where the message begins to be handed over; net/http sends the head before it, and a
// head alone carries nothing. Read runs in a goroutine that may outlive the request.
type handOver struct {
	ctx  context.Context
	body io.ReadCloser // nil: getMe has nothing to say

	mu     sync.Mutex
	begun  bool
	sealed bool
}

var errSealed = errors.New("the request was given up before anything was handed over")

// Read looks at the clock once more before the first octet: connecting took time, and
// the process may have been stopped meanwhile.
func (h *handOver) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun {
		if h.sealed {
			return 0, errSealed
		}
		if err := transports.CheckTime(h.ctx); err != nil {
			return 0, errors.Unwrap(err) // what it was refused as is for judge to say
		}
		h.begun = true
	}
	return h.body.Read(p)
}

func (h *handOver) Close() error { return h.body.Close() }

// seal tells if there was something to hand over and nobody had begun to. If so,
// nobody ever will.
func (h *handOver) seal() (kept bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sealed = true
	return h.body != nil && !h.begun
}
