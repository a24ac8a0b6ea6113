package smtp

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// awaitArrival returns once something waits on the socket.
func awaitArrival(t *testing.T, c net.Conn) {
	t.Helper()
	for !arrived(c) {
		if t.Context().Err() != nil {
			t.Fatal("nothing arrived")
		}
		runtime.Gosched()
	}
}

// interrupted is a session on which the server speaks out of turn.
func interrupted(t *testing.T, server *transporttest.SMTPServer, s *session, words string) {
	t.Helper()
	server.Interject(t, words)
	awaitArrival(t, s.wire.raw)
}

// bothKinds runs test with a server in plain text, and with one under TLS.
func bothKinds(t *testing.T, steps map[string]step, test func(t *testing.T, server *transporttest.SMTPServer, change func(*Config))) {
	t.Run("plain", func(t *testing.T) {
		test(t, (&transporttest.SMTPServer{Steps: steps}).Start(t), func(*Config) {})
	})
	t.Run("TLS", func(t *testing.T) {
		good, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
		server := &transporttest.SMTPServer{Extensions: []string{"STARTTLS", "AUTH PLAIN"}, TLS: good, Steps: steps}
		test(t, server.Start(t), secure(roots))
	})
}

// A second reply to the last RCPT was only met at DATA, when the approval was used up.
func TestStrayReplyAfterTheLastRcpt(t *testing.T) {
	steps := map[string]step{"RCPT 2": {Say: "250 2.1.5 ok\r\n354 go on\r\n"}}
	bothKinds(t, steps, func(t *testing.T, server *transporttest.SMTPServer, change func(*Config)) {
		s := connect(t, newTransport(t, config(server, change)))
		checkDiscarded(t, server, s, s.Prepare(t.Context(), offer()), stageRcpt)
	})
}

// What a server said on a connection that waited for its next message was taken for the reply to MAIL, and each reply
// after it for that to the next command.
func TestStrayReplyBetweenMessages(t *testing.T) {
	for name, words := range map[string]string{"a yes": "250 2.0.0 ok\r\n", "half a line": "2", "farewell": "421 4.4.2 idle\r\n"} {
		t.Run(name, func(t *testing.T) {
			bothKinds(t, nil, func(t *testing.T, server *transporttest.SMTPServer, change func(*Config)) {
				s := connect(t, newTransport(t, config(server, change)))
				prepare(t, s, offer())
				if _, err := s.Send(t.Context(), claimed(offer())); err != nil {
					t.Fatal(err)
				}
				interrupted(t, server, s, words)
				checkDiscarded(t, server, s, s.Prepare(t.Context(), offer()), stageSession)
			})
		})
	}
}

// A connection that the server closed while it was idle is found out before anything is said on it.
func TestClosedBetweenMessages(t *testing.T) {
	server := (&transporttest.SMTPServer{Steps: map[string]step{"DOT": {Say: "250 2.0.0 ok\r\n", Then: transporttest.Cut}}}).Start(t)
	s := connect(t, newTransport(t, config(server)))
	prepare(t, s, offer())
	if _, err := s.Send(t.Context(), claimed(offer())); err != nil {
		t.Fatal(err)
	}
	awaitArrival(t, s.wire.raw)
	err := s.Prepare(t.Context(), offer())
	if stage, _ := stageAndCode(err); stage != stageSession || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	checkFinished(t, s, true)
}

// checkDiscarded: nothing was prepared, the connection is gone, and no more was said on it.
func checkDiscarded(t *testing.T, server *transporttest.SMTPServer, s *session, err error, stage string) {
	t.Helper()
	var p *transports.PrepareError
	if !errors.As(err, &p) || p.Stage != stage || p.Permanent || !errors.Is(err, errOutOfTurn) {
		t.Errorf("got %v, want a *PrepareError at %s", err, stage)
	}
	checkFinished(t, s, true)
	server.Wait()
	verbs := server.Conns()[0].Verbs
	if last := verbs[len(verbs)-1]; last != "RCPT" && last != "DATA" || server.Contents() > 1 {
		t.Errorf("the server was told %v", verbs)
	}
}

