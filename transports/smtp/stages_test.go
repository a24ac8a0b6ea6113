package smtp

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/transports"
	"countersign/transports/transporttest"
)

type step = transporttest.Step

// A departure is what a server does instead of being friendly, and what has to
// come of it.
type departure struct {
	name  string
	verb  string
	step  step
	stage string
	code  string
	// permanent is of a PrepareError.
	permanent bool
	want      transports.Outcome // of a Send
}

// FAULTS 5: before DATA nothing is used up, and is told by stage and code.
func TestDeparturesBeforeData(t *testing.T) {
	for _, d := range []departure{
		{name: "421 greeting", verb: "GREETING", step: step{Say: "421 4.3.2 busy\r\n"}, stage: stageGreeting, code: "421"},
		{name: "554 greeting", verb: "GREETING", step: step{Say: "554 no\r\n"}, stage: stageGreeting, code: "554", permanent: true},
		{name: "no greeting", verb: "GREETING", step: step{Then: transporttest.Cut}, stage: stageGreeting},
		{name: "half a greeting", verb: "GREETING", step: step{Say: "220 hel", Then: transporttest.Cut}, stage: stageGreeting},
		{name: "a web server", verb: "GREETING", step: step{Say: "HTTP/1.1 400 Bad Request\r\n\r\n"}, stage: stageGreeting},
		{name: "early talker", verb: "GREETING", step: step{Say: "220 hello\r\n250 ok\r\n"}, stage: stageGreeting},
		{name: "EHLO refused", verb: "EHLO", step: step{Say: "550 5.7.1 who\r\n"}, stage: stageEhlo, code: "550", permanent: true},
		{name: "endless EHLO", verb: "EHLO", step: step{Say: strings.Repeat("250-X\r\n", 20_000)}, stage: stageEhlo},
		{name: "long line", verb: "EHLO", step: step{Say: "250 " + strings.Repeat("x", 5000) + "\r\n"}, stage: stageEhlo},
		{name: "552 at MAIL", verb: "MAIL", step: step{Say: "552 5.3.4 too big\r\n"}, stage: stageMail, code: "552", permanent: true},
		{name: "451 at MAIL", verb: "MAIL", step: step{Say: "451 4.7.1 later\r\n"}, stage: stageMail, code: "451"},
		{name: "450 at RCPT", verb: "RCPT", step: step{Say: "450 4.2.1 greylisted\r\n"}, stage: stageRcpt, code: "450"},
		{name: "second RCPT refused", verb: "RCPT 2", step: step{Say: "550 5.1.1 unknown\r\n"}, stage: stageRcpt, code: "550", permanent: true},
		{name: "421 at RCPT", verb: "RCPT", step: step{Say: "421 4.3.2 bye\r\n", Then: transporttest.Cut}, stage: stageRcpt, code: "421"},
		{name: "cut at RCPT", verb: "RCPT", step: step{Then: transporttest.Cut}, stage: stageRcpt},
		{name: "half a yes at RCPT", verb: "RCPT 2", step: step{Say: "250 2.1.5 o", Then: transporttest.Cut}, stage: stageRcpt},
		{name: "no code at RCPT", verb: "RCPT", step: step{Say: "sure\r\n"}, stage: stageRcpt},
		{name: "421 at MAIL, and stays", verb: "MAIL", step: step{Say: "421 4.3.2 bye\r\n"}, stage: stageMail, code: "421"},
		{name: "a second yes at RCPT", verb: "RCPT 1", step: step{Say: "250 ok\r\n250 ok\r\n"}, stage: stageRcpt},
	} {
		t.Run(d.name, func(t *testing.T) { testBeforeData(t, d) })
	}
}

func testBeforeData(t *testing.T, d departure) {
	server := (&transporttest.SMTPServer{Steps: map[string]step{d.verb: d.step}}).Start(t)
	s, err := newTransport(t, config(server)).Connect(t.Context())
	if err == nil {
		err = s.Prepare(t.Context(), offer())
		checkFinished(t, s, d.code == "" || d.code == "421")
	}
	var p *transports.PrepareError
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a *PrepareError", err)
	}
	if p.Stage != d.stage || p.Code != d.code || p.Permanent != d.permanent {
		t.Errorf("stage %q code %q permanent %v, want %q %q %v: %v",
			p.Stage, p.Code, p.Permanent, d.stage, d.code, d.permanent, err)
	}
	server.Wait()
	if verbs := server.Conns()[0].Verbs; slices.Contains(verbs, "DATA") {
		t.Errorf("DATA after a refusal: %v", verbs)
	}
}

