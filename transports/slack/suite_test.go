package slack

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"countersign/transports"
	"countersign/transports/transporttest"
)

func TestTransport(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Message:    message(),
		Start:      start,
		Secrets:    []string{token},
		Unsendable: unsendable(),
	})
}

func unsendable() (all []transporttest.Unsendable) {
	add := func(field string, change func(*transports.Message)) {
		m := message()
		change(&m)
		all = append(all, transporttest.Unsendable{Field: field, Message: m})
	}
	for _, c := range []string{"#general", "general", "U0PERSON", "W0PERSON", "C", "c0counter1", "C0COUNTER1 ", " C0COUNTER1", "C0COUNTER1,C0OTHER", "C0É", "https://x.slack.com/archives/C0COUNTER1"} {
		add("channel", func(m *transports.Message) { m.Channel = c })
	}
	for _, ts := range []string{"1750000000", "1750000000.1", "1750000000.0001000", "p1750000000000100", " 1750000000.000100", "1750000000,000100"} {
		add("thread", func(m *transports.Message) { m.Thread = ts })
	}
	add("subject", func(m *transports.Message) { m.Subject = "about it" })
	for _, text := range []string{" \n\t ", "\u00a0", "a\rb", "\x1b[8m", "\u0085", strings.Repeat("x", MaxText+1)} {
		add("text", func(m *transports.Message) { m.Text = text })
	}
	return all
}

// start has a Slack that repeats the token wherever it can.
func start(t *testing.T, script transporttest.Script) transporttest.Fixture {
	f := newFakeSlack(t)
	var change []func(*Config)
	refusal := func(code string) answer {
		return says(200, `{"ok":false,"error":"`+code+`","needed":"`+token+`","response_metadata":{"messages":["`+token+`"]}}`)
	}
	switch script {
	case transporttest.Accept:
		f.on("chat.postMessage", postsWith(slackEcho, `,"warning":"`+token+`"`))
	case transporttest.RefuseConnect:
		f.on("auth.test", refusal("invalid_auth"))
	case transporttest.RefusePrepare:
		f.on("conversations.info", refusal("channel_not_found"))
	case transporttest.RefuseSend:
		f.effect = false
		f.on("chat.postMessage", refusal("msg_too_long"))
	case transporttest.FailBefore:
		f.effect = false
		change = append(change, dialer(func(c net.Conn) net.Conn { return brokenConn{Conn: c, err: syscall.EPIPE} }))
	case transporttest.FailAfter:
		f.on("chat.postMessage", reset)
	case transporttest.Stall:
		f.on("chat.postMessage", f.stall)
	case transporttest.CutAnswer:
		f.on("chat.postMessage", func(conn net.Conn, r request) {
			whole := wholeReply(200, yes(r, token))
			_, _ = conn.Write(whole[:len(whole)-1])
		})
	case transporttest.Garbage:
		f.on("chat.postMessage", octets("HTP/1.1 "+token+"\r\n\r\n"))
	}
	return transporttest.Fixture{
		Transport: f.transport(change...),
		Settle:    f.settle,
		Delivered: f.delivered,
		Attempts:  f.attempts,
		Stalled:   f.stalled,
	}
}
