package main

import (
	"strings"
	"testing"
)

// The last word of each line is the one under the cursor; "_" stands for one that isn't begun yet.
func TestComplete(t *testing.T) {
	const global = "--config --json --verbose --help --version"
	for line, want := range map[string]string{
		"_":                                 "version completion help approve file audit receipt text token die",
		"a":                                 "approve audit",
		"app":                               "approve",
		"approve":                           "approve",
		"xyzzy":                             "",
		"xyzzy _":                           "version completion help approve file audit receipt text token die",
		"int":                               "", // hidden
		"-":                                 global,
		"--j":                               "--json",
		"--json _":                          "version completion help approve file audit receipt text token die",
		"--json --":                         "--config --verbose --help --version",
		"--config _":                        "", // files
		"--config --j":                      "",
		"--config c.toml a":                 "approve audit",
		"--config=c.toml a":                 "approve audit",
		"audit _":                           "log find",
		"audit --json l":                    "log",
		"audit find _":                      "",
		"approve _":                         "", // an ID
		"approve 431 _":                     "--epoch --note " + global,
		"approve 431 --epoch 7 _":           "--note " + global,
		"approve 431 --epoch 7 --json --":   "--note --config --verbose --help --version",
		"approve --e":                       "--epoch",
		"approve --epoch _":                 "",
		"approve --epoch -":                 "",
		"approve --epoch=":                  "",
		"approve 431 x":                     "",
		"approve -- -":                      "",
		"-- ap":                             "approve",
		"file --tag a --ta":                 "--tag", // may be repeated
		"file --channel c --ch":             "",
		"file -c c --ch":                    "",
		"receipt _":                         "verify",
		"receipt 5 --o":                     "--out",
		"receipt verify --k":                "--key",
		"help _":                            "version completion help approve file audit receipt text token die",
		"help audit _":                      "log find",
		"help audit f":                      "find",
		"help audit log _":                  "",
		"help xyzzy _":                      "",
		"completion _":                      "bash zsh fish",
		"completion z":                      "zsh",
		"completion bash --generate-bash-c": "",
	} {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			if last := len(words) - 1; words[last] == "_" {
				words[last] = ""
			}
			got := runTest(t, testEnv(append(words, completionFlag)...))
			if got.code != 0 || got.stderr != "" {
				t.Errorf("exit %d, stderr %q", got.code, got.stderr)
			}
			var choices []string
			for line := range strings.Lines(got.stdout) {
				word, _, found := strings.Cut(line, "\t")
				if !found {
					t.Errorf("no tab in %q", line)
				}
				choices = append(choices, word)
			}
			if list := strings.Join(choices, " "); list != want {
				t.Errorf("got  %q\nwant %q", list, want)
			}
		})
	}
}

// What was typed is looked at, never run, and the answer tells what each word is for.
func TestCompletionAnswers(t *testing.T) {
	got := runTest(t, testEnv("approve", "--ep", completionFlag))
	if want := "--epoch\tdecide on epoch E\n"; got.stdout != want {
		t.Errorf("got %q, want %q", got.stdout, want)
	}
	if got := runTest(t, testEnv(completionFlag)); got.code != 0 || !strings.Contains(got.stdout, "approve\t") {
		t.Errorf("got %+v", got)
	}
	// Anywhere but at the end it is a flag that nobody knows.
	wantUsageError(t, runTest(t, testEnv(completionFlag, "version")))
}
