package smtp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// A mailbox is the backend of go-smtp's own server: it checks the password and
// keeps what it takes.
type mailbox struct {
	mu    sync.Mutex
	mails []transporttest.Mail
}

func (b *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailboxSession{box: b}, nil }

type mailboxSession struct {
	box    *mailbox
	authed bool
	mail   transporttest.Mail
}

func (s *mailboxSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *mailboxSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, pass string) error {
		if user != username || pass != password {
			return smtp.ErrAuthFailed
		}
		s.authed = true
		return nil
	}), nil
}

func (s *mailboxSession) Mail(from string, _ *smtp.MailOptions) error {
	if !s.authed {
		return smtp.ErrAuthRequired
	}
	s.mail = transporttest.Mail{From: []string{from}}
	return nil
}

func (s *mailboxSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "nobody@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "unknown"}
	}
	s.mail.To = append(s.mail.To, to)
	return nil
}

func (s *mailboxSession) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Content = string(content)
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	s.box.mails = append(s.box.mails, s.mail)
	return nil
}

func (s *mailboxSession) Reset()        { s.mail = transporttest.Mail{} }
func (s *mailboxSession) Logout() error { return nil }

// startRealServer is go-smtp's server on loopback, with STARTTLS or implicit TLS.
func startRealServer(t *testing.T, implicit bool) (*mailbox, func(*Config)) {
	t.Helper()
	tlsConfig, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
	box := &mailbox{}
	server := smtp.NewServer(box)
	server.Domain, server.TLSConfig, server.EnableSMTPUTF8 = "mail.example.org", tlsConfig, true
	server.MaxMessageBytes, server.MaxRecipients = 1<<20, 10
	server.ErrorLog = log.New(io.Discard, "", 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	mode := TLSStartTLS
	if implicit {
		mode, listener = TLSImplicit, tls.NewListener(listener, tlsConfig)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
	})
	return box, func(c *Config) {
		secure(roots)(c)
		c.Address, c.TLS, c.From, c.Now = listener.Addr().String(), mode, "Desk <desk@example.com>", clock
	}
}

func TestRealServer(t *testing.T) {
	for _, implicit := range []bool{false, true} {
		t.Run(fmt.Sprintf("implicit %v", implicit), func(t *testing.T) {
			box, configure := startRealServer(t, implicit)
			var c Config
			configure(&c)
			s := connect(t, newTransport(t, c))
			var want []transports.Message
			for i, text := range transporttest.NastyTexts() {
				m := claimed(offer())
				m.DecisionID, m.Text, m.Subject = int64(i+1), text.Text, subjects[i%len(subjects)]
				if i%3 == 0 {
					m.Channel = "zoë@xn--bcher-kva.example,kim@example.org"
				}
				prepare(t, s, m)
				r, err := s.Send(t.Context(), m)
				if err != nil || !strings.HasPrefix(r.Coordinate, fmt.Sprintf("<countersign.41.%d.", i+1)) {
					t.Fatalf("%s: %+v, %v", text.Name, r, err)
				}
				want = append(want, m)
			}
			_ = s.Close()
			box.check(t, want)
		})
	}
}

// check decodes what arrived twice over, with the standard library and go-message.
func (b *mailbox) check(t *testing.T, want []transports.Message) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.mails) != len(want) {
		t.Fatalf("%d mails arrived, want %d", len(b.mails), len(want))
	}
	for i, m := range want {
		_, got := b.mails[i].Read(t)
		if w := (transporttest.Delivered{Channel: m.Channel, Thread: m.Thread, Subject: m.Subject, Text: m.Text}); got != w {
			t.Errorf("arrived %+q\nwant    %+q", got, w)
		}
		entity, err := message.Read(strings.NewReader(b.mails[i].Content))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(entity.Body)
		h := mail.Header{Header: entity.Header}
		subject, subjectErr := h.Subject()
		if string(text) != m.Text || subject != m.Subject || errors.Join(err, subjectErr) != nil {
			t.Errorf("go-message reads %q, %q: %v %v", subject, text, err, subjectErr)
		}
	}
}

func TestRealServerRefuses(t *testing.T) {
	box, configure := startRealServer(t, false)
	var c Config
	configure(&c)
	c.Password = func() (string, error) { return "wrong", nil }
	_, err := newTransport(t, c).Connect(t.Context())
	if stage, code := stageAndCode(err); stage != stageAuth || code != "535" {
		t.Errorf("wrong password: %v", err)
	}
	c.Password = thePassword
	s := connect(t, newTransport(t, c))
	m := offer()
	m.Channel = "kim@example.org,nobody@example.org"
	err = s.Prepare(t.Context(), m)
	if stage, code := stageAndCode(err); stage != stageRcpt || code != "550" || !strings.Contains(err.Error(), "<nobody@example.org>: 5.1.1 unknown") {
		t.Errorf("unknown recipient: %v", err)
	}
	m.Channel = "kim@example.org"
	prepare(t, s, m)
	if _, err := s.Send(t.Context(), claimed(m)); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	m.Text = strings.Repeat("x", 1<<20)
	if stage, _ := stageAndCode(s.Prepare(t.Context(), m)); stage != stageMail {
		t.Error("a message over the server's limit was prepared")
	}
	_ = s.Close()
	box.check(t, []transports.Message{func() transports.Message { m := claimed(offer()); m.Channel = "kim@example.org"; return m }()})
}
