package interact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	slackgo "github.com/slack-go/slack"

	"countersign/notify"
)

// Socket receives interactions by Socket Mode. It reconnects with a fresh URL each time, since one works once, and stops only for what
// no reconnecting mends.
//
// The library's own client (slack-go/socketmode) drops the reason of a disconnect, and so would dial for ever after the app was switched
// off; opening the connection and reading the payloads is the library's here too.
// Source: https://docs.slack.dev/apis/events-api/using-socket-mode
type Socket struct {
	API    Opener
	Accept func(payload []byte) (work func(), err error)
	Now    func() time.Time
	// Wait waits between two connections; its error ends Run.
	Wait func(ctx context.Context, d time.Duration) error
	// Silence is how long a socket may say nothing, pings included, before it is taken for dead; 0 is DefaultSilence. Slack pings
	// every few seconds.
	Silence time.Duration
	Log     *slog.Logger

	mu    sync.Mutex
	state Health
}

// DefaultSilence is several of Slack's ping intervals.
const DefaultSilence = 40 * time.Second

const (
	dialTime  = 20 * time.Second
	writeTime = 10 * time.Second
	maxFrame  = 4 << 20
)

// Opener opens a connection: it answers the URL to dial.
type Opener interface {
	StartSocketModeContext(ctx context.Context) (*slackgo.SocketModeConnection, string, error)
}

// Health is what is known of the connection.
type Health struct {
	Connected bool      `json:"connected"`
	LastHeard time.Time `json:"last_heard"` // a message or a ping; zero when never
	Problem   string    `json:"problem,omitempty"`
}

// FatalError ends Socket Mode: no reconnecting mends it.
type FatalError struct{ Reason, Hint string }

func (e *FatalError) Error() string {
	return fmt.Sprintf("Slack refuses Socket Mode (%s); %s", e.Reason, e.Hint)
}

// fatal are the reasons, of a disconnect or of apps.connections.open, that only a person can mend.
// Source: https://docs.slack.dev/reference/methods/apps.connections.open and the page on Socket Mode, "disconnect"
var fatal = map[string]string{
	"link_disabled":          "Socket Mode was switched off for the app: switch it on again, or use --listen",
	"not_authed":             "check transports.slack.app_token",
	"invalid_auth":           "check transports.slack.app_token",
	"account_inactive":       "the token's owner is gone: make a new transports.slack.app_token",
	"token_revoked":          "make a new transports.slack.app_token",
	"token_expired":          "make a new transports.slack.app_token",
	"not_allowed_token_type": "transports.slack.app_token has to be an app-level token (xapp-…)",
	"no_permission":          "the app-level token needs the scope connections:write",
	"missing_scope":          "the app-level token needs the scope connections:write",
}

// Health returns what is known now.
func (s *Socket) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Run connects, and again, until ctx is done (nil) or a *FatalError.
func (s *Socket) Run(ctx context.Context) error {
	for failures := 0; ctx.Err() == nil; {
		began := s.Now()
		heard, err := s.session(ctx)
		if fatal := new(FatalError); errors.As(err, &fatal) {
			s.note(false, fatal.Error())
			return fatal
		}
		if ctx.Err() != nil {
			break
		}
		if heard && s.Now().Sub(began) >= steady {
			failures = 0
		}
		wait := max(reconnectAfter(failures), retryAfter(err))
		failures++
		s.note(false, err.Error())
		s.Log.Info("Slack's socket ended", "reason", err, "again_in", wait)
		if s.Wait(ctx, wait) != nil {
			break
		}
	}
	return nil
}

// steady is how long a connection has to last for the back-off to begin anew: one that greets and ends, again and again, would else be
// dialled without a pause.
const steady = 10 * time.Second

// reconnectAfter is the back-off: nothing, 1 s, 2 s, 4 s, up to a minute.
func reconnectAfter(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	return min(time.Second<<min(failures-1, 10), time.Minute)
}

func retryAfter(err error) time.Duration {
	var limited *slackgo.RateLimitedError
	if errors.As(err, &limited) {
		return limited.RetryAfter
	}
	return 0
}

