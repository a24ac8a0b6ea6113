package slack

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"countersign/transports"
)

// Stages as recorded with an outcome. Where Slack said no, the stage is the method that
// it said no to.
const (
	stageSession = "session" // it was finished before
	stageMessage = "message" // found here, nothing was said to anybody
	stageToken   = "token"   // there is none
	stageConnect = "connect" // name, TCP, proxy
	stageTLS     = "tls"
	stageRequest = "request" // connected; no reply began
	stageReply   = "reply"   // it began, and was cut off or makes no sense

	authTest          = "auth.test"
	conversationsInfo = "conversations.info"
	conversationsList = "conversations.list"
	postMessage       = "chat.postMessage"
)

var (
	errFinished  = errors.New("the session is finished; connect again")
	errOutOfTurn = errors.New("the yes came before the text was out, so it is for something else")
	errNotAReply = errors.New("the reply is not a JSON object that says ok")
	errNoSense   = errors.New("the reply makes no sense")
)

// codeTooMany is HTTP's 429.
const codeTooMany = "429"

// An ending is how an exchange ended, if not with yes.
type ending int

const (
	unclear   ending = iota // anything else
	unsent                  // provably nothing was handed over
	saidNo                  // by a code that is documented to mean it
	saidLater               // by rate limit
)

// A fault is one step that did not end with yes.
type fault struct {
	ending    ending
	stage     string
	code      string
	permanent bool
	after     time.Duration // that Slack asked for; 0 is unsaid
	err       error         // safe to show: no secrets, words capped
}

// judge decides how an exchange ended, for all methods; nil is a yes. A server may answer
// once it has read the header, but not say yes to a text that it hasn't.
func (x *exchange) judge(hide secrets) *fault {
	r := x.reply
	switch {
	case r == nil:
		return x.unanswered(hide)
	case r.saysYes() && x.method == postMessage && x.isEarly():
		return &fault{stage: stageReply, code: strconv.Itoa(r.status), err: errOutOfTurn}
	case r.status == http.StatusTooManyRequests:
		return x.later(codeTooMany)
	case r.saysNo() && isRateLimit(r.Error):
		return x.later(r.Error)
	case r.saysNo() && (r.status == http.StatusOK || r.status/100 == 4):
		return x.no(hide)
	case r.saysYes() && r.status == http.StatusOK:
		return nil
	case r.OK == nil && r.status == http.StatusOK:
		return &fault{stage: stageReply, code: strconv.Itoa(r.status), err: errNotAReply}
	default:
		return &fault{stage: x.method, code: strconv.Itoa(r.status), err: fmt.Errorf("HTTP status %d", r.status)}
	}
}

// unanswered is a request without a whole reply. What it noted is final by then: net/http's
// writer has ended.
func (x *exchange) unanswered(hide secrets) *fault {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.began:
		return &fault{stage: stageReply, err: hide.scrub(x.err)}
	case !x.handed:
		return x.unsent(hide)
	case x.whole:
		return &fault{stage: stageRequest, err: hide.scrub(fmt.Errorf("no reply came to the request: %w", x.err))}
	default:
		return &fault{stage: stageRequest, err: hide.scrub(fmt.Errorf("the request was cut off: %w", x.err))}
	}
}

// unsent is a request of whose body nothing was handed over. When there was no time left for
// it, it is refused in the words that all transports have for that.
func (x *exchange) unsent(hide secrets) *fault {
	f := &fault{ending: unsent, stage: stageRequest, err: hide.scrub(x.err)}
	var late *transports.RefusedError
	if errors.As(transports.CheckTime(x.ctx), &late) {
		f.stage, f.err = late.Stage, late.Err
	}
	return f
}

func (x *exchange) later(code string) *fault {
	f := &fault{ending: saidLater, stage: x.method, code: code, after: x.reply.after}
	f.err = errors.New("rate limit, without a usable Retry-After")
	if f.after > 0 {
		f.err = fmt.Errorf("rate limit; not before %s from now", f.after)
	}
	return f
}

// plainCode is what Slack's codes look like; anything else in their place is withheld.
var plainCode = regexp.MustCompile(`^[a-z][a-z0-9_]{0,79}$`)

// no is an ok false. An unknown code is no documented no.
func (x *exchange) no(hide secrets) *fault {
	code := x.reply.Error
	if !plainCode.MatchString(code) || hide.In(code) {
		return &fault{stage: stageReply, code: strconv.Itoa(x.reply.status), err: fmt.Errorf("%w: ok is false, and the error is no code", errNoSense)}
	}
	f := &fault{stage: x.method, code: code, err: errors.New("the error is no documented refusal")}
	words := hide.clean(x.reply.words())
	if hint, known := meansNotPosted(code); known {
		f.ending, f.permanent = saidNo, true
		f.err = errors.New(hint)
	}
	if words != "" {
		f.err = fmt.Errorf("%w: %s", f.err, words)
	}
	return f
}

// localFault is one that was found here; trying again as it is can't help.
func localFault(stage string, err error) *fault {
	return &fault{ending: unsent, stage: stage, permanent: true, err: err}
}

func (f *fault) notPrepared() error {
	return &transports.PrepareError{Stage: f.stage, Code: f.code, Permanent: f.permanent, RetryAfter: f.after, Err: f.err}
}

// end is the error of a Send.
func (f *fault) end() error {
	switch f.ending {
	case unsent, saidNo, saidLater:
		return &transports.RefusedError{Stage: f.stage, Code: f.code, RetryAfter: f.after, Err: f.err}
	default:
		return &transports.AmbiguousError{Stage: f.stage, Code: f.code, Err: f.err}
	}
}