// checkFinished tells if the connection may be used again, and closes it.
func checkFinished(t *testing.T, s transports.Session, want bool) {
	t.Helper()
	if got := s.Reset(t.Context()) != nil; got != want {
		t.Errorf("finished: %v, want %v", got, want)
	}
	_ = s.Close()
}

// Nobody listens: known before the claim.
func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	tr := newTransport(t, Config{Address: l.Addr().String(), From: "desk@example.com"})
	_, err = tr.Connect(t.Context())
	var p *transports.PrepareError
	if !errors.As(err, &p) || p.Stage != stageConnect || p.Permanent {
		t.Errorf("got %v", err)
	}
}

// FAULTS 1 and 5: from DATA on.
func TestDeparturesFromDataOn(t *testing.T) {
	const refused, ambiguous = transports.Refused, transports.Ambiguous
	for _, d := range []departure{
		{name: "DATA refused", verb: "DATA", step: step{Say: "554 5.5.1 no valid recipients\r\n"}, stage: stageData, code: "554", want: refused},
		{name: "DATA answered 250", verb: "DATA", step: step{Say: "250 ok\r\n"}, stage: stageData, code: "250", want: refused},
		{name: "cut at DATA", verb: "DATA", step: step{Then: transporttest.Cut}, stage: stageData, want: refused},
		{name: "half a 354", verb: "DATA", step: step{Say: "354 go", Then: transporttest.Cut}, stage: stageData, want: refused},
		{name: "yes before the content", verb: "DATA", step: step{Say: "354 go\r\n250 ok\r\n"}, stage: stageContent, want: refused},
		{name: "450 after the dot", verb: "DOT", step: step{Say: "450 4.2.0 mailbox busy\r\n"}, stage: stageFinalDot, code: "450", want: refused},
		{name: "421 after the dot", verb: "DOT", step: step{Say: "421 4.3.2 bye\r\n", Then: transporttest.Cut}, stage: stageFinalDot, code: "421", want: refused},
		{name: "554 after the dot", verb: "DOT", step: step{Say: "554-5.7.1 spam\r\n554 5.7.1 go away\r\n"}, stage: stageFinalDot, code: "554", want: refused},
		{name: "cut after the dot", verb: "DOT", step: step{Then: transporttest.Cut}, stage: stageFinalDot, want: ambiguous},
		{name: "reset after the dot", verb: "DOT", step: step{Then: transporttest.Reset}, stage: stageFinalDot, want: ambiguous},
		{name: "half a yes", verb: "DOT", step: step{Say: "250 2.0.0 queued", Then: transporttest.Cut}, stage: stageFinalDot, want: ambiguous},
		{name: "a yes without its line end", verb: "DOT", step: step{Say: "250 2.0.0 queued as X\r", Then: transporttest.Cut}, stage: stageFinalDot, want: ambiguous},
		{name: "half a no", verb: "DOT", step: step{Say: "550 5.7.1 sp", Then: transporttest.Cut}, stage: stageFinalDot, want: ambiguous},
		{name: "the first of two lines", verb: "DOT", step: step{Say: "250-2.0.0 queued\r\n", Then: transporttest.Cut}, stage: stageFinalDot, want: ambiguous},
		{name: "two codes in one reply", verb: "DOT", step: step{Say: "250-queued\r\n550 no\r\n", Then: transporttest.Cut}, stage: stageFinalDot, want: ambiguous},
		{name: "no code", verb: "DOT", step: step{Say: "thank you\r\n"}, stage: stageFinalDot, want: ambiguous},
		{name: "an empty line", verb: "DOT", step: step{Say: "\r\n"}, stage: stageFinalDot, want: ambiguous},
		{name: "a code of no meaning", verb: "DOT", step: step{Say: "354 go on\r\n"}, stage: stageFinalDot, code: "354", want: ambiguous},
		{name: "another yes", verb: "DOT", step: step{Say: "252 perhaps\r\n"}, stage: stageFinalDot, code: "252", want: ambiguous},
		{name: "bits", verb: "DOT", step: step{Say: "\xff\xfe\x00\r\n"}, stage: stageFinalDot, want: ambiguous},
	} {
		t.Run(d.name, func(t *testing.T) { testFromDataOn(t, d) })
	}
}

