package fakeslack

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// What a Server believes unless an option says otherwise.
const (
	BotToken = "xoxb-1000-2000-FakeSlackBotToken"
	AppToken = "xapp-1-A0FAKEAPP-3000-FakeSlackAppToken"
	Secret   = "fakeslack-signing-secret"
)

// Who the app is.
const (
	AppID   = "A0FAKEAPP"
	BotUser = "U0FAKEBOT"
	BotID   = "B0FAKEBOT"
	TeamID  = "T0EXAMPLE" // of the workspace, until SetTeam
)

// DefaultPing is how often the socket pings. Slack does so every few seconds.
const DefaultPing = 2 * time.Second

// A Server is one Slack with one workspace and one app. It is safe for concurrent use.
type Server struct {
	t       testing.TB
	http    *httptest.Server
	config  settings
	methods map[string]method
	done    chan struct{}
	sockets sync.WaitGroup

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at each change
	closed   bool
	clock    clock
	ids      int
	team     Team
	channels []Channel
	users    []User
	requests []Request
	scripts  map[string][]Outcome
	messages []Message // and those for one person only; deleted ones too
	views    []View
	triggers map[string]trigger
	replies  map[string]*responseURL
	link     link
}

type settings struct {
	botToken, appToken, secret string
	now                        func() time.Time
	ping                       time.Duration
	blocksTotal                int
}

// An Option changes what a Server is.
type Option func(*settings)

// WithTokens sets the only tokens that are accepted.
func WithTokens(bot, app string) Option {
	return func(c *settings) { c.botToken, c.appToken = bot, app }
}

// WithSecret sets the signing secret.
func WithSecret(secret string) Option { return func(c *settings) { c.secret = secret } }

// WithNow lets timestamps follow a clock of the test's. They still rise with each one given.
func WithNow(now func() time.Time) Option { return func(c *settings) { c.now = now } }

// WithPing sets how often the socket pings.
func WithPing(every time.Duration) Option { return func(c *settings) { c.ping = every } }

// WithBlocksTotal refuses messages whose text objects hold more than n characters in all, with msg_blocks_too_long. Slack documents the
// error, without the figure; by default there is none.
// Source: https://docs.slack.dev/reference/methods/chat.postMessage
func WithBlocksTotal(n int) Option { return func(c *settings) { c.blocksTotal = n } }

// New starts a Slack that ends with the test.
func New(t testing.TB, options ...Option) *Server {
	t.Helper()
	s := &Server{
		t:        t,
		config:   settings{botToken: BotToken, appToken: AppToken, secret: Secret, ping: DefaultPing},
		methods:  methods(),
		done:     make(chan struct{}),
		changed:  make(chan struct{}),
		team:     Team{ID: TeamID, Name: "Example", Domain: "example"},
		scripts:  map[string][]Outcome{},
		triggers: map[string]trigger{},
		replies:  map[string]*responseURL{},
		link:     newLink(),
	}
	for _, option := range options {
		option(&s.config)
	}
	s.clock = clock{now: s.config.now, last: firstTS}
	s.users = []User{{ID: BotUser, TeamID: TeamID, Name: "countersign", IsBot: true}}
	s.http = httptest.NewUnstartedServer(s.routes())
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // connections that are cut on purpose
	s.http.Start()
	t.Cleanup(s.close)
	return s
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.serveAPI)
	mux.HandleFunc("GET /link/", s.serveSocket)
	mux.HandleFunc("POST /actions/{id}", s.serveResponseURL)
	return mux
}

// URL is the api_url: "http://127.0.0.1:port/api/".
func (s *Server) URL() string { return s.http.URL + "/api/" }

func (s *Server) close() {
	s.mu.Lock()
	s.closed = true
	close(s.done)
	for _, k := range s.link.sockets {
		_ = k.conn.Close()
	}
	s.mu.Unlock()
	s.sockets.Wait()
	s.http.Close()
}

// Until waits for a condition, which it checks at once and after each request, connection and change of state. The condition may call the
// Server's methods. The error is ctx's.
func (s *Server) Until(ctx context.Context, condition func() bool) error {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wake lets Until look again. s.mu is held.
func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// newID is an id like Slack's, which no other has. s.mu is held.
func (s *Server) newID(prefix string) string {
	s.ids++
	digits := []byte("00000000")
	for i, n := len(digits)-1, s.ids; n > 0 && i >= 0; i, n = i-1, n/36 {
		digits[i] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n%36]
	}
	return prefix + string(digits)
}

// sameSecret compares what proves who somebody is; an empty one proves nothing.
func sameSecret(got, want string) bool { return got != "" && strings.TrimSpace(got) == want }
