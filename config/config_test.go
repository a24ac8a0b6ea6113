package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/config"
	"countersign/operator"
)

// write puts a configuration into a directory of its own, readable by its owner only.
func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "countersign.toml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, content string) *config.Config {
	t.Helper()
	c, err := config.Load(write(t, content))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problems loads what is wrong and returns the lines about it, without the file's name.
func problems(t *testing.T, content string) []string {
	t.Helper()
	path := write(t, content)
	c, err := config.Load(path)
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) || c != nil {
		t.Fatalf("Load gives %v, %v", c, err)
	}
	lines := strings.Split(err.Error(), "\n")[1:]
	for i, line := range lines {
		rest, ok := strings.CutPrefix(line, path+":")
		if !ok {
			t.Fatalf("problem %q doesn't name the file", line)
		}
		lines[i] = rest
	}
	return lines
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("got %d problems, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("problem %d\n got %q\nwant %q", i, got[i], want[i])
		}
	}
}

const hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

func TestEmptyFileHasTheDefaults(t *testing.T) {
	path := write(t, "")
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.Path != path || c.Ledger.Path != filepath.Join(filepath.Dir(path), "countersign.db") || c.Ledger.BusyTimeout != 5*time.Second {
		t.Errorf("path %q, ledger %+v", c.Path, c.Ledger)
	}
	if want := (config.Deliver{Timeout: time.Minute, Concurrency: 8}); c.Deliver != want {
		t.Errorf("deliver %+v", c.Deliver)
	}
	want := config.Limits{Text: 40000, Subject: 300, Summary: 200, Context: 4000, Counterparty: 120, Channel: 500, Thread: 998, User: 120}
	if c.Limits != want {
		t.Errorf("limits %+v", c.Limits)
	}
	if want := (config.Notify{RemindP0: 15 * time.Minute, RemindP1: time.Hour, RemindP2: 4 * time.Hour, RemindP3: 24 * time.Hour}); c.Notify != want {
		t.Errorf("notify %+v", c.Notify)
	}
	if want := (config.Agents{MaxWaiting: 100, MaxHourly: 200}); c.Agents != want || c.Followups.Configured() || c.Followups.Timeout != 10*time.Second {
		t.Errorf("agents %+v, follow-ups %+v", c.Agents, c.Followups)
	}
	if c.Internal != nil || c.Transports.Local != nil || c.Transports.SMTP != nil || len(c.Operators) != 0 {
		t.Errorf("something is configured: %+v", c)
	}
}

