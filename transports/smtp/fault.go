package smtp

import (
	"context"
	"errors"
	"fmt"
	"net/textproto"
	"strconv"
	"strings"

	"github.com/emersion/go-smtp"

	"countersign/transports"
)

// Stages as recorded with an outcome. RFC 5321 section 3.3 is why the line is
// drawn where it is: responsibility passes with the reply to the final dot.
const (
	stageConnect  = "connect"   // TCP
	stageGreeting = "greeting"  // the 220
	stageEhlo     = "ehlo"      //
	stageTLS      = "tls"       // STARTTLS and handshake
	stageAuth     = "auth"      //
	stageSession  = "session"   // it was finished before
	stageMessage  = "message"   // found here, nothing was said to the server
	stageMail     = "mail"      //
	stageRcpt     = "rcpt"      //
	stageReset    = "rset"      //
	stageData     = "data"      // the 354
	stageContent  = "content"   // before the final dot: nothing was delivered
	stageFinalDot = "final-dot" // after it: only the reply tells
)

var (
	errFinished = errors.New("the session is finished; connect again")
	errNoReason = errors.New("the server gave no reason")
)

// A fault is one failed step: a reply of the server that said no (code isn't 0),
// or anything else.
type fault struct {
	stage     string
	code      int
	permanent bool
	err       error // safe to show: no secrets, words capped
}

// newFault makes an error of go-smtp's client safe and tells replies from
// everything else. The original isn't kept: its text may repeat a secret.
func newFault(stage string, err error, hide secrets) *fault {
	code, words := replyOf(err)
	if code == 0 {
		return &fault{stage: stage, err: hide.scrub(err)}
	}
	f := &fault{stage: stage, code: code, permanent: code/100 == 5, err: errNoReason}
	if words = hide.clean(words); words != "" {
		f.err = errors.New(words)
	}
	return f
}

// replyOf is the reply that err stands for; code 0 is none.
func replyOf(err error) (code int, words string) {
	var (
		client *smtp.SMTPError  // of go-smtp's client
		wire   *textproto.Error // of STARTTLS, which the wire does by itself
	)
	switch {
	case errors.As(err, &client):
		return client.Code, enhanced(client) + client.Message
	case errors.As(err, &wire):
		return wire.Code, unfold(wire.Msg)
	}
	return 0, ""
}

// unfold takes the code of the first line off the further ones, as go-smtp's client does: it would stand in the middle of
// what was folded.
func unfold(words string) string {
	code, _, _ := strings.Cut(words, " ")
	return strings.ReplaceAll(words, "\n"+code+" ", "\n")
}

// localFault is one that was found here; trying again as it is can't help.
func localFault(stage string, err error) *fault {
	return &fault{stage: stage, permanent: true, err: err}
}

// about adds what the step was about, and the end of ctx if that was the reason.
func (f *fault) about(ctx context.Context, what string) *fault {
	if err := ctx.Err(); err != nil && f.code == 0 && !errors.Is(f.err, err) {
		f.err = fmt.Errorf("%w: %w", err, f.err)
	}
	if what != "" {
		f.err = fmt.Errorf("%s: %w", what, f.err)
	}
	return f
}

func (f *fault) codeText() string {
	if f.code == 0 {
		return ""
	}
	return strconv.Itoa(f.code)
}

func (f *fault) notPrepared() error {
	return &transports.PrepareError{Stage: f.stage, Code: f.codeText(), Permanent: f.permanent, Err: f.err}
}

func (f *fault) refused() error {
	return &transports.RefusedError{Stage: f.stage, Code: f.codeText(), Err: f.err}
}

func (f *fault) ambiguous() error {
	return &transports.AmbiguousError{Stage: f.stage, Code: f.codeText(), Err: f.err}
}

// enhanced gives back the RFC 3463 code that go-smtp took off the words.
func enhanced(reply *smtp.SMTPError) string {
	e := reply.EnhancedCode
	if e == (smtp.EnhancedCode{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d ", e[0], e[1], e[2])
}
