package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	slackgo "github.com/slack-go/slack"

	"countersign/transports"
)

// A session speaks as one app. Between messages it holds no connection.
type session struct {
	t     *Transport
	token string
	hide  secrets
	team  string // as auth.test says

	line     *line // for the post of prepared
	prepared *transports.Message
	finished bool // closed, or a Send ended in doubt
}

var _ transports.Session = (*session)(nil)

func (t *Transport) session() (*session, *fault) {
	token, err := t.token()
	if err != nil {
		return nil, &fault{ending: unsent, stage: stageToken, err: err}
	}
	return &session{t: t, token: token, hide: newSecrets(token)}, nil
}

// Connect asks auth.test, by which Slack says whose token it is.
func (t *Transport) Connect(ctx context.Context) (transports.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, &transports.PrepareError{Stage: stageConnect, Err: err}
	}
	s, f := t.session()
	if f != nil {
		return nil, f.notPrepared()
	}
	ctx, cancel := context.WithTimeout(ctx, t.config.Timeout)
	defer cancel()
	if f := s.authenticate(ctx); f != nil {
		return nil, f.notPrepared()
	}
	return s, nil
}

func (s *session) authenticate(ctx context.Context) *fault {
	r, f := s.ask(ctx, authTest, func(ctx context.Context, api *slackgo.Client) error {
		_, err := api.AuthTestContext(ctx)
		return err
	})
	if f != nil {
		return f
	}
	var who struct {
		Team string `json:"team_id"`
	}
	if err := json.Unmarshal(r.body, &who); err != nil {
		return &fault{stage: authTest, err: errNoSense}
	}
	s.team = who.Team
	if want := s.t.config.Team; want != "" && who.Team != want {
		return localFault(authTest, fmt.Errorf("the token is for workspace %q, not %s", s.hide.clean(who.Team), want))
	}
	return nil
}

// ask makes one request that changes nothing, on a line of its own.
func (s *session) ask(ctx context.Context, method string, call func(context.Context, *slackgo.Client) error) (*reply, *fault) {
	l, f := s.t.open(ctx, s.hide)
	if f != nil {
		return nil, f
	}
	x := s.exchange(ctx, l, method, call)
	return x.reply, x.judge(s.hide)
}

// Prepare asks conversations.info, unless that was asked lately, and opens the
// connection of the post: what is not there, or can't be reached, uses up no approval.
func (s *session) Prepare(ctx context.Context, m transports.Message) error {
	if err := s.Reset(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &transports.PrepareError{Stage: stageConnect, Err: err}
	}
	if err := s.t.Validate(m); err != nil {
		return localFault(stageMessage, err).notPrepared()
	}
	ctx, cancel := context.WithTimeout(ctx, s.t.config.Timeout)
	defer cancel()
	if f := s.find(ctx, m.Channel); f != nil {
		return f.notPrepared()
	}
	l, f := s.t.open(ctx, s.hide)
	if f != nil {
		return f.notPrepared()
	}
	s.line, s.prepared = l, &m
	return nil
}

// place is a channel as one workspace's token sees it: the next token may be another's.
type place struct{ team, channel string }

func (s *session) place(channel string) place { return place{team: s.team, channel: channel} }

// find makes sure that the channel can be posted to.
func (s *session) find(ctx context.Context, channel string) *fault {
	now := s.t.config.Now()
	if wait := s.t.quiet.Left(s.place(channel), now); wait > 0 {
		return &fault{ending: saidLater, stage: postMessage, code: codeTooMany, after: wait,
			err: fmt.Errorf("rate limit; the channel takes no message for another %s", wait)}
	}
	if s.t.known.Left(s.place(channel), now) > 0 {
		return nil
	}
	r, f := s.info(ctx, channel)
	if f != nil {
		return f
	}
	if f := s.checkChannel(r, channel); f != nil {
		return f
	}
	s.t.known.Keep(s.place(channel), now, channelMemory)
	return nil
}

// info asks what Slack knows of a channel.
func (s *session) info(ctx context.Context, channel string) (*reply, *fault) {
	return s.ask(ctx, conversationsInfo, func(ctx context.Context, api *slackgo.Client) error {
		_, err := api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: channel})
		return err
	})
}

