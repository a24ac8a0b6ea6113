package slack

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"countersign/transports"
)

func TestNew(t *testing.T) {
	base := Config{Token: gives(token, nil)}
	for name, c := range map[string]struct {
		change func(*Config)
		want   string // in the error; "" is none
	}{
		"defaults":         {func(*Config) {}, ""},
		"a government URL": {func(c *Config) { c.APIURL = "https://slack-gov.com/api" }, ""},
		"loopback":         {func(c *Config) { c.APIURL = "http://[::1]:8080/" }, ""},
		"localhost":        {func(c *Config) { c.APIURL = "http://localhost:8080/" }, ""},
		"the most":         {func(c *Config) { c.TextLimit = MaxText }, ""},
		"no token":         {func(c *Config) { c.Token = nil }, "token"},
		"too much text":    {func(c *Config) { c.TextLimit = MaxText + 1 }, "text_limit"},
		"negative":         {func(c *Config) { c.TextLimit = -1 }, "text_limit"},
		"no URL":           {func(c *Config) { c.APIURL = "slack.com" }, "api_url"},
		"not a URL":        {func(c *Config) { c.APIURL = "https://%zz" }, "api_url"},
		"another scheme":   {func(c *Config) { c.APIURL = "ftp://slack.com/api/" }, "api_url"},
		"no host":          {func(c *Config) { c.APIURL = "https:///api/" }, "api_url"},
		"a password":       {func(c *Config) { c.APIURL = "https://u:hunter2@slack.com/api/" }, "api_url"},
		"a query":          {func(c *Config) { c.APIURL = "https://slack.com/api/?hunter2" }, "api_url"},
		"plain elsewhere":  {func(c *Config) { c.APIURL = "http://192.0.2.1/api/" }, "loopback"},
		"a team's name":    {func(c *Config) { c.Team = "acme" }, "team"},
	} {
		config := base
		c.change(&config)
		tr, err := New(config)
		switch {
		case c.want == "" && (err != nil || !strings.HasSuffix(tr.endpoint, "/")):
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: %v, want %q in it", name, err, c.want)
		}
	}
}

func TestAddress(t *testing.T) {
	for api, want := range map[string]string{
		"": "slack.com:443", "http://127.0.0.1/": "127.0.0.1:80", "http://[::1]/api": "[::1]:80", "https://x.example:8443": "x.example:8443",
	} {
		tr, err := New(Config{Token: gives(token, nil), APIURL: api})
		if err != nil || tr.address != want {
			t.Errorf("%q: %v, %v", api, tr, err)
		}
	}
}

// FAULTS 14 and 18: refused at filing, with limit and size, never cut.
func TestTextLimits(t *testing.T) {
	validate := func(limit int, text string) *transports.ValidationError {
		t.Helper()
		tr, err := New(Config{Token: gives(token, nil), TextLimit: limit})
		if err != nil {
			t.Fatal(err)
		}
		m := message()
		m.Text = text
		var v *transports.ValidationError
		if err := tr.Validate(m); err != nil && (!errors.As(err, &v) || v.Field != "text") {
			t.Errorf("%.20q: %v", text, err)
		}
		return v
	}
	for _, c := range []struct {
		limit     int
		text      string
		wantLimit int // 0: it can be sent
		wantSize  int
	}{
		{0, strings.Repeat("x", 4000), 0, 0},
		{0, strings.Repeat("x", 4001), 4000, 4001},
		{0, strings.Repeat("é", 4000), 0, 0},
		{0, strings.Repeat("🙂", 2000), 0, 0},
		{0, strings.Repeat("🙂", 2001), 4000, 4002},
		{0, strings.Repeat("&", 4000), 0, 0},
		{100, strings.Repeat("x", 101), 100, 101},
		{MaxText, strings.Repeat("x", 39_999), 0, 0},
		{MaxText, strings.Repeat("x", 40_000), 0, 0},
		{MaxText, strings.Repeat("x", 40_001), 40_000, 40_001},
		{MaxText, strings.Repeat("&", 8000), 0, 0},
		{MaxText, strings.Repeat("&", 8001), 40_000, 40_005},
		{MaxText, strings.Repeat("x", 39_996) + "<", 0, 0},
		{MaxText, strings.Repeat("x", 39_997) + "<", 40_000, 40_001},
	} {
		v := validate(c.limit, c.text)
		switch {
		case c.wantLimit == 0 && v != nil:
			t.Errorf("%d of %.4q, limit %d: %v", len(c.text), c.text, c.limit, v)
		case c.wantLimit != 0 && (v == nil || v.Limit != c.wantLimit || v.Size != c.wantSize || v.Unit == ""):
			t.Errorf("%d of %.4q, limit %d: %+v, want %d of %d", len(c.text), c.text, c.limit, v, c.wantSize, c.wantLimit)
		}
	}
	for _, text := range []string{"ok\x00 and pay 900", "caf\xe9", "\xed\xa0\x80", "a\r\nb", "\x7f", "\u009b2K", " \u3000\n"} {
		if validate(0, text) == nil {
			t.Errorf("%q can be sent", text)
		}
	}
}

// A channel is paced as a whole, and channels don't share a pace.
func TestPace(t *testing.T) {
	f := newFakeSlack(t)
	outside, other := message(), message()
	outside.Thread, other.Channel = "", "C0OTHER"
	scopes := map[string]int{}
	for _, m := range []transports.Message{message(), outside, other} {
		for _, p := range f.transport().Pace(m) {
			if p.Every != time.Second {
				t.Errorf("%s: every %s", p.Scope, p.Every)
			}
			scopes[p.Scope]++
		}
	}
	if want := map[string]int{"channel " + channel: 2, "channel C0OTHER": 1}; !maps.Equal(scopes, want) {
		t.Errorf("paced by %v, want %v", scopes, want)
	}
}
