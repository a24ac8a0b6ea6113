package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	slackgo "github.com/slack-go/slack"
	"golang.org/x/sys/unix"

	"countersign/ledger"
)

// API is what is asked of Slack. *slack.Client of slack-go is one.
type API interface {
	AuthTestContext(ctx context.Context) (*slackgo.AuthTestResponse, error)
	GetConversationInfoContext(ctx context.Context, input *slackgo.GetConversationInfoInput) (*slackgo.Channel, error)
	// PostMessageWithResponseContext posts, or edits where an option names a message, and returns what Slack says that it shows.
	PostMessageWithResponseContext(ctx context.Context, channel string, options ...slackgo.MsgOption) (string, string, slackgo.Message, error)
	GetPermalinkContext(ctx context.Context, params *slackgo.PermalinkParameters) (string, error)
}

// Options inject what a Notifier depends on. The zero value is ready for use.
type Options struct {
	Now  func() time.Time                                 // time.Now
	Wait func(ctx context.Context, d time.Duration) error // between two messages; a timer
	Log  *slog.Logger                                     // nothing is logged
	// Describe asks a provider for its own name of a destination. Its failure leaves the name out.
	Describe func(ctx context.Context, platform, channel string) (Destination, error)
	// Remind is how long a draft of a priority waits before the reminder names it; 0 is for ever.
	Remind map[ledger.Priority]time.Duration
}

// Notifier tells the operators what happened. Of several passes at a time, also of other processes, one works.
type Notifier struct {
	ledger   *ledger.Ledger
	api      API
	internal Internal
	opts     Options
	// For Slack's pace; read and written by the one pass that holds the lock.
	last   time.Time // of the last message
	resume time.Time // Slack wants to be left alone until then
}

// pace is how often a channel takes a message. Source: https://docs.slack.dev/apis/web-api/rate-limits ("1 per second per channel")
const pace = time.Second

// batch is after how many obligations the channel is verified anew.
const batch = 10

