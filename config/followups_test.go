package config_test

import (
	"strings"
	"testing"
)

const internal = "[internal]\nplatform = \"slack\"\nteam = \"T0EXAMPLE\"\nchannel = \"C0INTERNAL\"\n"

func TestFollowups(t *testing.T) {
	tests := []struct {
		name, lines string
		want        []string
	}{
		{"a relative command", `command = ["tell"]`, []string{`2: followups.command[0]: must be the absolute path of a program, is "tell"`}},
		{"a command line", `command = "/bin/tell --all"`, []string{`2: followups.command: must be a list of strings, such as ["a", "b"], is a string`}},
		{"a command of tables", `command = [{path = "/bin/tell"}, 7]`, []string{"2: followups.command[0]: must be a string, is a table", "2: followups.command[1]: must be a string, is an integer"}},
		{"a NUL", `command = ["/bin/tell", "a\u0000b"]`, []string{"2: followups.command: must not contain a NUL"}},
		{"a value", "command = [\"/bin/tell\"]\nenv = [\"PATH\", \"TOKEN=hunter2\"]", []string{"3: followups.env[1]: must be the name of an environment variable"}},
		{"an environment for nothing", `env = ["PATH"]`, []string{"2: followups.env: is for a command, and there is none"}},
		{"command and url", "command = [\"/bin/tell\"]\nurl = \"https://a.example/\"\nsecret = \"env:X\"", []string{"3: followups.url: and command can't both be set"}},
		{"no secret", `url = "https://a.example/hunter2"`, []string{"followups.secret: is missing"}},
		{"a secret for nothing", `secret = "env:X"`, []string{"2: followups.secret: signs what is posted to url, and there is none"}},
		{"a bad secret", `secret = "env:"`, []string{"2: followups.secret: must name an environment variable"}},
		{"plain http", "url = \"http://a.example/hunter2\"\nsecret = \"env:X\"", []string{"2: followups.url: must be https, or http to a server on this machine"}},
		{"another scheme", "url = \"ftp://a.example/hunter2\"\nsecret = \"env:X\"", []string{"2: followups.url: must be https, or http to a server on this machine"}},
		{"a login", "url = \"https://me:hunter2@a.example/\"\nsecret = \"env:X\"", []string{"2: followups.url: must be a URL without login"}},
		{"no host", "url = \"https://:443/\"\nsecret = \"env:X\"", []string{"2: followups.url: must be a URL without login"}},
		{"hidden characters", "url = \"https://a.example/\u200bx\"\nsecret = \"env:X\"", []string{"2: followups.url: must be a URL without login"}},
		{"no time", "command = [\"/bin/tell\"]\ntimeout = \"\"", []string{"3: followups.timeout: must be a time with a unit"}},
		{"a short time", "command = [\"/bin/tell\"]\ntimeout = \"1ms\"", []string{"3: followups.timeout: must be between 1s and 10m0s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := problems(t, "[followups]\n"+tt.lines+"\n")
			expect(t, got, tt.want...)
			if strings.Contains(strings.Join(got, "\n"), "hunter2") {
				t.Errorf("a problem shows what may be a secret: %q", got)
			}
		})
	}
	for _, good := range []string{
		"", "command = []", `command = ["/bin/tell"]`, "url = \"https://a.example/x?key=y\"\nsecret = \"env:X\"",
		"url = \"http://127.0.0.1:8080/\"\nsecret = \"file:/etc/secret\"", "url = \"http://localhost:8080\"\nsecret = \"env:X\"",
	} {
		c := load(t, "[followups]\n"+good+"\n")
		if c.Followups.Configured() != strings.Contains(good, "/") {
			t.Errorf("%q: configured is %v", good, c.Followups.Configured())
		}
	}
}

func TestRemindersAndAgents(t *testing.T) {
	expect(t, problems(t, "[notify]\nremind_p0 = \"-1s\"\nremind_p3 = \"9000h\"\n[agents]\nmax_waiting = -1\nmax_hourly = 1000001\n"),
		"2: notify.remind_p0: must be between 0s and 8760h0m0s, is -1s",
		"3: notify.remind_p3: must be between 0s and 8760h0m0s, is 9000h0m0s",
		"5: agents.max_waiting: must be between 0 and 1000000, is -1",
		"6: agents.max_hourly: must be between 0 and 1000000, is 1000001")
	expect(t, problems(t, "[notify]\nremind_p1 = \"soon\"\nremind_p2 = 5\nremind_p4 = \"1h\"\n[deliver]\nhold = \"\"\n"),
		`2: notify.remind_p1: must be a time with a unit, such as "30s" or "1h30m", is "soon"`,
		"3: notify.remind_p2: must be a string with a unit",
		"4: notify.remind_p4: unknown key; did you mean notify.remind_p",
		`6: deliver.hold: must be a time with a unit`)
}