func testFromDataOn(t *testing.T, d departure) {
	server := (&transporttest.SMTPServer{Steps: map[string]step{d.verb: d.step}}).Start(t)
	session := connect(t, newTransport(t, config(server)))
	prepare(t, session, offer())
	_, err := session.Send(t.Context(), claimed(offer()))
	if got := transports.Classify(err); got != d.want {
		t.Errorf("outcome %q, want %q: %v", got, d.want, err)
	}
	if stage, code := stageAndCode(err); stage != d.stage || code != d.code {
		t.Errorf("stage %q code %q, want %q %q: %v", stage, code, d.stage, d.code, err)
	}
	checkFinished(t, session, d.want == transports.Ambiguous || d.code == "" || d.code == "421")
	server.Wait()
	conn := server.Conns()[0]
	if n := strings.Count(conn.Raw, "DATA\r\n"); n != 1 {
		t.Errorf("DATA was said %d times", n)
	}
	if d.want == transports.Ambiguous && !strings.HasSuffix(conn.Raw, "\r\n.\r\n") {
		t.Errorf("something was said after an ambiguous end:\n%s", conn.Raw)
	}
}

func connect(t *testing.T, tr *Transport) *session {
	t.Helper()
	s, err := tr.Connect(t.Context())
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s.(*session)
}

func prepare(t *testing.T, s transports.Session, m transports.Message) {
	t.Helper()
	if err := s.Prepare(t.Context(), m); err != nil {
		t.Fatalf("Prepare: %v", err)
	}
}

// A refusal leaves the session usable: RSET, EHLO, and the next message.
func TestSessionServesAfterRefusals(t *testing.T) {
	server := (&transporttest.SMTPServer{Steps: map[string]step{
		"RCPT 2": {Say: "550 5.1.1 unknown\r\n"},
		"DATA 1": {Say: "451 4.3.0 later\r\n"},
		"DOT 1":  {Say: "552 5.3.4 no\r\n"},
	}}).Start(t)
	s := connect(t, newTransport(t, config(server)))
	if err := s.Prepare(t.Context(), offer()); err == nil {
		t.Fatal("the second recipient was refused, and Prepare succeeded")
	}
	for _, want := range []transports.Outcome{transports.Refused, transports.Refused, transports.Confirmed, transports.Confirmed} {
		prepare(t, s, offer())
		_, err := s.Send(t.Context(), claimed(offer()))
		if got := transports.Classify(err); got != want {
			t.Errorf("outcome %q, want %q: %v", got, want, err)
		}
	}
	_ = s.Close()
	server.Wait()
	want := "EHLO MAIL RCPT RCPT RSET EHLO " +
		"MAIL RCPT RCPT DATA RSET EHLO MAIL RCPT RCPT DATA RSET EHLO " +
		"MAIL RCPT RCPT DATA MAIL RCPT RCPT DATA QUIT"
	if got := strings.Join(server.Conns()[0].Verbs, " "); got != want {
		t.Errorf("the server was told\n%s\nwant\n%s", got, want)
	}
}

// After the 250 nothing changes the outcome: not QUIT, not RSET, not a reset.
func TestAfterTheYesNothingChanges(t *testing.T) {
	for name, steps := range map[string]map[string]step{
		"cut":          {"DOT": {Say: "250 2.0.0 queued as X\r\n", Then: transporttest.Cut}},
		"reset":        {"DOT": {Say: "250 2.0.0 queued as X\r\n", Then: transporttest.Reset}},
		"QUIT refused": {"QUIT": {Say: "500 what\r\n"}},
		"QUIT ignored": {"QUIT": {Then: transporttest.Hang}},
		"bare code":    {"DOT": {Say: "250\r\n"}}, // RFC 5321 section 4.2
		"two lines":    {"DOT": {Say: "250-2.0.0 queued\r\n250 2.0.0 as X\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := (&transporttest.SMTPServer{Steps: steps}).Start(t)
			tr := newTransport(t, config(server))
			tr.quit = 10 * time.Millisecond
			s := connect(t, tr)
			prepare(t, s, offer())
			r, err := s.Send(t.Context(), claimed(offer()))
			if transports.Judge(r, err) != transports.Confirmed {
				t.Errorf("%+v, %v", r, err)
			}
			_ = s.Close()
			server.Wait()
			if n := server.Contents(); n != 1 {
				t.Errorf("%d contents", n)
			}
		})
	}
}

