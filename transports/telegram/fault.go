package telegram

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"countersign/transports"
)

// Stages as recorded with an outcome. Where Telegram said no, the stage is the method
// that it said no to.
const (
	stageSession = "session" // it was finished before
	stageMessage = "message" // found here, nothing was said to anybody
	stageToken   = "token"   // there is none
	stageConnect = "connect" // name, TCP, proxy
	stageTLS     = "tls"
	stageRequest = "request" // connected; no reply began
	stageReply   = "reply"   // it began, and was cut off or makes no sense

	getMe       = "getMe"
	getChat     = "getChat"
	sendMessage = "sendMessage"
)

var (
	errFinished = errors.New("the session is finished; connect again")
	errNoReason = errors.New("no reason was given")
	errNoSense  = errors.New("the reply makes no sense")
	errOther    = errors.New("the answer is for another chat")
)

// refusals are the codes with which the API says that it did nothing
// (https://core.telegram.org/api/errors, and 409, 413 and 429 of the Bot API). Any
// other code is no documented no.
var refusals = []int{400, 401, 403, 404, 406, 409, 413, codeFlood, codeTooMany}

const (
	codeFlood   = 420
	codeTooMany = 429
)

// passing are those among refusals that go away by themselves.
var passing = []int{409, codeFlood, codeTooMany}

// A fault is one failed step.
type fault struct {
	stage     string
	code      string
	permanent bool
	after     time.Duration // that Telegram asked for
	flood     bool          // it said that there were too many messages
	sure      bool          // no message arrived: Telegram said no, or nothing was handed over
	err       error         // safe to show: no secrets, words capped
}

// judge decides how an exchange ended, for all methods; nil is a yes. err is what the
// library, the line below it, or the reader of the result above it found wrong. A
// yes to what was never handed over is none: it was meant for something else.
func (x *exchange) judge(method string, err error, hide secrets) *fault {
	kept := x.text.seal()
	var no *tgbotapi.Error
	switch {
	case err == nil && x.status == http.StatusOK && !kept:
		return nil
	case errors.As(err, &no) && x.isRefusal(no.Code):
		return saysNo(method, no, hide)
	case err == nil:
		err = fmt.Errorf("%w: ok is true", errNoSense)
	case no != nil:
		err = fmt.Errorf("%w: error_code %d, %q", errNoSense, no.Code, no.Message)
	}
	return &fault{
		stage: x.reached(), code: x.code(), sure: kept,
		permanent: errors.Is(err, errPlaintext), err: hide.scrub(err),
	}
}

// isRefusal tells if the code is Telegram's own word that nothing was done. A status
// that says something else leaves it open who is right; 200 with ok false is what
// some servers in Telegram's place answer.
func (x *exchange) isRefusal(code int) bool {
	return slices.Contains(refusals, code) && (x.status == code || x.status == http.StatusOK)
}

func (x *exchange) code() string {
	if x.status == 0 {
		return ""
	}
	return strconv.Itoa(x.status)
}

func saysNo(method string, no *tgbotapi.Error, hide secrets) *fault {
	f := &fault{
		stage: method, code: strconv.Itoa(no.Code), sure: true, err: errNoReason,
		permanent: !slices.Contains(passing, no.Code),
		flood:     no.Code == codeTooMany || no.Code == codeFlood,
	}
	if words := hide.clean(no.Message); words != "" {
		f.err = errors.New(words)
	}
	if no.MigrateToChatID != 0 {
		f.err = movedError(f.err, no.MigrateToChatID)
	}
	if f.flood && no.RetryAfter > 0 {
		f.after = time.Duration(min(no.RetryAfter, maxRetryAfter)) * time.Second
		f.err = fmt.Errorf("%w; not before %s from now", f.err, f.after)
	}
	return f
}

// maxRetryAfter, in seconds, is a year. 10,072 seconds have been seen.
const maxRetryAfter = 365 * 24 * 60 * 60

func movedError(err error, id int64) error {
	return fmt.Errorf("%w; the chat is now %d, which was not followed, for the approval was for this one: file again for %d", err, id, id)
}

// localFault is one that was found here; trying again as it is can't help.
func localFault(stage string, err error) *fault {
	return &fault{stage: stage, permanent: true, sure: true, err: err}
}

func (f *fault) notPrepared() error {
	return &transports.PrepareError{Stage: f.stage, Code: f.code, Permanent: f.permanent, RetryAfter: f.after, Err: f.err}
}

// end is the error of a Send.
func (f *fault) end() error {
	if f.sure {
		return &transports.RefusedError{Stage: f.stage, Code: f.code, RetryAfter: f.after, Err: f.err}
	}
	return &transports.AmbiguousError{Stage: f.stage, Code: f.code, Err: f.err}
}