// A reply that comes between Prepare and Send uses up an approval, and nothing is handed over.
func TestStrayReplyBeforeData(t *testing.T) {
	bothKinds(t, nil, func(t *testing.T, server *transporttest.SMTPServer, change func(*Config)) {
		s := connect(t, newTransport(t, config(server, change)))
		prepare(t, s, offer())
		interrupted(t, server, s, "354 go on\r\n")
		_, err := s.Send(t.Context(), claimed(offer()))
		if stage, _ := stageAndCode(err); transports.Classify(err) != transports.Refused || stage != stageData || !errors.Is(err, errOutOfTurn) {
			t.Errorf("got %v", err)
		}
		checkFinished(t, s, true)
		server.Wait()
		if verbs := server.Conns()[0].Verbs; slices.Contains(verbs, "DATA") {
			t.Errorf("the server was told %v", verbs)
		}
	})
}

// A stray 250 that waited in the operating system when the final dot went out was taken for a delivery.
func TestStrayReplyBeforeTheFinalDot(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			w, server := socketWire(t, secured)
			w.beginContent(len("text\r\n"))
			if _, err := io.WriteString(w, "text\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(server, "250 ok\r\n"); err != nil {
				t.Fatal(err)
			}
			awaitArrival(t, w.raw)
			if _, err := io.WriteString(w, ".\r\n"); !errors.Is(err, errOutOfTurn) || w.dot {
				t.Errorf("got %v, the dot went out: %v", err, w.dot)
			}
			w.abort()
			if got, _ := io.ReadAll(server); string(got) != "text\r\n" {
				t.Errorf("%q went out", got)
			}
		})
	}
}

// Two replies in one go: TLS keeps the second for itself, where neither the wire nor the operating system shows it.
func TestStrayReplyWithinTLS(t *testing.T) {
	w, server := socketWire(t, true)
	for _, words := range []string{"250 ok\r\n", "354 go on\r\n"} {
		if _, err := io.WriteString(server, words); err != nil {
			t.Fatal(err)
		}
	}
	awaitArrival(t, w.raw)
	if line, err := bufio.NewReader(w).ReadString('\n'); err != nil || line != "250 ok\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := w.quiet(); !errors.Is(err, errOutOfTurn) {
		t.Errorf("got %v", err)
	}
}

// Looking changes nothing: deadlines, TLS's state and what is read are as before.
func TestQuietLeavesTheConnectionAsItIs(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			w, server := socketWire(t, secured)
			for range 3 {
				if err := w.quiet(); err != nil {
					t.Fatal(err)
				}
				go func() { _, _ = io.WriteString(server, "250 ok\r\n") }()
				got, err := io.ReadAll(io.LimitReader(w, 8))
				if err != nil || string(got) != "250 ok\r\n" {
					t.Fatalf("%q, %v", got, err)
				}
				if _, err := io.WriteString(w, "NOOP\r\n"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// socketWire is a wire over loopback, and the server's end of it.
func socketWire(t *testing.T, secured bool) (*wire, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	w := newWire(client)
	t.Cleanup(w.arm(t.Context(), time.Minute))
	if !secured {
		return w, server
	}
	config, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
	secure := tls.Server(server, config)
	shaken := make(chan error, 1)
	go func() { shaken <- secure.Handshake() }()
	err = w.handshake(t.Context(), &tls.Config{ServerName: "127.0.0.1", RootCAs: roots, MinVersion: tls.VersionTLS12})
	if err := errors.Join(err, <-shaken); err != nil {
		t.Fatal(err)
	}
	return w, secure
}

// A reply in parts arrives whole, however often the connection is looked at in between.
func TestQuietTakesNothing(t *testing.T) {
	w, server := socketWire(t, false)
	if _, err := io.WriteString(server, "250 "); err != nil {
		t.Fatal(err)
	}
	awaitArrival(t, w.raw)
	for range 2 {
		if err := w.quiet(); !errors.Is(err, errOutOfTurn) {
			t.Errorf("got %v", err)
		}
	}
	if _, err := io.WriteString(server, "ok\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(io.LimitReader(w, 8)); err != nil || strings.TrimSpace(string(got)) != "250 ok" {
		t.Errorf("%q, %v", got, err)
	}
}