func TestCoordinate(t *testing.T) {
	server := (&transporttest.SMTPServer{Steps: map[string]step{
		"DOT 1": {Say: "250 2.0.0 Ok: queued as 4XyZ\r\n"},
		"DOT 2": {Say: "250 " + strings.Repeat("x", 1900) + "\r\n"},
	}}).Start(t)
	s := connect(t, newTransport(t, config(server)))
	prepare(t, s, offer())
	r, err := s.Send(t.Context(), claimed(offer()))
	if want := "<countersign.41.7.c0ffee@example.com> 250 2.0.0 Ok: queued as 4XyZ"; err != nil || r.Coordinate != want {
		t.Errorf("coordinate %q, want %q: %v", r.Coordinate, want, err)
	}
	if r.Altered || !strings.Contains(r.Detail, server.Addr()) {
		t.Errorf("receipt %+v", r)
	}
	prepare(t, s, offer())
	r, err = s.Send(t.Context(), claimed(offer()))
	if err != nil || len(r.Coordinate) > transports.MaxWords || !strings.HasPrefix(r.Coordinate, "<countersign.41.7.c0ffee@example.com> 250 xxx") {
		t.Errorf("coordinate of %d octets: %v", len(r.Coordinate), err)
	}
}

// RFC 1870: what the server said it takes is kept to, and it is told the size.
func TestSize(t *testing.T) {
	m := offer()
	server := (&transporttest.SMTPServer{Extensions: []string{"SIZE 1000", "8BITMIME"}}).Start(t)
	s := connect(t, newTransport(t, config(server)))
	prepare(t, s, m)
	if _, err := s.Send(t.Context(), claimed(m)); err != nil {
		t.Fatal(err)
	}
	m.Text = strings.Repeat("x", 1000)
	err := s.Prepare(t.Context(), m)
	var p *transports.PrepareError
	if !errors.As(err, &p) || p.Stage != stageMail || !p.Permanent {
		t.Errorf("too big a message: %v", err)
	}
	_ = s.Close()
	server.Wait()
	conn := server.Conns()[0]
	var said int
	if _, after, ok := strings.Cut(conn.Raw, "MAIL FROM:<desk@example.com> BODY=8BITMIME SIZE="); ok {
		for _, digit := range after[:strings.IndexByte(after, '\r')] {
			said = said*10 + int(digit-'0')
		}
	}
	if has := len(conn.Mails[0].Content); said < has || said > has+maxClaimOctets {
		t.Errorf("SIZE=%d for a message of %d octets:\n%s", said, has, conn.Raw)
	}
	if strings.Count(conn.Raw, "MAIL") != 1 {
		t.Errorf("MAIL for a message that is too big:\n%s", conn.Raw)
	}
}

// maxClaimOctets is by how much a Message-ID may grow with its claim.
const maxClaimOctets = 19 + transports.MaxKey

// A stalled server: whichever way the deadline falls, the outcome agrees with
// what the server saw.
func TestDeadlineAgreesWithTheServer(t *testing.T) {
	for _, verb := range []string{"DATA", "DOT"} {
		server := (&transporttest.SMTPServer{Steps: map[string]step{verb: {Then: transporttest.Hang}}}).Start(t)
		s := connect(t, newTransport(t, config(server)))
		prepare(t, s, offer())
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := s.Send(ctx, claimed(offer()))
		cancel()
		_ = s.Close()
		server.Wait()
		sawDot := len(server.Mails()) == 1
		switch outcome := transports.Classify(err); {
		case sawDot && outcome != transports.Ambiguous:
			t.Errorf("%s: the server has it, and the outcome is %q: %v", verb, outcome, err)
		case verb == "DATA" && (sawDot || outcome != transports.Refused):
			t.Errorf("%s: outcome %q: %v", verb, outcome, err)
		}
	}
}

// A command the server doesn't answer ends at Timeout, also without a deadline.
func TestTimeoutOfACommand(t *testing.T) {
	server := (&transporttest.SMTPServer{Steps: map[string]step{"RCPT": {Then: transporttest.Hang}}}).Start(t)
	tr := newTransport(t, config(server))
	s := connect(t, tr)
	tr.config.Timeout = 5 * time.Millisecond
	err := s.Prepare(t.Context(), offer())
	stage, _ := stageAndCode(err)
	if stage != stageRcpt && stage != stageMail {
		t.Errorf("got %v", err)
	}
	if err := s.Prepare(t.Context(), offer()); err == nil {
		t.Error("the connection was used again")
	}
}
