package transporttest

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
)

// smtpConn serves one client of an SMTPServer.
type smtpConn struct {
	server *SMTPServer
	raw    strings.Builder // guarded by server.mu, like saw
	saw    SMTPConn

	tcp     net.Conn
	conn    net.Conn // tcp, or TLS over it; set under server.mu
	in      *bufio.Reader
	secured bool
	auth    bool // within an AUTH exchange
	counts  map[string]int
	mail    Mail
	done    chan struct{}
}

func newSMTPConn(s *SMTPServer, tcp net.Conn) *smtpConn {
	c := &smtpConn{server: s, tcp: tcp, counts: make(map[string]int), done: make(chan struct{})}
	c.use(tcp)
	return c
}

func (c *smtpConn) use(conn net.Conn) {
	c.server.mu.Lock()
	c.conn = conn
	c.server.mu.Unlock()
	c.in = bufio.NewReader(io.TeeReader(conn, recorder{c}))
}

// recorder keeps every octet that was read.
type recorder struct{ c *smtpConn }

func (r recorder) Write(p []byte) (int, error) {
	r.c.server.mu.Lock()
	defer r.c.server.mu.Unlock()
	return r.c.raw.Write(p)
}

func (c *smtpConn) note(f func(saw *SMTPConn)) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	f(&c.saw)
}

func (c *smtpConn) serve() {
	defer close(c.done)
	defer func() { _ = c.conn.Close() }()
	if c.server.Implicit && !c.upgrade() {
		return
	}
	if !c.take("GREETING", "220 fake.example ESMTP\r\n") {
		return
	}
	for {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return
		}
		if !c.command(strings.TrimRight(line, "\r\n")) {
			return
		}
	}
}

// command answers one line; false ends the connection.
func (c *smtpConn) command(line string) bool {
	verb, _, _ := strings.Cut(strings.ToUpper(line), " ")
	if c.auth {
		verb = "AUTHLINE"
	}
	c.note(func(saw *SMTPConn) { saw.Verbs = append(saw.Verbs, verb) })
	switch verb {
	case "EHLO":
		return c.take(verb, c.server.ehlo(c.secured))
	case "STARTTLS":
		return c.take(verb, "220 2.0.0 go ahead\r\n") && (c.said(verb) != "220" || c.upgrade())
	case "AUTH", "AUTHLINE":
		ok := c.take(verb, "235 2.7.0 welcome\r\n")
		c.auth = c.said(verb) == "334"
		return ok
	case "MAIL":
		c.mail = Mail{From: []string{path(line)}}
		return c.take(verb, "250 2.1.0 ok\r\n")
	case "RCPT":
		c.mail.To = append(c.mail.To, path(line))
		return c.take(verb, "250 2.1.5 ok\r\n")
	case "DATA":
		return c.take(verb, "354 go ahead\r\n") && (c.said(verb) != "354" || c.content())
	case "QUIT":
		c.take(verb, "221 2.0.0 bye\r\n")
		return false
	default:
		return c.take(verb, "250 2.0.0 ok\r\n")
	}
}

// path is what stands between the brackets of MAIL and RCPT.
func path(line string) string {
	_, rest, _ := strings.Cut(line, "<")
	inside, _, _ := strings.Cut(rest, ">")
	return inside
}

// content reads up to the final dot and answers it.
func (c *smtpConn) content() bool {
	step, scripted := c.server.Steps["CONTENT"]
	var b strings.Builder
	for {
		if scripted && b.Len() >= step.At {
			c.begun(b.Len())
			return c.act("CONTENT", step)
		}
		line, err := c.in.ReadString('\n')
		if err != nil {
			c.begun(b.Len() + len(line))
			return false
		}
		if line == ".\r\n" {
			break
		}
		b.WriteString(strings.TrimPrefix(line, "."))
	}
	c.begun(b.Len())
	if verdict := c.server.Steps["DOT"].Say; !strings.HasPrefix(verdict, "4") && !strings.HasPrefix(verdict, "5") {
		c.mail.Content = b.String()
		c.note(func(saw *SMTPConn) { saw.Mails = append(saw.Mails, c.mail) })
	}
	return c.take("DOT", fmt.Sprintf("250 2.0.0 queued as TEST%d\r\n", c.counts["DOT"]+1))
}

func (c *smtpConn) begun(octets int) {
	if octets > 0 {
		c.note(func(saw *SMTPConn) { saw.Contents++ })
	}
}

// step is what the script has for the present occurrence of verb.
func (c *smtpConn) step(verb string) (Step, bool) {
	step, ok := c.server.Steps[fmt.Sprintf("%s %d", verb, c.counts[verb])]
	if !ok {
		step, ok = c.server.Steps[verb]
	}
	return step, ok
}

// take answers verb as scripted, or friendly.
func (c *smtpConn) take(verb, friendly string) bool {
	c.counts[verb]++
	step, _ := c.step(verb)
	if step.Say == "" && step.Then == GoOn {
		step.Say = friendly
	}
	return c.act(verb, step)
}

// said is the code that verb was just answered with.
func (c *smtpConn) said(verb string) string {
	step, ok := c.step(verb)
	if !ok || step.Say == "" {
		return map[string]string{"DATA": "354", "STARTTLS": "220"}[verb]
	}
	return step.Say[:min(3, len(step.Say))]
}

func (c *smtpConn) act(verb string, step Step) bool {
	if step.Say != "" { // a pipe waits for a reader even of nothing
		if _, err := io.WriteString(c.conn, step.Say); err != nil {
			return false
		}
	}
	switch step.Then {
	case Hang, Deaf:
		select {
		case c.server.Stalled <- verb:
		default:
		}
		if step.Then == Deaf {
			<-c.server.release
		}
		_, _ = io.Copy(io.Discard, c.in) // until the client closes
		return false
	case Cut:
		return false
	case Reset:
		if tcp, ok := c.tcp.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
			_ = tcp.Close()
		}
		return false
	}
	return true
}

// upgrade puts TLS over the connection.
func (c *smtpConn) upgrade() bool {
	conn := tls.Server(c.tcp, c.server.TLS)
	if conn.Handshake() != nil {
		return false
	}
	c.secured = true
	c.use(conn)
	return true
}
