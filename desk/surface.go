package desk

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/config"
	"countersign/interact"
	"countersign/ledger"
	"countersign/notify"
	"countersign/operator"
)

// surface is the operators' surface in Slack, made when it is first used: no other step reads its secrets.
type surface struct {
	once     sync.Once
	client   *slackgo.Client
	notifier *notify.Notifier
	err      error
}

// NoSurfaceError says that no internal destination is configured.
type NoSurfaceError struct{}

func (*NoSurfaceError) Error() string {
	return "no internal destination is configured; add the sections [internal] and [transports.slack] to the configuration"
}

func (d *Desk) openSurface() (*surface, error) {
	s := &d.surface
	s.once.Do(func() { s.client, s.notifier, s.err = d.newSurface() })
	return s, s.err
}

func (d *Desk) newSurface() (*slackgo.Client, *notify.Notifier, error) {
	if d.config.Internal == nil || d.config.Transports.Slack == nil {
		return nil, nil, &NoSurfaceError{}
	}
	client, err := slackClient(d.config.Transports.Slack)
	if err != nil {
		return nil, nil, &ConfigError{Section: "transports.slack", Err: err}
	}
	return client, notify.New(d.Ledger, client, d.internal(), notify.Options{
		Now: d.now, Describe: d.describe, Remind: d.reminders(), Log: d.log,
	}), nil
}

// internal is the configured destination; there is one wherever a surface was opened.
func (d *Desk) internal() notify.Internal {
	return notify.Internal{Team: d.config.Internal.Team, Channel: d.config.Internal.Channel}
}

// slackClient speaks for the operators' surface. It repeats nothing by itself, follows no redirect, and waits no longer than configured.
func slackClient(c *config.Slack) (*slackgo.Client, error) {
	token, err := c.Token.Resolve()
	if err != nil {
		return nil, err
	}
	options := []slackgo.Option{
		slackgo.OptionAPIURL(c.APIURL),
		slackgo.OptionHTTPClient(&http.Client{
			Timeout:       c.Timeout,
			Transport:     onceTransport(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}),
	}
	if !c.AppToken.IsZero() {
		appToken, err := c.AppToken.Resolve()
		if err != nil {
			return nil, err
		}
		options = append(options, slackgo.OptionAppLevelToken(appToken))
	}
	return slackgo.New(token, options...), nil
}

// onceTransport never repeats a request by itself, which HTTP/2 does after some refusals, and HTTP/1 on a connection that was idle.
func onceTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ForceAttemptHTTP2, t.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	t.DisableKeepAlives = true
	return t
}

func (d *Desk) reminders() map[ledger.Priority]time.Duration {
	n := d.config.Notify
	return map[ledger.Priority]time.Duration{"P0": n.RemindP0, "P1": n.RemindP1, "P2": n.RemindP2, "P3": n.RemindP3}
}

// Notify makes one pass over the outbox: it verifies the internal destination, tells what is queued, and brings the cards up to date.
func (d *Desk) Notify(ctx context.Context) (notify.Report, error) {
	s, err := d.openSurface()
	if err != nil {
		return notify.Report{}, err
	}
	return s.notifier.Pass(ctx)
}

// handler joins clicks and ledger. changed is called after each that changed something.
func (d *Desk) handler(s *surface, changed func(), log *slog.Logger) *interact.Handler {
	return &interact.Handler{
		Steps: d.Ledger, API: s.client, Internal: d.internal(),
		Operators: d.operatorsNow, NotArrived: d.NotArrived, Changed: changed, Now: d.now, Log: log,
	}
}

// operatorsNow reads the operators anew, so that one who was removed is nobody at once, also in a program that runs for weeks.
func (d *Desk) operatorsNow() (*operator.Directory, error) {
	if d.config.Path == "" {
		return d.operators, nil
	}
	c, err := config.Load(d.config.Path)
	if err != nil {
		return nil, err
	}
	return operator.NewDirectory(c.Operators)
}

// NotArrived settles an unknown delivery on an operator's evidence that it did not arrive, and files the same text again, for a fresh
// approval. Nothing is sent by it.
func (d *Desk) NotArrived(ctx context.Context, op operator.Operator, obligation int64, evidence string) error {
	settled, err := d.Ledger.Settle(ctx, op, obligation, evidence)
	if err != nil {
		return err
	}
	filing, err := d.Ledger.FilingOf(ctx, obligation)
	if err != nil {
		return &interact.NotRefiledError{ObligationID: obligation, Err: err}
	}
	filing.IdempotencyKey = fmt.Sprintf("not arrived: decision %d", settled.DecisionID)
	if _, err := d.File(ctx, filing); err != nil {
		return &interact.NotRefiledError{ObligationID: obligation, Err: err}
	}
	return nil
}
