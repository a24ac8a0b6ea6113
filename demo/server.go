package demo

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/emersion/go-message/mail"
	"github.com/emersion/go-smtp"
)

// received is one mail as it arrived.
type received struct {
	raw                          []byte
	messageID, subject, text, to string
}

// mailServer is a real SMTP server on a loopback port that keeps what arrives. While it is mute, it accepts a mail whole and then says
// nothing, as a server does whose answer is lost.
type mailServer struct {
	server  *smtp.Server
	address string
	dir     string // where each mail is kept as a file

	mu    sync.Mutex
	mails []received
	mute  bool
	taken chan received // gets each mail that was accepted while mute
	free  chan struct{} // closed at the end: lets the mute sessions go
}

func startServer(dir string) (*mailServer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	m := &mailServer{address: listener.Addr().String(), dir: dir, taken: make(chan received, 1), free: make(chan struct{})}
	m.server = smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{server: m}, nil }))
	m.server.Domain = "demo.invalid"
	go m.server.Serve(listener)
	return m, nil
}

func (m *mailServer) Close() error {
	close(m.free)
	return m.server.Close()
}

func (m *mailServer) setMute(on bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mute = on
}

func (m *mailServer) all() []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]received(nil), m.mails...)
}

// keep stores a mail, and tells whether the sender may hear of it.
func (m *mailServer) keep(r received) (answer bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = append(m.mails, r)
	name := filepath.Join(m.dir, fmt.Sprintf("%d.eml", len(m.mails)))
	if err := os.WriteFile(name, r.raw, 0o600); err != nil {
		return false, err
	}
	if m.mute {
		m.taken <- r
	}
	return !m.mute, nil
}

// mailSession is one connection.
type mailSession struct {
	server *mailServer
	to     string
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	got, err := read(raw)
	if err != nil {
		return err
	}
	got.to = s.to
	answer, err := s.server.keep(got)
	if err == nil && !answer {
		<-s.server.free
	}
	return err
}

func (s *mailSession) Reset()        {}
func (s *mailSession) Logout() error { return nil }

// read decodes a mail as a receiver's program does.
func read(raw []byte) (received, error) {
	reader, err := mail.CreateReader(bytes.NewReader(raw))
	if err != nil {
		return received{}, err
	}
	out := received{raw: raw}
	if out.messageID, err = reader.Header.MessageID(); err != nil {
		return out, err
	}
	if out.subject, err = reader.Header.Subject(); err != nil {
		return out, err
	}
	part, err := reader.NextPart()
	if err != nil {
		return out, err
	}
	body, err := io.ReadAll(part.Body)
	out.text = string(body)
	return out, err
}
