package interact_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/interact"
	"countersign/tests/fakeslack"
)

// line is a socket under test: its back-off takes no time, and is on record.
type line struct {
	t      *testing.T
	slack  *fakeslack.Server
	socket *interact.Socket
	done   chan error
	end    context.CancelFunc

	mu       sync.Mutex
	waits    []time.Duration
	payloads []string
	now      time.Time
}

func newLine(t *testing.T, slack *fakeslack.Server) *line {
	l := &line{t: t, slack: slack, done: make(chan error, 1), now: time.Unix(1_700_000_000, 0)}
	l.socket = &interact.Socket{
		API:    slackgo.New(fakeslack.BotToken, slackgo.OptionAPIURL(slack.URL()), slackgo.OptionAppLevelToken(fakeslack.AppToken)),
		Accept: l.accept, Now: l.clock, Wait: l.wait, Log: slog.New(slog.DiscardHandler),
	}
	return l
}

func (l *line) accept(payload []byte) (func(), error) {
	if !strings.HasPrefix(string(payload), `{`) {
		return nil, errors.New("no interaction")
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.payloads = append(l.payloads, string(payload))
	}, nil
}

func (l *line) clock() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

func (l *line) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now = l.now.Add(d)
}

func (l *line) wait(ctx context.Context, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, d)
	return ctx.Err()
}

func (l *line) waited() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.waits)
}

func (l *line) run() {
	ctx, end := context.WithCancel(context.Background())
	l.end = end
	go func() { l.done <- l.socket.Run(ctx) }()
	l.t.Cleanup(func() { end(); <-l.done })
}

// ended waits for the end of Run.
func (l *line) ended() error {
	err := <-l.done
	l.done <- err
	return err
}

