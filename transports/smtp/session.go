package smtp

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/emersion/go-smtp"

	"countersign/transports"
)

// A session is one connection to the server.
type session struct {
	t      *Transport
	wire   *wire
	client *smtp.Client
	login  login
	roots  *x509.CertPool // nil: the system's

	mailing  bool // MAIL was said, and neither RSET nor the yes to DATA followed
	finished bool // the connection is closed, or must not be used again
	prepared *transports.Message
}

var _ transports.Session = (*session)(nil)

// step runs one exchange under its time limit. A reply that says no leaves the
// session usable, unless it is 421, by which the server takes its leave (RFC 5321
// section 3.8). Everything else finishes it: what was said is then unknown.
func (s *session) step(ctx context.Context, stage string, exchange func() error) *fault {
	if s.finished {
		return &fault{stage: stageSession, err: errFinished}
	}
	disarm := s.wire.arm(ctx, s.t.config.Timeout)
	defer disarm()
	err := exchange()
	if err == nil {
		return nil
	}
	return s.failed(ctx, stage, err)
}

func (s *session) failed(ctx context.Context, stage string, err error) *fault {
	f := newFault(stage, err, s.login.hide).about(ctx, "")
	if f.code == 0 || f.code == codeClosing || s.wire.broken != nil {
		s.finish()
	}
	return f
}

// codeClosing is "service not available, closing transmission channel".
const codeClosing = 421

// finish closes the connection without another octet.
func (s *session) finish() {
	s.finished = true
	s.prepared = nil
	s.wire.abort()
}

// Prepare goes as far as RCPT (RFC 5321 section 3.3): the server knows sender, size
// and recipients, and nobody has been sent anything. A refused recipient ends it
// for all of them.
func (s *session) Prepare(ctx context.Context, m transports.Message) error {
	if err := s.Reset(ctx); err != nil {
		return err
	}
	if f := s.quiet(ctx, stageSession); f != nil {
		return f.notPrepared()
	}
	l, err := s.t.compose(widest(m))
	if err != nil {
		return localFault(stageMessage, err).notPrepared()
	}
	if f := s.takes(l); f != nil {
		return f.notPrepared()
	}
	if f := s.envelope(ctx, l); f != nil {
		_ = s.Reset(ctx) // else the next message's Prepare finds the session finished
		return f.notPrepared()
	}
	s.prepared = &m
	return nil
}

// takes tells, from what the server said in its EHLO, what it can't take.
func (s *session) takes(l letter) *fault {
	if ok, _ := s.client.Extension("SMTPUTF8"); !ok && l.utf8() {
		return localFault(stageRcpt, errors.New("a recipient's local part is not ASCII, and the server lacks SMTPUTF8"))
	}
	if limit, ok := s.client.MaxMessageSize(); ok && limit > 0 && len(l.octets) > limit { // RFC 1870: 0 is no limit
		return localFault(stageMail, fmt.Errorf("the message has %d octets, the server takes %d", len(l.octets), limit))
	}
	return nil
}

// envelope says MAIL, with SIZE and BODY as offered, and RCPT for each recipient.
func (s *session) envelope(ctx context.Context, l letter) *fault {
	options := &smtp.MailOptions{Size: int64(len(l.octets)), UTF8: l.utf8()}
	s.mailing = true
	f := s.step(ctx, stageMail, func() error { return s.client.Mail(s.t.from.String(), options) })
	if f != nil {
		return f
	}
	for _, to := range l.to {
		f := s.step(ctx, stageRcpt, func() error { return s.client.Rcpt(to.String(), nil) })
		if f != nil {
			return f.about(ctx, "<"+to.String()+">")
		}
	}
	return s.quiet(ctx, stageRcpt)
}

// quiet finds out, while no approval is used up, if the server went away or said
// more than it was asked: its next reply would then be taken for another command's.
// Before each write the wire looks again.
func (s *session) quiet(ctx context.Context, stage string) *fault {
	return s.step(ctx, stage, s.wire.quiet)
}

// Send is DATA.
func (s *session) Send(ctx context.Context, m transports.Message) (transports.Receipt, error) {
	prepared := s.prepared
	s.prepared = nil
	if err := transports.CheckSend(ctx, prepared, m); err != nil {
		return transports.Receipt{}, err
	}
	l, err := s.t.compose(m)
	if err != nil {
		return transports.Receipt{}, localFault(stageMessage, err).refused()
	}
	var data *smtp.DataCommand
	f := s.step(ctx, stageData, func() (err error) {
		data, err = s.client.Data()
		return err
	})
	if f != nil {
		return transports.Receipt{}, f.refused()
	}
	return s.content(ctx, data, l)
}

// content writes the letter and the final dot, and judges the end by how far it
// came. Up to the dot nothing was delivered; after it only a reply tells.
func (s *session) content(ctx context.Context, data *smtp.DataCommand, l letter) (transports.Receipt, error) {
	disarm := s.wire.arm(ctx, finalDotLimit)
	defer disarm()
	s.wire.beginContent(len(l.octets))
	defer s.wire.endContent()

	var reply *smtp.DataResponse
	_, err := data.Write(l.octets)
	if err == nil {
		reply, err = data.CloseWithResponse()
	}
	if err == nil {
		s.mailing = false
		return s.receipt(l, reply.StatusText), nil
	}
	f := s.failed(ctx, stageFinalDot, err)
	switch {
	case !s.wire.dot:
		f.stage = stageContent
		s.finish()
		return transports.Receipt{}, f.about(ctx, "nothing was delivered").refused()
	case f.code/100 == 4 || f.code/100 == 5:
		return transports.Receipt{}, f.refused()
	default:
		s.finish()
		return transports.Receipt{}, f.ambiguous()
	}
}

// receipt names what an operator can search for: the Message-ID at the receiver,
// the server's queue id in its log.
func (s *session) receipt(l letter, words string) transports.Receipt {
	words = strings.Join(strings.Fields(s.login.hide.clean(words)), " ")
	return transports.Receipt{
		Coordinate: transports.Words(strings.TrimSpace(l.id + " 250 " + words)),
		Detail:     fmt.Sprintf("%s, %s, recipients: %d", s.t.config.Address, s.wire.security(), len(l.to)),
	}
}

// Reset is RSET, where a transaction is open. go-smtp's client says EHLO again
// after it; that is done here, so that its failure isn't the next message's.
func (s *session) Reset(ctx context.Context) error {
	s.prepared = nil
	if s.finished {
		return (&fault{stage: stageSession, err: errFinished}).notPrepared()
	}
	if !s.mailing {
		return nil
	}
	f := s.step(ctx, stageReset, s.client.Reset)
	if f == nil {
		f = s.step(ctx, stageReset, s.sayHello)
	}
	if f != nil {
		s.finish()
		return f.notPrepared()
	}
	s.mailing = false
	return nil
}

// Close says QUIT, for a short time, and closes.
func (s *session) Close() error {
	if s.finished {
		return nil
	}
	s.finished, s.prepared = true, nil
	disarm := s.wire.arm(context.Background(), s.t.quit)
	defer disarm()
	err := s.client.Quit()
	if err == nil || errors.Is(err, net.ErrClosed) {
		return nil
	}
	s.wire.abort()
	return newFault("quit", err, s.login.hide).err
}
