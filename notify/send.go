package notify

import (
	"context"
	"errors"
	"slices"

	slackgo "github.com/slack-go/slack"

	"countersign/plaintext"
	"countersign/transports/slack"
)

// What went wrong with a message where Slack refused nothing.
var (
	errAnswer = errors.New("no answer") // the message may be there, and is told again
	errAlone  = errors.New("a reply was posted outside of its thread, whose parent is gone")
)

// A receipt is Slack's yes to a message.
type receipt struct {
	ts      string
	differs bool // Slack tells of another content than was sent
}

// post sends a message, in a thread where one is named, at Slack's pace.
func (n *Notifier) post(ctx context.Context, thread string, m Message, more ...slackgo.MsgOption) (receipt, error) {
	if thread != "" {
		more = append(more, slackgo.MsgOptionTS(thread))
	}
	r, echo, err := n.send(ctx, m, more...)
	// A reply to a message that was deleted goes to the channel itself, with a yes.
	if err == nil && thread != "" && echo.Timestamp != "" && echo.ThreadTimestamp != thread {
		err = errAlone
	}
	return r, err
}

// edit replaces all that a message shows.
func (n *Notifier) edit(ctx context.Context, ts string, m Message) (receipt, error) {
	r, _, err := n.send(ctx, m, slackgo.MsgOptionUpdate(ts))
	if err == nil && r.ts != ts {
		err = errAnswer
	}
	return r, err
}

// send is the one place that writes to Slack. Nothing in a message is markup, and no link in it unfolds.
func (n *Notifier) send(ctx context.Context, m Message, more ...slackgo.MsgOption) (receipt, slackgo.Message, error) {
	if err := n.keepPace(ctx); err != nil {
		return receipt{}, slackgo.Message{}, err
	}
	options := append([]slackgo.MsgOption{
		slackgo.MsgOptionText(Plain(m.Fallback), false), slackgo.MsgOptionBlocks(m.Blocks...), slackgo.MsgOptionDisableMarkdown(),
		slackgo.MsgOptionParse(false), slackgo.MsgOptionLinkNames(false), slackgo.MsgOptionDisableLinkUnfurl(), slackgo.MsgOptionDisableMediaUnfurl(),
	}, more...)
	channel, ts, echo, err := n.api.PostMessageWithResponseContext(ctx, n.internal.Channel, options...)
	if err == nil && (ts == "" || channel != n.internal.Channel) {
		err = errAnswer
	}
	return receipt{ts: ts, differs: differs(m, echo)}, echo, unclear(err)
}

// unclear marks what is neither a yes nor a no of Slack's.
func unclear(err error) error {
	var refused slackgo.SlackErrorResponse
	var limited *slackgo.RateLimitedError
	if err == nil || errors.As(err, &refused) || errors.As(err, &limited) {
		return err
	}
	return errors.Join(errAnswer, err)
}

// differs compares what Slack says that it shows with what was sent. What it doesn't say is not held against it: it refuses blocks that
// it can't show, and cuts only texts.
func differs(m Message, echo slackgo.Message) bool {
	if echo.Text != "" && !slack.Echoes(plaintext.VisibleLine(m.Fallback), echo.Text) {
		return true
	}
	echoed := texts(echo.Blocks.BlockSet)
	if len(echo.Blocks.BlockSet) == 0 {
		return false
	}
	return !slices.EqualFunc(texts(m.Blocks), echoed, func(sent, echoed string) bool { return slack.Echoes(unescape(sent), echoed) })
}

// gone tells whether a message that was to be edited or replied to is not there, or can't be edited any more.
func gone(err error) bool {
	var refused slackgo.SlackErrorResponse
	return errors.Is(err, errAlone) || errors.As(err, &refused) && slices.Contains(
		[]string{"message_not_found", "cant_update_message", "edit_window_closed", "thread_not_found"}, refused.Err)
}

// keepPace waits until Slack takes the channel's next message.
func (n *Notifier) keepPace(ctx context.Context) error {
	now := n.opts.Now()
	if left := n.last.Add(pace).Sub(now); !n.last.IsZero() && left > 0 && left <= pace { // more: the clock went back
		if err := n.opts.Wait(ctx, left); err != nil {
			return err
		}
	}
	n.last = n.opts.Now()
	return nil
}