func (l *line) ctx() context.Context {
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	l.t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FAULTS 29: a socket that says nothing, not even a ping, is left; one that pings is kept.
func TestASilentSocketIsLeft(t *testing.T) {
	t.Parallel()
	l := newLine(t, fakeslack.New(t, fakeslack.WithPing(50*time.Millisecond)))
	l.socket.Silence = 2 * time.Second
	l.run()
	must(t, l.slack.Connected(l.ctx()))
	must(t, l.slack.GoSilent())
	must(t, l.slack.ConnectedAgain(l.ctx(), 2))
	if n := len(l.slack.Requests("apps.connections.open")); n != 2 {
		t.Errorf("%d URLs", n)
	}
}

// Pings on a clock that stands far in the past used to be answered too late, and so not at all.
func TestPingsAreAnsweredByTheKernelsClock(t *testing.T) {
	t.Parallel()
	l := newLine(t, fakeslack.New(t, fakeslack.WithPing(10*time.Millisecond)))
	l.now = time.Unix(1, 0)
	l.run()
	must(t, l.slack.Connected(l.ctx()))
	_, err := l.slack.Send(l.ctx(), fakeslack.Interaction{Payload: []byte(`{"n":1}`), EnvelopeID: "e1"})
	must(t, err)
	l.end()
	must(t, l.ended())
	if n := l.slack.Connections(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// FAULTS 29: the back-off doubles to a minute while Slack refuses, and begins anew after a connection that lasted.
func TestTheBackOff(t *testing.T) {
	t.Parallel()
	l := newLine(t, fakeslack.New(t))
	l.slack.RefuseOpens(9, "internal_error")
	l.run()
	must(t, l.slack.Connected(l.ctx()))
	var want []time.Duration
	for _, seconds := range []int{0, 1, 2, 4, 8, 16, 32, 60, 60} {
		want = append(want, time.Duration(seconds)*time.Second)
	}
	if got := l.waited(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	l.pass(time.Minute)
	must(t, l.slack.Disconnect(fakeslack.RefreshRequested))
	must(t, l.slack.ConnectedAgain(l.ctx(), 2))
	if got := l.waited(); len(got) != 10 || got[9] != 0 {
		t.Errorf("%v", got)
	}
}

// A connection that greets and ends at once used to be dialled again without a pause, for ever.
func TestConnectionsThatDoNotLastAreDialledSlower(t *testing.T) {
	t.Parallel()
	l := newLine(t, fakeslack.New(t))
	l.run()
	for i := range 4 {
		must(t, l.slack.ConnectedAgain(l.ctx(), i+1))
		must(t, l.slack.CutFrame())
	}
	must(t, l.slack.ConnectedAgain(l.ctx(), 5))
	if got := l.waited(); !slices.Equal(got, []time.Duration{0, time.Second, 2 * time.Second, 4 * time.Second}) {
		t.Errorf("%v", got)
	}
}

// Slack's Retry-After is kept to where it is longer than the back-off.
func TestRetryAfterIsKept(t *testing.T) {
	t.Parallel()
	l := newLine(t, fakeslack.New(t))
	l.slack.Script("apps.connections.open", fakeslack.RateLimited(77))
	l.run()
	must(t, l.slack.Connected(l.ctx()))
	if got := l.waited(); !slices.Equal(got, []time.Duration{77 * time.Second}) {
		t.Errorf("%v", got)
	}
}

// What is no interaction is acknowledged, and the connection goes on; so is what comes again.
func TestEverythingIsAcknowledged(t *testing.T) {
	t.Parallel()
	l := newLine(t, fakeslack.New(t))
	l.run()
	must(t, l.slack.Connected(l.ctx()))
	for i, payload := range []string{`"nonsense"`, `{"n":1}`, `{"n":2}`} {
		_, err := l.slack.Send(l.ctx(), fakeslack.Interaction{Payload: []byte(payload), EnvelopeID: string(rune('a' + i))})
		must(t, err)
	}
	must(t, l.slack.SendFrame(`{"type":"a type of tomorrow"}`))
	_, err := l.slack.Send(l.ctx(), fakeslack.Interaction{Payload: []byte(`{"n":3}`), EnvelopeID: "d"})
	must(t, err)
	l.end()
	must(t, l.ended())
	if !slices.Equal(l.payloads, []string{`{"n":1}`, `{"n":2}`, `{"n":3}`}) || l.slack.Connections() != 1 {
		t.Errorf("%q, %d connections", l.payloads, l.slack.Connections())
	}
}

// FAULTS 29: what only a person can mend ends Run, and health says why and when Slack was last heard.
func TestFatalReasonsEndTheSocket(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"link_disabled", "not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired",
		"not_allowed_token_type", "no_permission", "missing_scope"} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			l := newLine(t, fakeslack.New(t))
			if reason != "link_disabled" {
				l.slack.RefuseOpens(1, reason)
			}
			l.run()
			if reason == "link_disabled" {
				must(t, l.slack.Connected(l.ctx()))
				must(t, l.slack.Disconnect(reason))
			}
			err := l.ended()
			var fatal *interact.FatalError
			if !errors.As(err, &fatal) || fatal.Reason != reason || fatal.Hint == "" || len(l.waited()) != 0 {
				t.Errorf("%v, waited %v", err, l.waited())
			}
			health := l.socket.Health()
			if health.Connected || health.Problem != err.Error() || health.LastHeard.IsZero() != (reason != "link_disabled") {
				t.Errorf("%+v", health)
			}
		})
	}
}

// The URL of a socket is a secret: where it can't be dialled, nothing says it.
func TestAURLThatCannotBeDialledIsNotSaid(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed.Close()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"ok":true,"url":"ws://` + closed.Addr().String() + `/?ticket=secret-ticket"}`))
	}))
	defer api.Close()
	l := newLine(t, fakeslack.New(t))
	logged := &strings.Builder{}
	l.socket.Log = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	l.socket.API = slackgo.New(fakeslack.BotToken, slackgo.OptionAPIURL(api.URL+"/"), slackgo.OptionAppLevelToken(fakeslack.AppToken))
	l.socket.Wait = func(context.Context, time.Duration) error { return context.Canceled }
	must(t, l.socket.Run(l.ctx()))
	if said := logged.String() + l.socket.Health().Problem; strings.Contains(said, "ticket") || !strings.Contains(said, "dial") {
		t.Errorf("%q", said)
	}
}
