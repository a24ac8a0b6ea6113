package desk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"countersign/interact"
	"countersign/notify"
	"countersign/sweep"
)

// InteractionsPath is where Slack posts its interactions in HTTP mode.
const InteractionsPath = "/slack/interactions"

// ServeOptions say how the operators' surface is served.
type ServeOptions struct {
	Listen string // host:port for Slack's requests (HTTP mode); "" is Socket Mode
	Health string // host:port of /healthz and /readyz in Socket Mode; "" is none
	// How often each pass runs; 0 is never, except that notices go out every DefaultNotify.
	Notify, Deliver, Sweep time.Duration
	Log                    *slog.Logger
	Listening              func(address string) // told once for each address that is listened on; may be nil
}

// DefaultNotify is how often serve looks at the outbox. What is filed again within it is one edit of its card.
const DefaultNotify = 5 * time.Second

const (
	headerTime   = 10 * time.Second // of a request
	requestTime  = 30 * time.Second
	shutdownTime = 5 * time.Second
)

// server is one run of Serve.
type server struct {
	d       *Desk
	opts    ServeOptions
	handler *interact.Handler
	socket  *interact.Socket // nil in HTTP mode
	kick    chan struct{}    // something changed: look at the outbox now

	mu    sync.Mutex
	heard time.Time // the last signed request, in HTTP mode
}

// Serve runs the operators' surface until ctx is done: it takes clicks, tells notices, and makes the passes that were asked for. Its
// error is what no waiting mends: a refused token, Socket Mode switched off, an address in use. What was clicked is worked on to its end.
func (d *Desk) Serve(ctx context.Context, opts ServeOptions) error {
	surface, err := d.openSurface()
	if err != nil {
		return err
	}
	if opts.Log == nil {
		opts.Log = d.log
	}
	if opts.Notify == 0 {
		opts.Notify = DefaultNotify
	}
	s := &server{d: d, opts: opts, kick: make(chan struct{}, 1)}
	s.handler = d.handler(surface, s.changed, opts.Log)
	if opts.Listen == "" {
		if d.config.Transports.Slack.AppToken.IsZero() {
			return &ConfigError{Section: "transports.slack", Err: errors.New("app_token is missing, which Socket Mode needs; set it, or serve HTTP with --listen")}
		}
		s.socket = &interact.Socket{API: surface.client, Accept: s.accept(ctx), Now: d.now, Wait: notify.Wait, Log: opts.Log}
	} else if d.config.Transports.Slack.SigningSecret.IsZero() {
		return &ConfigError{Section: "transports.slack", Err: errors.New("signing_secret is missing, which HTTP mode needs")}
	}
	return s.run(ctx)
}

// accept hands interactions to the handler. Their work outlives ctx, which ends only the taking of new ones.
func (s *server) accept(ctx context.Context) func([]byte) (func(), error) {
	lasting := context.WithoutCancel(ctx)
	return func(payload []byte) (func(), error) { return s.handler.Accept(lasting, payload) }
}

func (s *server) changed() {
	select {
	case s.kick <- struct{}{}:
	default: // a look at the outbox is due already
	}
}

// run runs every part, and ends them all when one fails or ctx is done.
func (s *server) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	start := func(part func(context.Context) error) {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				cancel(err)
			}
		})
	}
	if s.socket != nil {
		start(s.socket.Run)
	}
	if address := cmp.Or(s.opts.Listen, s.opts.Health); address != "" {
		start(func(ctx context.Context) error { return s.listen(ctx, address) })
	}
	start(func(ctx context.Context) error { return s.every(ctx, s.opts.Notify, s.kick, s.notify) })
	start(func(ctx context.Context) error { return s.every(ctx, s.opts.Deliver, nil, s.deliver) })
	start(func(ctx context.Context) error { return s.every(ctx, s.opts.Sweep, nil, s.sweep) })
	parts.Wait()
	s.handler.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// every runs a pass at once, then each interval, and whenever it is kicked. 0 is never. A failed pass is logged: the next may succeed.
func (s *server) every(ctx context.Context, interval time.Duration, kick <-chan struct{}, pass func(context.Context) error) error {
	if interval == 0 {
		return nil
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if err := pass(ctx); err != nil && ctx.Err() == nil {
			s.opts.Log.Error("a pass failed; the next one tries again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-kick:
		}
	}
	return nil
}

func (s *server) notify(ctx context.Context) error {
	_, err := s.d.Notify(ctx)
	return err
}

func (s *server) deliver(ctx context.Context) error {
	_, err := s.d.Deliver(ctx, sweep.Options{})
	s.changed()
	return err
}

func (s *server) sweep(ctx context.Context) error {
	_, err := s.d.Recover(ctx)
	s.changed()
	_, telling := s.d.TellAgents(ctx)
	return errors.Join(err, telling)
}

// listen serves HTTP until ctx is done.
func (s *server) listen(ctx context.Context, address string) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	if s.opts.Listening != nil {
		s.opts.Listening(listener.Addr().String())
	}
	web := &http.Server{Handler: s.routes(ctx), ReadHeaderTimeout: headerTime, ReadTimeout: requestTime, WriteTimeout: requestTime}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		shutDown(context.WithoutCancel(ctx), web)
	})
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serving HTTP: %w", err)
	}
	<-ended // Serve returns before the requests in hand are answered, and each of them may be a click
	return nil
}

func shutDown(ctx context.Context, web *http.Server) {
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	if web.Shutdown(ctx) != nil {
		web.Close()
	}
}

func (s *server) routes(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	if s.socket == nil {
		mux.Handle(InteractionsPath, &interact.HTTP{Secret: s.d.config.Transports.Slack.SigningSecret.Resolve, Accept: s.hear(s.accept(ctx)),
			Refused: s.refused})
	}
	return mux
}

// hear notes when Slack was last heard by HTTP.
func (s *server) hear(accept func([]byte) (func(), error)) func([]byte) (func(), error) {
	return func(payload []byte) (func(), error) {
		s.mu.Lock()
		s.heard = s.d.now()
		s.mu.Unlock()
		return accept(payload)
	}
}

// refused records a request that Slack did not sign. The same is kept once a minute.
func (s *server) refused(ctx context.Context, cause error) {
	if err := s.d.Ledger.RecordRefusal(ctx, "authenticate", "slack over HTTP", 0, cause); err != nil {
		s.opts.Log.Error("a refusal could not be recorded", "error", err)
	}
}

// Readiness is what /readyz answers.
type Readiness struct {
	Ready     bool       `json:"ready"`
	LastHeard *time.Time `json:"last_heard"` // of Slack; null when never
	Problem   string     `json:"problem,omitempty"`
}

func (s *server) readiness() Readiness {
	s.mu.Lock()
	r, heard := Readiness{Ready: true}, s.heard
	s.mu.Unlock()
	if s.socket != nil {
		h := s.socket.Health()
		r.Ready, r.Problem, heard = h.Connected, h.Problem, h.LastHeard
	}
	if err := s.d.Ledger.StillThere(); err != nil {
		r.Ready, r.Problem = false, err.Error()
	}
	if !heard.IsZero() {
		heard = heard.UTC()
		r.LastHeard = &heard
	}
	return r
}

func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	r := s.readiness()
	w.Header().Set("Content-Type", "application/json")
	if !r.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(r)
}
