package smtp

import (
	"strings"
	"testing"

	"countersign/transports"
	"countersign/transports/transporttest"
)

// badChannels are what net/mail, or a mail program, would take and change.
var badChannels = []string{
	" ", ",", "kim", "kim@", "@example.org", "kim@example.org,", "kim@@example.org",
	"Kim <kim@example.org>", "<kim@example.org>", "kim@example.org (Kim)", "kim(x)@example.org",
	`"kim"@example.org`, `"kim lee"@example.org`, `"a,b"@example.org`, "friends: kim@example.org;",
	"kim lee@example.org", "kim@example.org lee@example.net", "kim@[127.0.0.1]", "kim..lee@example.org", ".kim@example.org",
	"kim@exa mple.org", "kim@-example.org", "kim@example_x.org", "kim@.org", "kim@example.org.",
	"kim@ｅxample.org", "kim@exa\u00admple.org", "kim@exa\u200bmple.org", "ki\u200bm@example.org", "ki\u00a0m@example.org",
	"kim@example.org>,<x@example.org", "kim@example.org\r\nRCPT TO:<x@example.org>", "=?utf-8?q?a=0D=0A?=@example.org\n",
	"kim@example.org, kim@EXAMPLE.org",
	strings.Repeat("a", 65) + "@example.org",
	"a@" + strings.Repeat(strings.Repeat("b", 60)+".", 4) + "example.org",
	strings.TrimSuffix(strings.Repeat("a@example.org,", 101), ","),
}

func TestRecipients(t *testing.T) {
	for channel, want := range map[string]string{
		"kim@example.org":                   "kim@example.org",
		"kim@example.org, lee@example.net":  "kim@example.org lee@example.net",
		"o'brien+x_{y}=z@example.org":       "o'brien+x_{y}=z@example.org",
		"kim@EXAMPLE.org":                   "kim@example.org",
		"Kim.Lee@localhost":                 "Kim.Lee@localhost",
		"kim@Bücher.example":                "kim@xn--bcher-kva.example",
		"kim@xn--bcher-kva.example":         "kim@xn--bcher-kva.example",
		"kim@straße.example":                "kim@xn--strae-oqa.example",
		"user@例え.テスト":                       "user@xn--r8jz45g.xn--zckzah",
		"zoë@example.org":                   "zoë@example.org",
		strings.Repeat("a", 64) + "@b.test": strings.Repeat("a", 64) + "@b.test",
	} {
		list, err := parseRecipients(channel)
		if err != nil {
			t.Errorf("%q: %v", channel, err)
			continue
		}
		var got []string
		for _, a := range list {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q gave %q, want %q", channel, got, want)
		}
	}
}

func TestNonASCIILocalPartNeedsSMTPUTF8(t *testing.T) {
	m := offer()
	m.Channel = "zoë@bücher.example"
	for _, offered := range []bool{false, true} {
		server := &transporttest.SMTPServer{Extensions: []string{"8BITMIME"}}
		if offered {
			server.Extensions = append(server.Extensions, "SMTPUTF8")
		}
		server.Start(t)
		tr := newTransport(t, config(server))
		if err := tr.Validate(m); err != nil {
			t.Errorf("Validate: %v", err)
		}
		_, err := sendOne(t.Context(), tr, claimed(m))
		server.Wait()
		conn := server.Conns()[0]
		if !offered {
			if stage, _ := stageAndCode(err); stage != stageRcpt || strings.Contains(conn.Raw, "MAIL") {
				t.Errorf("without SMTPUTF8: %v\n%s", err, conn.Raw)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(conn.Raw, " SMTPUTF8\r\nRCPT TO:<zoë@xn--bcher-kva.example>\r\n") {
			t.Errorf("envelope:\n%s", conn.Raw)
		}
		if h, _ := conn.Mails[0].Read(t); h.Get("To") != "<zoë@xn--bcher-kva.example>" {
			t.Errorf("To: %s", h.Get("To"))
		}
	}
}

func TestLimitsAreTold(t *testing.T) {
	tr := newTransport(t, Config{Address: "localhost:25", From: "desk@example.com"})
	m := offer()
	m.Channel = strings.TrimSuffix(strings.Repeat("a@example.org,", 101), ",")
	want := "channel has too many recipients: 101 recipients, the limit is 100"
	if err := tr.Validate(m); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	var _ transports.Transport = tr
}