// session is one connection. It reports whether Slack greeted it.
func (s *Socket) session(ctx context.Context) (heard bool, err error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	for {
		var m message
		if err := s.receive(conn, &m); err != nil {
			return heard, err
		}
		switch m.Type {
		case "hello":
			heard = true
			s.note(true, "")
		case "disconnect":
			return heard, m.end()
		case "interactive":
			if err := s.serve(conn, m); err != nil {
				return heard, err
			}
		default:
			if err := acknowledge(conn, m); err != nil {
				return heard, err
			}
		}
	}
}

func (s *Socket) dial(ctx context.Context) (*websocket.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	_, url, err := s.API.StartSocketModeContext(ctx)
	if err != nil {
		return nil, opening(err)
	}
	dialer := websocket.Dialer{Proxy: http.ProxyFromEnvironment, HandshakeTimeout: dialTime}
	conn, response, err := dialer.DialContext(ctx, url, nil)
	if response != nil && response.Body != nil {
		response.Body.Close()
	}
	if err != nil {
		return nil, errors.New("the socket of Slack can't be dialled") // the library's words could hold the URL, which is a secret
	}
	conn.SetReadLimit(maxFrame)
	conn.SetPingHandler(func(data string) error {
		s.hear(conn)
		return conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTime)) // the kernel's clock too
	})
	s.hear(conn)
	return conn, nil
}

// opening says why apps.connections.open gave no URL.
func opening(err error) error {
	var said slackgo.SlackErrorResponse
	if errors.As(err, &said) {
		if hint, ok := fatal[said.Err]; ok {
			return &FatalError{said.Err, hint}
		}
	}
	var limited *slackgo.RateLimitedError
	if errors.As(err, &limited) {
		return limited
	}
	return unanswered("apps.connections.open", err)
}

// hear notes a sign of life, and gives the socket its time anew.
func (s *Socket) hear(conn *websocket.Conn) {
	silence := s.Silence
	if silence == 0 {
		silence = DefaultSilence
	}
	conn.SetReadDeadline(time.Now().Add(silence)) // the kernel's clock: an injected one would never make it fire
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.LastHeard = s.Now()
}

func (s *Socket) note(connected bool, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Connected, s.state.Problem = connected, problem
}

// message is an envelope of Socket Mode.
type message struct {
	Type       string          `json:"type"`
	EnvelopeID string          `json:"envelope_id"`
	Reason     string          `json:"reason"`
	Payload    json.RawMessage `json:"payload"`
}

// end is why Slack ends the connection.
func (m message) end() error {
	if hint, ok := fatal[m.Reason]; ok {
		return &FatalError{m.Reason, hint}
	}
	if !notify.IsSlackCode(m.Reason) {
		return errors.New("a new connection was asked for")
	}
	return fmt.Errorf("a new connection was asked for (%s)", m.Reason)
}

func (s *Socket) receive(conn *websocket.Conn, m *message) error {
	_, frame, err := conn.ReadMessage()
	if err != nil {
		return fmt.Errorf("the socket was lost: %w", err)
	}
	s.hear(conn)
	if err := json.Unmarshal(frame, m); err != nil {
		return fmt.Errorf("the socket talks nonsense: %w", err)
	}
	return nil
}

// serve acknowledges an interaction and then has it worked on, also where the acknowledgement failed: the socket may bring no other, and
// if Slack delivers it again, the same click is the same decision.
func (s *Socket) serve(conn *websocket.Conn, m message) error {
	work, err := s.Accept(m.Payload)
	if err != nil {
		s.Log.Warn("Slack sent what is no interaction", "error", err)
		return acknowledge(conn, m)
	}
	defer work()
	return acknowledge(conn, m)
}

func acknowledge(conn *websocket.Conn, m message) error {
	if m.EnvelopeID == "" {
		return nil
	}
	conn.SetWriteDeadline(time.Now().Add(writeTime))
	return conn.WriteJSON(map[string]string{"envelope_id": m.EnvelopeID})
}