func TestEveryKey(t *testing.T) {
	c := load(t, `
[ledger]
path = "/var/lib/desk/q?x.db"
busy_timeout = "250ms"

[[operators]]
id = "operator-a"
slack_team = "T0EXAMPLE"
slack_user = "U0EXAMPLE1"
token_sha256 = "`+hash+`"
[[operators]]
id = "operator-b"

[internal]
platform = "slack"
team = "T0EXAMPLE"
channel = "C0INTERNAL"

[transports.local]
dir = "out"

[transports.smtp]
address = "smtp.example.com:587"
tls = "implicit"
allow_plaintext = true
ca_file = "roots.pem"
from = "Desk <desk@example.com>"
auth = "plain"
username = "desk@example.com"
password = "env:SMTP_PASSWORD"
timeout = "20s"

[transports.slack]
token = "env:SLACK_BOT_TOKEN"
app_token = "env:SLACK_APP_TOKEN"
signing_secret = "file:/etc/countersign/slack"
api_url = "https://slack.example/api/"
text_limit = 100
timeout = "5s"

[deliver]
timeout = "90s"
rate_limit_waits = 2
concurrency = 3
hold = "10m"

[notify]
remind_p0 = "1m"
remind_p1 = ""
remind_p2 = "0s"

[agents]
max_waiting = 7
max_hourly = 0

[followups]
command = ["/usr/local/bin/tell", "--all", "$x"]
env = ["PATH", "TELL_TOKEN"]
timeout = "3s"

[limits]
text = 1
subject = 2
summary = 3
context = 4
counterparty = 5
channel = 6
thread = 7
user = 8
`)
	dir := filepath.Dir(c.Path)
	want := config.Config{
		Ledger: config.Ledger{Path: "/var/lib/desk/q?x.db", BusyTimeout: 250 * time.Millisecond},
		Operators: []operator.Entry{
			{ID: "operator-a", SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE1", TokenSHA256: hash},
			{ID: "operator-b"},
		},
		Internal: &config.Internal{Platform: "slack", Team: "T0EXAMPLE", Channel: "C0INTERNAL"},
		Transports: config.Transports{
			Local: &config.Local{Dir: filepath.Join(dir, "out")},
			SMTP: &config.SMTP{
				Address: "smtp.example.com:587", TLS: config.TLSImplicit, AllowPlaintext: true, CAFile: filepath.Join(dir, "roots.pem"),
				From: "Desk <desk@example.com>", Auth: config.AuthPlain, Username: "desk@example.com", Password: secret(t, "env:SMTP_PASSWORD"), Timeout: 20 * time.Second,
			},
			Slack: &config.Slack{
				Token: secret(t, "env:SLACK_BOT_TOKEN"), AppToken: secret(t, "env:SLACK_APP_TOKEN"), SigningSecret: secret(t, "file:/etc/countersign/slack"),
				APIURL: "https://slack.example/api/", TextLimit: 100, Timeout: 5 * time.Second,
			},
		},
		Deliver: config.Deliver{Timeout: 90 * time.Second, RateLimitWaits: 2, Concurrency: 3, Hold: 10 * time.Minute},
		Notify:  config.Notify{RemindP0: time.Minute, RemindP3: 24 * time.Hour},
		Agents:  config.Agents{MaxWaiting: 7},
		Followups: config.Followups{
			Command: []string{"/usr/local/bin/tell", "--all", "$x"}, Env: []string{"PATH", "TELL_TOKEN"}, Timeout: 3 * time.Second,
		},
		Limits: config.Limits{Text: 1, Subject: 2, Summary: 3, Context: 4, Counterparty: 5, Channel: 6, Thread: 7, User: 8},
	}
	for _, part := range []struct {
		name      string
		got, want any
	}{
		{"ledger", c.Ledger, want.Ledger}, {"operators", c.Operators, want.Operators}, {"internal", c.Internal, want.Internal},
		{"transports", c.Transports, want.Transports}, {"deliver", c.Deliver, want.Deliver}, {"limits", c.Limits, want.Limits},
		{"notify", c.Notify, want.Notify}, {"agents", c.Agents, want.Agents}, {"followups", c.Followups, want.Followups},
	} {
		if !reflect.DeepEqual(part.got, part.want) {
			t.Errorf("%s: got %+v, want %+v", part.name, part.got, part.want)
		}
	}
}

func TestSectionsHaveTheirDefaults(t *testing.T) {
	c := load(t, "[transports.local]\n[transports.smtp]\naddress = \"127.0.0.1:25\"\nfrom = \"a@example.com\"\n")
	want := config.SMTP{Address: "127.0.0.1:25", TLS: config.TLSStartTLS, From: "a@example.com", Timeout: 30 * time.Second}
	if *c.Transports.SMTP != want {
		t.Errorf("smtp %+v", *c.Transports.SMTP)
	}
	if want := filepath.Join(filepath.Dir(c.Path), "outbox"); c.Transports.Local.Dir != want {
		t.Errorf("local.dir is %q, want %q", c.Transports.Local.Dir, want)
	}
}

// A relative path that depends on the working directory would make cron open another ledger than the shell.
func TestPathsAreRelativeToTheFile(t *testing.T) {
	path := write(t, "[ledger]\npath = \"data/a#b.db\"\n")
	t.Chdir(filepath.Dir(path))
	c, err := config.Load("countersign.toml")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(filepath.Dir(path), "data", "a#b.db"); c.Ledger.Path != want || c.Path != path {
		t.Errorf("ledger %q of %q, want %q of %q", c.Ledger.Path, c.Path, want, path)
	}
}

func TestUnsupportedSectionsAreRefused(t *testing.T) {
	sections := map[string]string{
		"[[policy]]\naction = \"Mail.send\"\ndecision = \"deny\"\n": "1: policy: [[policy]] is not supported by this version; remove it",
		"policy = []\n": "1: policy: [[policy]] is not supported by this version; remove it",
		"[tools.FileRW]\ncommand = [\"/bin/x\"]\n": "tools: [tools] is not supported by this version; remove it",
		"[baseline]\n":                       "1: baseline: [baseline] is not supported by this version; remove it",
		"[auto_approval]\nenabled = false\n": "1: auto_approval: [auto_approval] is not supported by this version; remove it",
		"[review]\n":                         "1: review: [review] is not supported by this version; remove it",
		"[seal]\nrequired = true\n":          "1: seal: [seal] is not supported by this version; remove it",
		"[fence]\npath = \"\"\n":             "1: fence: [fence] is not supported by this version; remove it",
	}
	for content, want := range sections {
		t.Run(want, func(t *testing.T) { expect(t, problems(t, content), want) })
	}
}

func TestSlackAndTelegram(t *testing.T) {
	for content, want := range map[string]string{
		"[transports]\ntelegram = {}\n":                             "2: transports.telegram.token: is missing: the bot's token, best as env:NAME or file:/path",
		"[transports.slack]\n":                                      "1: transports.slack.token: is missing: the bot's token, best as env:NAME or file:/path",
		slackWith("text_limit = 40001"):                             "3: transports.slack.text_limit: must be between 1 and 40000, is 40001",
		slackWith("timeout = \"1ms\""):                              "3: transports.slack.timeout: must be between 1s and 10m0s, is 1ms",
		slackWith("api_url = \"http://slack.example/\""):            "3: transports.slack.api_url: must be https, or http to a server on this machine, is \"http://slack.example/\"",
		slackWith("api_url = \"https://me:secret@slack.example/\""): "3: transports.slack.api_url: must be the URL of a server without login, query and fragment",
	} {
		t.Run(want, func(t *testing.T) { expect(t, problems(t, content), want) })
	}
	c, err := config.Load(write(t, slackWith("api_url = \"http://127.0.0.1:8080/api/\"")+"[transports.telegram]\ntoken = \"env:T\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if s, tg := c.Transports.Slack, c.Transports.Telegram; s.TextLimit != 4000 || s.Timeout != 30*time.Second || !tg.CheckChat || tg.APIURL != "https://api.telegram.org" {
		t.Errorf("defaults: %+v, %+v", s, tg)
	}
}

func slackWith(line string) string {
	return "[transports.slack]\ntoken = \"env:SLACK_BOT_TOKEN\"\n" + line + "\n"
}

func TestUnknownKeys(t *testing.T) {
	got := problems(t, `# a comment
[ledger]
pth = "x.db"
Path = "y.db"

[delivery]
timeout = "1s"

[transports.smtp]
adress = "x:25"
busy_timeout = "1s"

[[operators]]
id = "a"
[[operators]]
id = "b"
tokensha256 = "…"

[limits]
frobnicate = 1

[transports.fax]
[Policy]
`)
	expect(t, got,
		"3: ledger.pth: unknown key; did you mean ledger.path?",
		"4: ledger.Path: unknown key; did you mean ledger.path?",
		"6: delivery: unknown key; did you mean deliver?",
		"10: transports.smtp.adress: unknown key; did you mean transports.smtp.address?",
		"11: transports.smtp.busy_timeout: unknown key; did you mean ledger.busy_timeout?",
		"17: operators[1].tokensha256: unknown key; did you mean operators.token_sha256?",
		"20: limits.frobnicate: unknown key",
		"22: transports.fax: unknown key",
		"23: Policy: unknown key",
	)
	if strings.Contains(got[6], "mean") {
		t.Errorf("a wild guess: %q", got[6])
	}
}

func TestTypes(t *testing.T) {
	expect(t, problems(t, `
deliver = 5
transports = { local = "outbox", smtp = { password = 12345, allow_plaintext = "yes", timeout = 30, address = 1.5 } }
operators = "me"
internal = []
[ledger]
path = 1979-05-27
busy_timeout = "5 parsecs"
[limits]
text = "many"
`),
		"2: deliver: must be a table, is an integer",
		`3: transports.local: must be a table, is a string`,
		"3: transports.smtp.address: must be a string, is a float",
		"3: transports.smtp.allow_plaintext: must be true or false, is a string",
		`3: transports.smtp.password: must be a string, best "env:NAME" or "file:/path", is an integer`,
		`3: transports.smtp.timeout: must be a string with a unit, such as "30s", is an integer`,
		"4: operators: must be a list of tables, each under [[operators]], is a string",
		"5: internal: must be a table, is a list",
		"7: ledger.path: must be a string, is a date",
		`8: ledger.busy_timeout: must be a time with a unit, such as "30s" or "1h30m", is "5 parsecs"`,
		"10: limits.text: must be an integer, is a string",
	)
	expect(t, problems(t, "operators = [{id = \"a\"}, 7]\n"), "1: operators[1]: must be a table, is an integer")
}

func TestRanges(t *testing.T) {
	expect(t, problems(t, `
[ledger]
path = ""
busy_timeout = "0s"
[internal]
platform = "telegram"
channel = "#general"
[transports.local]
dir = "a\u0000b"
[deliver]
timeout = "999ms"
rate_limit_waits = -1
concurrency = 65
hold = "-1s"
[limits]
text = 0
thread = 999
`),
		"3: ledger.path: must not be empty",
		"4: ledger.busy_timeout: must be between 1ms and 10m0s, is 0s",
		"5: internal.team: is missing: the workspace id, such as T0EXAMPLE",
		"5: internal: needs the section [transports.slack]: its bot is the one that tells",
		`6: internal.platform: must be one of "slack", is "telegram"`,
		`7: internal.channel: must be the id of a channel`,
		"9: transports.local.dir: must not contain a NUL",
		"11: deliver.timeout: must be between 1s and 15m0s, is 999ms",
		"12: deliver.rate_limit_waits: must be between 0 and 5, is -1",
		"13: deliver.concurrency: must be between 1 and 64, is 65",
		"14: deliver.hold: must be between 0s and 168h0m0s, is -1s",
		"16: limits.text: must be between 1 and 1000000, is 0",
		"17: limits.thread: must be between 1 and 998, is 999",
	)
}

func TestEdgesOfRangesAreAllowed(t *testing.T) {
	load(t, "[deliver]\ntimeout = \"1s\"\nrate_limit_waits = 5\nconcurrency = 1\nhold = \"168h\"\n[limits]\nthread = 998\ntext = 1000000\n[ledger]\nbusy_timeout = \"10m\"\n")
}

func TestSMTP(t *testing.T) {
	base := map[string]string{"address": "smtp.example.com:587", "from": "Desk <desk@example.com>"}
	tests := []struct {
		name string
		set  map[string]string
		want []string
	}{
		{"no address", map[string]string{"address": ""}, []string{`address: must be host:port, such as smtp.example.com:587, is ""`}},
		{"no port", map[string]string{"address": "smtp.example.com"}, []string{"address: must be host:port"}},
		{"no host", map[string]string{"address": ":25"}, []string{"address: must be host:port"}},
		{"bad port", map[string]string{"address": "mx:70000"}, []string{"address: must end in a port between 1 and 65535"}},
		{"named port", map[string]string{"address": "mx:smtp"}, []string{"address: must end in a port"}},
		{"hidden in the host", map[string]string{"address": "m\u200bx:25"}, []string{"address: must be host:port"}},
		{"unknown tls", map[string]string{"tls": "ssl"}, []string{`tls: must be one of "starttls", "implicit", "none", is "ssl"`}},
		{"plain text over a network", map[string]string{"tls": "none"}, []string{`tls: "none" would send text and password readable to smtp.example.com`}},
		{"no from", map[string]string{"from": ""}, []string{"from: is missing"}},
		{"two from", map[string]string{"from": "a@example.com, b@example.com"}, []string{"from: must be one mail address"}},
		{"line ends in an encoded name", map[string]string{"from": "=?utf-8?q?a=0d=0aBcc:_x?= <a@example.com>"}, []string{"from: must be one mail address"}},
		{"hidden characters in a name", map[string]string{"from": "D\u200besk <a@example.com>"}, []string{"from: must not contain control or hidden characters"}},
		{"hidden characters in an encoded name", map[string]string{"from": "=?utf-8?q?a=E2=80=8Bb?= <a@example.com>"}, []string{"from: must not contain control or hidden characters"}},
		{"unknown auth", map[string]string{"auth": "cram-md5", "username": "u", "password": "env:X"}, []string{`auth: must be one of "", "plain", "login", "xoauth2", is "cram-md5"`}},
		{"auth without login", map[string]string{"auth": "plain"}, []string{`username: is missing: auth = "plain" needs it`, "password: is missing"}},
		{"login without auth", map[string]string{"username": "u", "password": "env:X"}, []string{`auth: is "", so username and password would not be used`}},
		{"timeouts", map[string]string{"timeout": "0s"}, []string{"timeout: must be between 1s and 10m0s, is 0s"}},
		{"relative secret", map[string]string{"auth": "plain", "username": "u", "password": "file:pw"}, []string{`password: must name an absolute path after "file:"`}},
		{"bad variable", map[string]string{"auth": "plain", "username": "u", "password": "env:SMTP PASSWORD"}, []string{`password: must name an environment variable after "env:"`}},
		{"scheme in capitals", map[string]string{"auth": "plain", "username": "u", "password": "ENV:X"}, []string{`password: must begin with "env:" in lower case`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("[transports.smtp]\n")
			for _, key := range []string{"address", "tls", "from", "auth", "username", "password", "timeout"} {
				value, ok := tt.set[key]
				if !ok {
					value, ok = base[key], base[key] != ""
				}
				if ok {
					b.WriteString(key + " = '" + value + "'\n")
				}
			}
			expect(t, problems(t, b.String()), tt.want...)
		})
	}
	for _, good := range []string{
		"address = '127.0.0.1:2525'\ntls = 'none'", "address = 'localhost:25'\ntls = 'none'", "address = '[::1]:25'\ntls = 'none'",
		"address = 'mx.example.com:25'\ntls = 'none'\nallow_plaintext = true",
	} {
		load(t, "[transports.smtp]\nfrom = 'desk@example.com'\n"+good+"\n")
	}
}

func TestOperatorsAreChecked(t *testing.T) {
	expect(t, problems(t, `
[[operators]]
id = "auto-ttl"
[[operators]]
id = "ann"
token_sha256 = "…"
[[operators]]
token_sha256 = "`+hash+`"
slack_user = "U1"
`),
		`3: operators[0].id: is one of the system's own names (auto-ttl, policy:*, reviewer:*), or looks like one (operator "auto-ttl")`,
		`6: operators[1].token_sha256: must be the SHA-256 of the token, as 64 lower-case hex digits (operator "ann")`,
		`7: operators[2].id: is missing (operator "")`,
		`7: operators[2].slack_team: is missing`,
	)
}

func TestSyntaxErrorsHaveALineAndNoValue(t *testing.T) {
	tests := map[string]string{
		"[ledger]\npath = data.db\n":                           "2: ledger.path: expected value but found … instead (a string needs quotes)",
		"[transports.smtp]\n\npassword = hunter2\n":            "3: transports.smtp.password: expected value but found … instead",
		"[transports.smtp]\npassword = 1_hunter2_\n":           "2:",
		"[transports.smtp]\npassword = 12e\n":                  "2: transports.smtp.password: Invalid float value: …",
		"[ledger]\npath = \"a\"\npath = \"b\"\n":               "3: ledger.path: Key 'ledger.path' has already been defined.",
		"[ledger]\n[ledger]\n":                                 "2: Key 'ledger' has already been defined.",
		"[ledger\n":                                            "2: expected '.' or ']' to end table name, but got '\\n' instead",
		"[transports.smtp]\npassword = 99999999999999999999\n": "2: transports.smtp.password: … is out of range for int64",
		"[ledger]\npath = \"\xff\"\n":                          "2:",
	}
	for content, want := range tests {
		got := problems(t, content)
		expect(t, got, want)
		if strings.Contains(got[0], "hunter") || strings.Contains(got[0], "12e") || strings.Contains(got[0], "9999") {
			t.Errorf("%q: the error shows the value: %q", content, got[0])
		}
	}
}

func TestLinesInUnusualForms(t *testing.T) {
	expect(t, problems(t, "limits.text = 0\n[ deliver ]\n\"concurrency\" = 0\n[transports]\nsmtp.address = \"mx:25\"\nsmtp.from = '''\n[ledger]\npath = 1\n'''\n[ledger]\npath = \"\"\n"),
		"1: limits.text: must be between",
		"3: deliver.concurrency: must be between",
		"6: transports.smtp.from: must be one mail address",
		"11: ledger.path: must not be empty",
	)
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.toml")
	if err := os.WriteFile(big, []byte(strings.Repeat("#\n", 600_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		filepath.Join(dir, "missing.toml"): "missing.toml: no such file or directory; `countersign init` makes one",
		dir:                                "is a directory",
		os.DevNull:                         "is not a regular file",
		big:                                "is larger than 1048576 bytes",
	}
	for path, want := range tests {
		if c, err := config.Load(path); err == nil || c != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("Load(%s) = %v, %v", path, c, err)
		}
	}
	if _, err := config.Load(filepath.Join(dir, "missing.toml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file gives %v", err)
	}
}

func TestTemplateIsAConfiguration(t *testing.T) {
	text := string(config.Template("operator-a", hash))
	c := load(t, text)
	if len(c.Operators) != 1 || c.Operators[0] != (operator.Entry{ID: "operator-a", TokenSHA256: hash}) {
		t.Errorf("operators %#v", c.Operators)
	}
	if c.Transports.Local == nil || c.Transports.SMTP != nil || c.Internal != nil {
		t.Errorf("transports %+v, internal %+v", c.Transports, c.Internal)
	}
	defaults := config.Default()
	if c.Notify != defaults.Notify || c.Agents != defaults.Agents || !reflect.DeepEqual(c.Followups, defaults.Followups) ||
		c.Limits != defaults.Limits || c.Deliver != defaults.Deliver || c.Ledger.BusyTimeout != defaults.Ledger.BusyTimeout {
		t.Errorf("the template changes a default: %+v", c)
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("the template warns: %q", w)
	}
	for _, section := range []string{"policy", "tools", "baseline", "auto_approval", "review", "seal", "fence"} {
		if strings.Contains(text, "["+section) || strings.Contains(text, "."+section) {
			t.Errorf("the template holds %s, which Load refuses", section)
		}
	}
}

// What the template explains must work when somebody takes the # away.
func TestTemplateWithEverySettingSwitchedOn(t *testing.T) {
	off := regexp.MustCompile(`(?m)^#([a-z\[])`)
	for _, id := range []string{"operator-a", ""} {
		text := off.ReplaceAllString(string(config.Template(id, hash)), "$1")
		c := load(t, text)
		want := config.SMTP{
			Address: "smtp.example.com:587", TLS: config.TLSStartTLS, From: "Desk <desk@example.com>",
			Auth: config.AuthPlain, Username: "desk@example.com", Timeout: 30 * time.Second,
		}
		got := *c.Transports.SMTP
		got.Password = config.Secret{}
		if got != want || c.Transports.SMTP.Password.String() != "env:SMTP_PASSWORD" {
			t.Errorf("smtp %+v", c.Transports.SMTP)
		}
		if s := c.Transports.Slack; s.AppToken.String() != "env:SLACK_APP_TOKEN" || s.SigningSecret.String() != "env:SLACK_SIGNING_SECRET" {
			t.Errorf("slack %+v", s)
		}
		if f := c.Followups; f.Command[0] != "/usr/local/bin/tell-agent" || f.Env[0] != "PATH" || f.Timeout != 10*time.Second {
			t.Errorf("follow-ups %+v", f)
		}
		if c.Notify != config.Default().Notify || c.Agents != config.Default().Agents {
			t.Errorf("notify %+v, agents %+v", c.Notify, c.Agents)
		}
		if c.Internal == nil || c.Limits != config.Default().Limits || c.Ledger.BusyTimeout != 5*time.Second {
			t.Errorf("%+v", c)
		}
		if len(c.Operators) != 1 || c.Operators[0].ID != "operator-a" || c.Operators[0].SlackUser != "U0EXAMPLE1" {
			t.Errorf("operators %#v", c.Operators)
		}
	}
}

func TestTemplateHasTheOrderOfTheExample(t *testing.T) {
	text := string(config.Template("a", hash))
	last := -1
	for _, section := range []string{"[ledger]", "[[operators]]", "[internal]", "[transports.local]", "[transports.smtp]", "[deliver]", "[notify]", "[agents]", "[followups]", "[limits]"} {
		at := strings.Index(text, "\n"+section)
		if at < 0 {
			at = strings.Index(text, "\n#"+section)
		}
		if at <= last {
			t.Errorf("%s stands at %d, after %d", section, at, last)
		}
		last = at
	}
}

func TestTemplateQuotesTheOperator(t *testing.T) {
	for _, id := range []string{`Ann "the boss" O\Neil`, "Ünal 李", "#x = [1]"} {
		if c := load(t, string(config.Template(id, hash))); c.Operators[0].ID != id {
			t.Errorf("operator %q came back as %q", id, c.Operators[0].ID)
		}
	}
	// No id can break out of its string: what the directory refuses is still one value.
	expect(t, problems(t, string(config.Template("a\"\n[ledger]\x07\x7f", ""))), `id: has control or hidden characters`)
}

func TestWarnings(t *testing.T) {
	tests := []struct {
		name, content string
		mode          os.FileMode
		want          []string
	}{
		{"nothing configured", "", 0o600, []string{"operators: none is configured", "transports: none is configured"}},
		{"an operator who can't decide", "[transports.local]\n[[operators]]\nid = \"ann\"\n", 0o600, []string{`operators[0]: operator "ann" has no terminal token`}},
		{"an operator who decides in Slack", "[[operators]]\nid = \"ann\"\nslack_team = \"T1\"\nslack_user = \"U1\"\n" + internal + slackWith(""), 0o600, nil},
		{"a Slack user without a channel", "[[operators]]\nid = \"ann\"\nslack_team = \"T1\"\nslack_user = \"U1\"\n" + slackWith(""), 0o600,
			[]string{`operators[0]: operator "ann" has no terminal token, and no Slack user with an internal channel`}},
		{"a literal secret of the hook", smtpWith("password = \"env:PW\"\n[followups]\nurl = \"https://a.example\"\nsecret = \"hunter2\""), 0o600,
			[]string{"followups.secret: the configuration holds the secret itself"}},
		{"a literal password", smtpWith(`password = "hunter2"`), 0o600, []string{"transports.smtp.password: the configuration holds the secret itself"}},
		{"a literal password for all to read", smtpWith(`password = "hunter2"`), 0o644, []string{"can be read by others than its owner: chmod 600 it"}},
		{"a literal password for the group", smtpWith(`password = "hunter2"`), 0o640, []string{"can be read by others than its owner"}},
		{"a reference for all to read", smtpWith(`password = "env:PW"`), 0o644, nil},
		{"plain text over a network", smtpWith("password = \"env:PW\"\ntls = \"none\"\nallow_plaintext = true"), 0o600, []string{"transports.smtp.tls: messages go to mx.example.com unencrypted"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := write(t, tt.content)
			if err := os.Chmod(path, tt.mode); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			got := c.Warnings()
			expect(t, got, tt.want...)
			if strings.Contains(strings.Join(got, "\n"), "hunter2") {
				t.Errorf("a warning shows the password: %q", got)
			}
		})
	}
}

// smtpWith is a configuration without other warnings.
func smtpWith(lines string) string {
	return "[[operators]]\nid = \"ann\"\ntoken_sha256 = \"" + hash + "\"\n[transports.smtp]\naddress = \"mx.example.com:587\"\n" +
		"from = \"a@example.com\"\nauth = \"plain\"\nusername = \"u\"\n" + lines + "\n"
}