// checkChannel: known, not archived, and we are in it
// (https://docs.slack.dev/reference/objects/conversation-object). A direct message has no
// is_member: that it is shown at all says so.
func (s *session) checkChannel(r *reply, channel string) *fault {
	var answer struct {
		Channel *struct {
			ID            string `json:"id"`
			IsArchived    bool   `json:"is_archived"`
			IsMember      bool   `json:"is_member"`
			IsIM          bool   `json:"is_im"`
			IsMPIM        bool   `json:"is_mpim"`
			IsUserDeleted bool   `json:"is_user_deleted"`
		} `json:"channel"`
	}
	if err := json.Unmarshal(r.body, &answer); err != nil || answer.Channel == nil {
		return &fault{stage: conversationsInfo, err: fmt.Errorf("%w: ok is true, without a channel", errNoSense)}
	}
	c := answer.Channel
	no := func(code, words string) *fault {
		return &fault{ending: saidNo, permanent: true, stage: conversationsInfo, code: code, err: errors.New(words)}
	}
	switch {
	case c.ID != "" && c.ID != channel:
		return no("", fmt.Sprintf("the channel is now %q, which was not followed, for the approval was for this one; file again", s.hide.clean(c.ID)))
	case c.IsArchived:
		return no("is_archived", refusals["is_archived"])
	case c.IsIM && c.IsUserDeleted:
		return no("", "the direct message is with a user who was deactivated")
	case !c.IsMember && !c.IsIM && !c.IsMPIM:
		return no("not_in_channel", refusals["not_in_channel"])
	}
	return nil
}

// Send is chat.postMessage, once.
func (s *session) Send(ctx context.Context, m transports.Message) (transports.Receipt, error) {
	prepared, l := s.prepared, s.line
	s.prepared, s.line = nil, nil
	if l != nil {
		defer func() { l.close() }()
	}
	if err := transports.CheckSend(ctx, prepared, m); err != nil {
		return transports.Receipt{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	if !l.open() { // the server had enough of waiting; nothing was said yet
		fresh, f := s.t.open(ctx, s.hide)
		if f != nil {
			return transports.Receipt{}, f.end()
		}
		l.close()
		l = fresh
	}
	r, f := s.post(ctx, l, m)
	if f != nil {
		s.learn(m.Channel, f)
		return transports.Receipt{}, f.end()
	}
	return r, nil
}

func (s *session) post(ctx context.Context, l *line, m transports.Message) (transports.Receipt, *fault) {
	x := s.exchange(ctx, l, postMessage, func(ctx context.Context, api *slackgo.Client) error {
		_, _, err := api.PostMessageContext(ctx, m.Channel, postOptions(m)...)
		return err
	})
	if f := x.judge(s.hide); f != nil {
		return transports.Receipt{}, f
	}
	var p posted
	if err := p.read(x.reply); err != nil {
		return transports.Receipt{}, &fault{stage: stageReply, code: strconv.Itoa(x.reply.status), err: err}
	}
	return p.receipt(m, x.reply, s.hide), nil
}

// postOptions make Slack take the text for a text and nothing else
// (https://docs.slack.dev/reference/methods/chat.postMessage).
func postOptions(m transports.Message) []slackgo.MsgOption {
	options := []slackgo.MsgOption{
		slackgo.MsgOptionText(m.Text, true), // &, < and > once, in one pass
		slackgo.MsgOptionDisableMarkdown(),
		slackgo.MsgOptionParse(false), // parse=none
		slackgo.MsgOptionLinkNames(false),
		slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionDisableMediaUnfurl(),
	}
	if m.Thread != "" {
		options = append(options, slackgo.MsgOptionTS(m.Thread))
	}
	return options
}

// learn draws conclusions from a Send that failed, for the messages after it: so that
// one no does not use up their approvals too.
func (s *session) learn(channel string, f *fault) {
	switch {
	case f.ending == unclear:
		s.finish()
	case f.ending == saidLater:
		s.t.quiet.Keep(s.place(channel), s.t.config.Now(), max(f.after, time.Second))
	case f.ending == saidNo && isAboutAccount(f.code):
		s.t.known.Clear()
	default:
		s.t.known.Forget(s.place(channel))
	}
}

// Reset closes the connection that the post would have had.
func (s *session) Reset(context.Context) error {
	s.giveUp()
	if s.finished {
		return localFault(stageSession, errFinished).notPrepared()
	}
	return nil
}

// Close ends the session.
func (s *session) Close() error {
	s.finish()
	return nil
}

func (s *session) finish() {
	s.giveUp()
	s.finished = true
}

func (s *session) giveUp() {
	if s.line != nil {
		s.line.close()
	}
	s.prepared, s.line = nil, nil
}
