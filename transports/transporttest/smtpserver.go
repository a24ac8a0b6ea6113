package transporttest

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// An SMTPServer is a scripted mail server on loopback. It believes anything, says
// what it was told to, and records every octet that reached it. Set the fields,
// then Start it.
type SMTPServer struct {
	Extensions []string    // what EHLO offers, "8BITMIME", "SIZE 1000"
	TLS        *tls.Config // for STARTTLS, and for Implicit
	Implicit   bool        // TLS from the first octet on

	// Steps are the departures from a friendly server, by verb: GREETING, EHLO,
	// STARTTLS, AUTH, AUTHLINE (a further line of an AUTH exchange), MAIL, RCPT,
	// DATA, CONTENT, DOT, RSET, QUIT. "RCPT 2" is the second RCPT of a connection
	// and goes before "RCPT". CONTENT is taken once At octets of it have come.
	Steps map[string]Step

	// Stalled gets the verb whenever Hang or Deaf begins.
	Stalled chan string

	listener net.Listener
	release  chan struct{}
	once     sync.Once
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    []*smtpConn
}

// A Step is one answer.
type Step struct {
	Say  string // raw octets; "" is the friendly answer, unless Then ends the talk
	Then After
	At   int // of CONTENT
}

// After is what a server does once it has spoken.
type After int

// What follows a Step.
const (
	GoOn  After = iota
	Hang        // says nothing more; listens until the client closes
	Deaf        // neither speaks nor reads, until Wait
	Cut         // closes the connection
	Reset       // resets the connection
)

// SMTPConn is what the server saw on one connection.
type SMTPConn struct {
	Raw      string   // all octets from the client, those under TLS decrypted
	Verbs    []string // of the commands, in order
	Contents int      // how often the content of a message was begun
	Mails    []Mail   // what took effect
}

// A Mail is what the server took over with its answer to the final dot, or would
// have taken over had the answer not been lost. Content has its dots unstuffed.
type Mail struct {
	From, To []string
	Content  string
}

// Start listens until the test ends.
func (s *SMTPServer) Start(t *testing.T) *SMTPServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener, s.release = l, make(chan struct{})
	s.Stalled = make(chan string, 64)
	s.wg.Go(s.accept)
	t.Cleanup(func() {
		_ = l.Close()
		s.once.Do(func() { close(s.release) })
		s.mu.Lock()
		for _, c := range s.conns {
			_ = c.tcp.Close()
		}
		s.mu.Unlock()
		s.wg.Wait()
	})
	return s
}

// Addr is host:port.
func (s *SMTPServer) Addr() string { return s.listener.Addr().String() }

// Wait returns when all connections there were have ended; then what they saw is
// complete. The client has to have closed them.
func (s *SMTPServer) Wait() {
	s.once.Do(func() { close(s.release) })
	s.mu.Lock()
	conns := s.conns
	s.mu.Unlock()
	for _, c := range conns {
		<-c.done
	}
}

// Conns are the connections so far, in the order in which they were accepted.
func (s *SMTPServer) Conns() []SMTPConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []SMTPConn
	for _, c := range s.conns {
		saw := c.saw
		saw.Raw = c.raw.String()
		all = append(all, saw)
	}
	return all
}

// Mails are the messages that took effect, over all connections.
func (s *SMTPServer) Mails() []Mail {
	var all []Mail
	for _, c := range s.Conns() {
		all = append(all, c.Mails...)
	}
	return all
}

// Contents is how often the content of a message was begun.
func (s *SMTPServer) Contents() int {
	n := 0
	for _, c := range s.Conns() {
		n += c.Contents
	}
	return n
}

func (s *SMTPServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serve(conn)
	}
}

func (s *SMTPServer) serve(conn net.Conn) {
	c := newSMTPConn(s, conn)
	s.mu.Lock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	s.wg.Go(c.serve)
}

// Interject says words on the newest connection, whatever it was or wasn't asked.
func (s *SMTPServer) Interject(t *testing.T, words string) {
	t.Helper()
	s.mu.Lock()
	conn := s.conns[len(s.conns)-1].conn
	s.mu.Unlock()
	if _, err := io.WriteString(conn, words); err != nil {
		t.Fatal(err)
	}
}

// Pipe is a connection to the server that holds nothing in between: what was
// written has been read. It says that it goes to loopback.
func (s *SMTPServer) Pipe() net.Conn {
	client, server := net.Pipe()
	s.serve(server)
	return pipe{client}
}

type pipe struct{ net.Conn }

func (pipe) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (pipe) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 25} }

// ehlo is the friendly answer to EHLO.
func (s *SMTPServer) ehlo(secured bool) string {
	lines := []string{"fake.example"}
	for _, e := range s.Extensions {
		if secured && e == "STARTTLS" {
			continue
		}
		lines = append(lines, e)
	}
	last := len(lines) - 1
	return "250-" + strings.Join(lines[:last], "\r\n250-") + "\r\n250 " + lines[last] + "\r\n"
}
