package telegram

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"countersign/transports"
	"countersign/transports/transporttest"
)

func TestTransport(t *testing.T) {
	var unsendable []transporttest.Unsendable
	for field, values := range unsendableValues() {
		for _, v := range values {
			m := offer()
			switch field {
			case "channel":
				m.Channel = v
			case "thread":
				m.Thread = v
			case "subject":
				m.Subject = v
			case "text":
				m.Text = v
			}
			unsendable = append(unsendable, transporttest.Unsendable{Field: field, Message: m})
		}
	}
	transporttest.Run(t, transporttest.Harness{
		Message:    offer(),
		Start:      start,
		Unsendable: unsendable,
		Secrets:    []string{token, key},
	})
}

// rude are words that repeat what is secret, in a form that survives JSON.
var rude = "bot" + token + " bot4242%3A" + key + " bot4242%253a" + key

func start(t *testing.T, script transporttest.Script) transporttest.Fixture {
	d := &dialler{}
	answers := map[string]answer{}
	switch script {
	case transporttest.RefuseConnect:
		answers[getMe] = no(401, rude)
	case transporttest.RefusePrepare:
		answers[getChat] = no(400, rude)
	case transporttest.RefuseSend:
		answers[sendMessage] = no(403, rude)
	case transporttest.FailBefore:
		answers[getChat] = lastAnswer
		d.fail = func(n int) error {
			if n > 1 {
				return syscall.ECONNREFUSED
			}
			return nil
		}
	case transporttest.FailAfter:
		answers[sendMessage] = answer{then: reset}
	case transporttest.Stall:
		answers[sendMessage] = answer{then: hang}
	case transporttest.CutAnswer:
		answers[sendMessage] = answer{body: `{"ok":true,"result":{"message_id":1,`, short: 20, then: cut}
	case transporttest.Garbage:
		answers[sendMessage] = answer{body: "<html>" + rude}
	}
	s := serve(t, answers)
	return transporttest.Fixture{
		Transport: open(t, s, func(c *Config) { c.Dial = d.dial }),
		Settle:    s.settle,
		Attempts:  func() int { return len(s.seen(sendMessage)) },
		Stalled:   s.stalled,
		Delivered: func() []transporttest.Delivered { return s.delivered(t, script) },
	}
}

// delivered are the messages that a chat shows.
func (s *server) delivered(t *testing.T, script transporttest.Script) (all []transporttest.Delivered) {
	if script == transporttest.RefuseSend {
		return nil
	}
	for _, q := range s.seen(sendMessage) {
		var reply struct {
			MessageID json.Number `json:"message_id"`
		}
		thread := q.values.Get("message_thread_id")
		if p := q.values.Get("reply_parameters"); p != "" {
			if err := json.Unmarshal([]byte(p), &reply); err != nil {
				t.Errorf("reply_parameters %q: %v", p, err)
			}
			thread = strings.Trim(thread+"/reply:"+reply.MessageID.String(), "/")
		}
		all = append(all, transporttest.Delivered{Channel: q.values.Get("chat_id"), Thread: thread, Text: q.values.Get("text")})
	}
	return all
}

// unsendableValues are what Validate refuses, by field.
func unsendableValues() map[string][]string {
	return map[string][]string{
		"channel": {
			"0", "-0", "+5", " 5", "007", "1e3", "9223372036854775808", "-9223372036854775809", "12.0", "٣", "1_000", "0x10",
			"acme", "@", "@ab", "@Acme_Support", "@9acme", "@acme-support", "@acme support", "@" + strings.Repeat("a", 33), "@äcme",
			"https://t.me/acme", "5,6", "@acme,@other",
		},
		"thread": {
			"0", "-1", "007", "2147483648", "99999999999999999999", "reply:", "reply:0", "reply:-7", "reply:2147483648", "42/", "/reply:7", "42/7",
			"42/reply:", "reply:7/42", "42reply:7", "Reply:7", "reply: 7", "42 ", "<a@example.com>", "0/reply:7", "42/reply:0",
		},
		"subject": {"Offer", " "},
		"text": {
			" ", "   ", "\n", "\u00a0", "\u200b", "\u2800\u3164", "\u200e \u200f", " a", "a ", "a\n", "\ta", "a\u00a0", "\u3000a",
			"a\rb", "a\x1b[2Kb", "a\x07b", "a\u2028b", "https://example.com/\u202egpj.exe", "a\u030a", "a\u0333b",
			strings.Repeat("a", MaxText+1), strings.Repeat("🙂", MaxText/2+1), strings.Repeat("é", MaxText+1),
		},
	}
}

func TestValidateTakes(t *testing.T) {
	tr := open(t, serve(t, nil))
	for _, change := range []func(*transports.Message){
		func(m *transports.Message) { m.Channel = "5" },
		func(m *transports.Message) { m.Channel = "9223372036854775807" },
		func(m *transports.Message) { m.Channel = "-9223372036854775808" },
		func(m *transports.Message) { m.Channel = "@acme_support" },
		func(m *transports.Message) { m.Channel = "@" + strings.Repeat("a", 32) },
		func(m *transports.Message) { m.Thread = "" },
		func(m *transports.Message) { m.Thread = "42" },
		func(m *transports.Message) { m.Thread = "reply:2147483647" },
		func(m *transports.Message) { m.Text = "a" },
		func(m *transports.Message) { m.Text = "a\t\n \n\u00a0\u200bb" },
		func(m *transports.Message) { m.Text = "é e\u0301 שלום, مرحبا 👩‍👩‍👧 å" },
		func(m *transports.Message) { m.Text = strings.Repeat("a", MaxText) },
		func(m *transports.Message) { m.Text = strings.Repeat("🙂", MaxText/2) },
	} {
		if m := with(change); tr.Validate(m) != nil {
			t.Errorf("%.40q %q %.40q: %v", m.Channel, m.Thread, m.Text, tr.Validate(m))
		}
	}
}
