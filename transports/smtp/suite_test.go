package smtp

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"countersign/transports"
	"countersign/transports/transporttest"
)

const (
	username = "desk@example.com"
	password = "p4ss/wörd +%&\"ok"
)

func offer() transports.Message {
	return transports.Message{
		ObligationID: 41, Platform: "smtp", Channel: "kim@example.org,lee@example.net", Thread: "<thread.1@example.org>",
		Subject: "Your offer", Text: "Hello,\n\nthe price is 900.",
	}
}

func claimed(m transports.Message) transports.Message {
	m.DecisionID, m.Key = 7, "c0ffee"
	return m
}

func clock() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600)) }

// config is for a server in plain text; change adds to it.
func config(server *transporttest.SMTPServer, change ...func(*Config)) Config {
	c := Config{Address: server.Addr(), TLS: TLSNone, From: "Desk <desk@example.com>", Now: clock}
	for _, f := range change {
		f(&c)
	}
	return c
}

func newTransport(t *testing.T, c Config) *Transport {
	t.Helper()
	tr, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestTransport(t *testing.T) {
	with := func(change func(*transports.Message)) transports.Message {
		m := offer()
		change(&m)
		return m
	}
	var unsendable []transporttest.Unsendable
	for _, channel := range badChannels {
		unsendable = append(unsendable, transporttest.Unsendable{
			Field: "channel", Message: with(func(m *transports.Message) { m.Channel = channel }),
		})
	}
	for _, thread := range []string{"abc@example.com", "<abc>", "<@x>", "<a@>", "<a@x> <b@x>", "<a b@x>", "<é@x>", "<" + strings.Repeat("a", 990) + "@x>"} {
		unsendable = append(unsendable, transporttest.Unsendable{
			Field: "thread", Message: with(func(m *transports.Message) { m.Thread = thread }),
		})
	}
	transporttest.Run(t, transporttest.Harness{
		Message:    offer(),
		Start:      start,
		Unsendable: unsendable,
		Secrets:    []string{password},
	})
}

// rude is a no that repeats what it was told in confidence.
func rude(code string) step {
	plain := base64.StdEncoding.EncodeToString([]byte("\x00" + username + "\x00" + password))
	return step{Say: code + "-" + password + "\r\n" + code + " " + plain + " \xff\r\n"}
}

// scripted are the departures of the suite's scripts.
var scripted = map[transporttest.Script]map[string]step{
	transporttest.RefuseConnect: {"AUTH": rude("535")},
	transporttest.RefusePrepare: {"RCPT 2": rude("550")},
	transporttest.RefuseSend:    {"DOT": rude("554")},
	transporttest.FailBefore:    {"DATA": {Then: transporttest.Cut}},
	transporttest.FailAfter:     {"DOT": {Then: transporttest.Reset}},
	transporttest.Stall:         {"DOT": {Then: transporttest.Hang}},
	transporttest.CutAnswer:     {"DOT": {Say: "250 2.0.0 que", Then: transporttest.Cut}},
	transporttest.Garbage:       {"DOT": {Say: "yes, " + password + "\r\n"}},
	transporttest.Accept:        {"DOT": rude("250")}, // a yes can be rude too
}

func start(t *testing.T, script transporttest.Script) transporttest.Fixture {
	tlsConfig, roots, _ := transporttest.ServerTLS(t, "127.0.0.1")
	server := &transporttest.SMTPServer{
		Extensions: []string{"STARTTLS", "AUTH PLAIN LOGIN", "8BITMIME", "SIZE 1000000"},
		TLS:        tlsConfig,
		Steps:      scripted[script],
	}
	server.Start(t)
	stalled := make(chan struct{}, 1)
	if script == transporttest.Stall {
		go func() {
			select {
			case <-server.Stalled:
				stalled <- struct{}{}
			case <-t.Context().Done():
			}
		}()
	}
	return transporttest.Fixture{
		Transport: newTransport(t, config(server, secure(roots))),
		Settle:    server.Wait,
		Attempts:  server.Contents,
		Stalled:   stalled,
		Delivered: func() []transporttest.Delivered {
			var all []transporttest.Delivered
			for _, m := range server.Mails() {
				_, d := m.Read(t)
				all = append(all, d)
			}
			return all
		},
	}
}

// sendOne is Connect, Prepare, Send and Close of one message.
func sendOne(ctx context.Context, tr *Transport, m transports.Message) (transports.Receipt, error) {
	session, err := tr.Connect(ctx)
	if err != nil {
		return transports.Receipt{}, err
	}
	defer session.Close()
	unclaimed := m
	unclaimed.DecisionID, unclaimed.Key = 0, ""
	if err := session.Prepare(ctx, unclaimed); err != nil {
		return transports.Receipt{}, err
	}
	return session.Send(ctx, m)
}

// stageAndCode of any of the three errors.
func stageAndCode(err error) (stage, code string) {
	var (
		p *transports.PrepareError
		r *transports.RefusedError
		a *transports.AmbiguousError
	)
	switch {
	case errors.As(err, &p):
		return p.Stage, p.Code
	case errors.As(err, &r):
		return r.Stage, r.Code
	case errors.As(err, &a):
		return a.Stage, a.Code
	}
	return "", ""
}