// New returns a Notifier. It asks for nothing yet.
func New(l *ledger.Ledger, api API, internal Internal, opts Options) *Notifier {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Wait == nil {
		opts.Wait = Wait
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.Describe == nil {
		opts.Describe = func(context.Context, string, string) (Destination, error) { return Destination{}, nil }
	}
	return &Notifier{ledger: l, api: api, internal: internal, opts: opts}
}

// Wait waits by the real clock, as Options.Wait does where nothing is injected.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Report tells what a pass did. Its lists are never nil.
type Report struct {
	Posted []int64   `json:"posted"` // obligations with a new card
	Edited []int64   `json:"edited"` // obligations whose card was brought up to date
	Told   int       `json:"told"`   // notices
	Failed []Failure `json:"failed"`
	Busy   bool      `json:"busy"` // another pass was at work, and this one did nothing
}

// Failure is an obligation that could not be told of. Its notices wait for the next pass.
type Failure struct {
	ObligationID int64  `json:"obligation_id"`
	Error        string `json:"error"`
}

// LaterError says that Slack could not be reached, or wants to be left alone. What is queued waits for the next pass.
type LaterError struct {
	RetryAfter time.Duration // 0: not said
	Reason     string
}

func (e *LaterError) Error() string {
	if e.RetryAfter > 0 {
		return fmt.Sprintf("%s; what is queued waits, Slack asks for %s", e.Reason, e.RetryAfter)
	}
	return e.Reason + "; what is queued waits"
}

// Pass tells what is queued, as far as the channel is verified. One pass works at a time, across processes; another one does nothing. The
// error is an *UnverifiedError, a *LaterError, or the ledger's; an obligation that Slack refuses is in the report, and stops no other.
// Where nothing is to be told, nothing is asked of Slack.
func (n *Notifier) Pass(ctx context.Context) (Report, error) {
	out := Report{Posted: []int64{}, Edited: []int64{}, Failed: []Failure{}}
	unlock, err := n.lock()
	if err != nil || unlock == nil {
		out.Busy = err == nil
		return out, err
	}
	defer unlock()
	if left := n.resume.Sub(n.opts.Now()); left > 0 {
		return out, &LaterError{RetryAfter: left, Reason: rateLimit}
	}
	err = n.pass(ctx, &out)
	n.resume = n.opts.Now().Add(leftAlone(err))
	return out, err
}

// leftAlone is how long Slack asked to be left alone, in a refusal of whatever it was asked.
func leftAlone(err error) time.Duration {
	var later *LaterError
	var limited *slackgo.RateLimitedError
	switch {
	case errors.As(err, &later):
		return later.RetryAfter
	case errors.As(err, &limited):
		return limited.RetryAfter
	}
	return 0
}

func (n *Notifier) pass(ctx context.Context, out *Report) error {
	tried := map[int64]bool{}
	for {
		due, err := n.due(ctx, tried)
		if err != nil {
			return err
		}
		if len(due) == 0 {
			return n.remind(ctx)
		}
		if err := n.Verify(ctx); err != nil {
			return err
		}
		for _, id := range due {
			tried[id] = true
			if err := n.bring(ctx, id, out); err != nil {
				return err
			}
		}
	}
}

// due is the next batch that this pass has not tried.
func (n *Notifier) due(ctx context.Context, tried map[int64]bool) ([]int64, error) {
	all, err := n.ledger.Outbox(ctx, n.internal.Channel, batch+len(tried))
	if err != nil {
		return nil, err
	}
	var out []int64
	for _, id := range all {
		if !tried[id] && len(out) < batch {
			out = append(out, id)
		}
	}
	return out, nil
}

// bring tells of one obligation. What Slack refuses of it is a failure in the report; what would befall every other too is returned.
func (n *Notifier) bring(ctx context.Context, id int64, out *Report) error {
	s, err := n.ledger.Subject(ctx, id, n.internal.Channel)
	if err != nil {
		return err
	}
	err = n.tell(ctx, s, out)
	if gone(err) { // somebody deleted the card in Slack, so it gets a new one
		if s, err = n.ledger.Subject(ctx, id, n.internal.Channel); err != nil {
			return err
		}
		s.Card, s.View = nil, nil
		err = n.tell(ctx, s, out)
	}
	if why := n.ownFault(err); why != "" {
		n.opts.Log.Error("an obligation could not be told of", "obligation", id, "reason", why)
		out.Failed = append(out.Failed, Failure{ObligationID: id, Error: why})
		return nil
	}
	return later(err)
}

// ownFault says what is wrong with this obligation alone, "" where another one would fare no better.
func (n *Notifier) ownFault(err error) string {
	var refused slackgo.SlackErrorResponse
	var input *ledger.InputError
	switch {
	case errors.As(err, &refused) && !aboutAll(refused.Err):
		return "Slack refuses its card or notice: " + code(refused.Err)
	case errors.Is(err, errAlone):
		return "its card vanishes as soon as it is posted"
	case errors.As(err, &input):
		return input.Error()
	}
	return ""
}

// aboutAll are the refusals that are about the app or the channel, and not about a message.
func aboutAll(code string) bool {
	switch code {
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "missing_scope", "channel_not_found",
		"not_in_channel", "is_archived", "is_inactive", "restricted_action", "ratelimited", "fatal_error", "internal_error", "service_unavailable", "team_access_not_granted":
		return true
	}
	return false
}

const rateLimit = "Slack's rate limit was met"

// later turns what Slack or the network said into what to do about it. Only codes and our own words are kept: an error of the network
// can hold a URL.
func later(err error) error {
	var limited *slackgo.RateLimitedError
	var refused slackgo.SlackErrorResponse
	var status slackgo.StatusCodeError
	var network net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return &LaterError{RetryAfter: limited.RetryAfter, Reason: rateLimit}
	case errors.As(err, &refused):
		return &LaterError{Reason: "Slack answers " + code(refused.Err)}
	case errors.As(err, &status):
		return &LaterError{Reason: fmt.Sprintf("Slack answers with HTTP status %d", status.Code)}
	case errors.As(err, &network), errors.Is(err, errAnswer):
		return &LaterError{Reason: "Slack was not reached, or its answer was lost"}
	}
	return err
}

// lock is held by the one pass that works. nil without an error says that another one does.
func (n *Notifier) lock() (unlock func(), err error) {
	dir := n.ledger.Path() + ".d"
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("the notifier's lock: %w", err)
	}
	l := flock.New(filepath.Join(dir, "notify.lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK), flock.SetPermissions(0o600))
	got, err := l.TryLock()
	if err != nil {
		return nil, fmt.Errorf("the notifier's lock: %w", err)
	}
	if !got {
		return nil, nil
	}
	return func() { l.Close() }, nil
}
