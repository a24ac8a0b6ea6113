package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"countersign/transports"
)

// provenFor is how long an answered request vouches for the next one: network and
// token work. It is shorter than idleLimit, so that Send finds a connection.
const provenFor = 15 * time.Second

// A session is one connection, as one bot.
type session struct {
	t    *Transport
	line *line
	bot  *tgbotapi.BotAPI
	hide secrets

	proven   time.Time // when the last request was answered with yes; zero after anything else
	to       target    // of prepared
	prepared *transports.Message
	finished bool // closed, or a Send ended in doubt
}

var _ transports.Session = (*session)(nil)

// Connect asks getMe, by which Telegram says whose token it is.
func (t *Transport) Connect(ctx context.Context) (transports.Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, &transports.PrepareError{Stage: stageConnect, Err: err}
	}
	token, err := t.token()
	if err != nil {
		return nil, &transports.PrepareError{Stage: stageToken, Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, t.config.Timeout)
	defer cancel()
	s := &session{t: t, line: t.newLine(), hide: newSecrets(token)}
	if f := s.open(ctx, token); f != nil {
		s.finish()
		return nil, f.notPrepared()
	}
	return s, nil
}

// open makes the library's client, which asks getMe by itself.
func (s *session) open(ctx context.Context, token string) *fault {
	return s.exchange(ctx, getMe, func() (err error) {
		if s.bot, err = tgbotapi.NewBotAPIWithClient(token, s.t.endpoint, s.line); err == nil && s.bot.Self.ID == 0 {
			err = fmt.Errorf("%w: it names no bot", errNoSense)
		}
		return err
	})
}

// exchange runs one request of the library, and keeps whether it vouches for the next.
func (s *session) exchange(ctx context.Context, method string, request func() error) *fault {
	x := newExchange(ctx)
	s.line.current = x
	f := x.judge(method, request(), s.hide)
	s.proven = time.Time{}
	if f == nil {
		s.proven = s.t.config.Now()
	}
	return f
}

// call makes one request and reads its result.
func (s *session) call(ctx context.Context, method string, params tgbotapi.Params, read func(json.RawMessage) error) *fault {
	return s.exchange(ctx, method, func() error {
		reply, err := s.bot.MakeRequest(method, params)
		if err != nil {
			return err
		}
		return read(reply.Result)
	})
}

// Prepare asks getChat, unless that was asked lately, or getMe, unless anything was: so
// that a line that broke, or a token that was withdrawn, uses up no approval.
func (s *session) Prepare(ctx context.Context, m transports.Message) error {
	if err := s.Reset(ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &transports.PrepareError{Stage: stageConnect, Err: err}
	}
	to, err := parseMessage(m)
	if err != nil {
		return localFault(stageMessage, err).notPrepared()
	}
	ctx, cancel := context.WithTimeout(ctx, s.t.config.Timeout)
	defer cancel()
	if f := s.ask(ctx, to); f != nil {
		return f.notPrepared()
	}
	s.to, s.prepared = to, &m
	return nil
}

func (s *session) ask(ctx context.Context, to target) *fault {
	now := s.t.config.Now()
	if wait := s.t.flood.Left(s.key(to), now); wait > 0 {
		return &fault{stage: sendMessage, code: strconv.Itoa(codeTooMany), after: wait, sure: true,
			err: fmt.Errorf("the chat takes no message for another %s", wait)}
	}
	if s.t.config.CheckChat && s.t.known.Left(s.key(to), now) == 0 {
		return s.checkChat(ctx, to)
	}
	if age := now.Sub(s.proven); s.proven.IsZero() || age < 0 || age >= provenFor {
		return s.call(ctx, getMe, nil, s.sameBot)
	}
	return nil
}

func (s *session) sameBot(result json.RawMessage) error {
	var self tgbotapi.User
	err := json.Unmarshal(result, &self)
	if err == nil && self.ID != s.bot.Self.ID {
		err = fmt.Errorf("%w: it names another bot", errNoSense)
	}
	return err
}

// chatKey names a chat as one bot sees it: another token may be another bot.
type chatKey struct {
	bot  int64
	chat string
}

func (s *session) key(to target) chatKey { return chatKey{bot: s.bot.Self.ID, chat: to.chat} }

// checkChat asks for the chat. An id that leads to another one is a chat that moved.
func (s *session) checkChat(ctx context.Context, to target) *fault {
	var chat struct {
		ID int64 `json:"id"`
	}
	f := s.call(ctx, getChat, tgbotapi.Params{"chat_id": to.chat}, func(result json.RawMessage) error {
		err := json.Unmarshal(result, &chat)
		if err == nil && chat.ID == 0 {
			err = fmt.Errorf("%w: it names no chat", errNoSense)
		}
		return err
	})
	switch {
	case f != nil:
		return f
	case to.id != 0 && chat.ID != to.id:
		return localFault(getChat, movedError(errOther, chat.ID))
	}
	s.t.known.Keep(s.key(to), s.t.config.Now(), chatMemory)
	return nil
}

// Send is sendMessage, once.
func (s *session) Send(ctx context.Context, m transports.Message) (transports.Receipt, error) {
	prepared, to := s.prepared, s.to
	s.prepared = nil
	if err := transports.CheckSend(ctx, prepared, m); err != nil {
		return transports.Receipt{}, err
	}
	params, err := to.params(m.Text)
	if err != nil {
		return transports.Receipt{}, localFault(stageMessage, err).end()
	}
	ctx, cancel := context.WithTimeout(ctx, sendLimit)
	defer cancel()
	var echo echo
	if f := s.call(ctx, sendMessage, params, echo.read); f != nil {
		s.learn(to, f)
		return transports.Receipt{}, f.end()
	}
	return echo.receipt(to, m.Text, s.name()), nil
}

// learn draws conclusions from a Send that failed, for the messages after it.
func (s *session) learn(to target, f *fault) {
	switch {
	case !f.sure:
		s.finish()
	case f.flood:
		s.t.flood.Keep(s.key(to), s.t.config.Now(), max(f.after, time.Second))
	default:
		s.t.known.Forget(s.key(to))
	}
}

// botName is a user name that may be repeated.
var botName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// name is the bot's, for people.
func (s *session) name() string {
	if name := s.bot.Self.UserName; botName.MatchString(name) && !s.hide.In(name) {
		return "@" + name
	}
	return fmt.Sprintf("bot %d", s.bot.Self.ID)
}

// Reset has nothing to undo: Prepare leaves nothing behind.
func (s *session) Reset(context.Context) error {
	s.prepared = nil
	if s.finished {
		return (&fault{stage: stageSession, err: errFinished}).notPrepared() // another session may do
	}
	return nil
}

// Close ends the connection.
func (s *session) Close() error {
	s.finish()
	return nil
}

func (s *session) finish() {
	s.prepared, s.finished = nil, true
	s.line.close()
}
