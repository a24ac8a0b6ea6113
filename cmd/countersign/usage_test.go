package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// What can't be understood ends with 2, says so on stderr, and leaves stdout alone.
func TestUsageErrors(t *testing.T) {
	for _, test := range []struct{ line, err, hint string }{
		{"", "no command given", "countersign help lists"},
		{"--json=false", "no command given", ""},
		{"aprove 431 --epoch 7", `unknown command "aprove"`, `did you mean "approve"?`},
		{"xyzzy", `unknown command "xyzzy"`, "countersign help lists the commands"},
		{"intrnal", `unknown command "intrnal"`, "countersign help lists the commands"}, // a hidden one isn't suggested
		{"audit lgo", `unknown command "audit lgo"`, `did you mean "audit log"?`},
		{"audit xyzzy", `unknown command "audit xyzzy"`, "countersign help audit lists"},
		{"audit", "audit needs a subcommand: log, find", "countersign help audit"},
		{"help aprove", `unknown command "aprove"`, `did you mean "approve"?`},
		{"help audit fnid", `unknown command "audit fnid"`, `did you mean "audit find"?`},
		{"help approve x", `unknown command "approve x"`, "countersign help lists"},
		{"approve 431", "approve needs --epoch", "usage: countersign approve ID --epoch E [options]"},
		{"approve --epoch 7", "approve needs ID", "usage: countersign approve ID"},
		{"approve 431 432 --epoch 7", `unexpected argument "432"`, "usage:"},
		{"approve x --epoch 7", `"x" is not an ID`, "list"},
		{"approve 0 --epoch 7", `"0" is not an ID`, ""},
		{"approve --epoch 7 -- -5", `"-5" is not an ID`, ""},
		{"approve -- +5 --epoch", `approve needs --epoch`, ""},
		{"approve 1_0 --epoch 7", `"1_0" is not an ID`, ""},
		{"approve 0x1f --epoch 7", `"0x1f" is not an ID`, ""},
		{"approve 99999999999999999999 --epoch 7", `is not an ID`, ""},
		{"approve 431 --epoch", "--epoch needs a value", "usage:"},
		{"approve 431 --epoch --json=false", "--epoch needs a value", "write --epoch=--json=false"},
		{"approve 431 --note --epoch 7", "--note needs a value", "write --note=--epoch"},
		{"approve 431 --epoch 7 --note -- x", "--note needs a value", ""},
		{"approve 431 --epoch= ", `--epoch needs a whole number, not ""`, "usage:"},
		{"approve 431 --epoch seven", `--epoch needs a whole number, not "seven"`, ""},
		{"approve 431 --epoch 7.0", `--epoch needs a whole number, not "7.0"`, ""},
		{"approve 431 --epoch 0x7", `--epoch needs a whole number, not "0x7"`, ""},
		{"approve 431 --epoch 1 --epoch 2", "--epoch is given twice", "usage:"},
		{"approve 431 --epoch 1 --epoch=1", "--epoch is given twice", "usage:"},
		{"file -c C1 --channel C2", "--channel is given twice", ""},
		{"--config a audit log --config b", "--config is given twice", ""},
		{"file -c C1 --force --force=false", "--force is given twice", ""},
		{"audit log --config=", "--config is empty", ""},
		{"approve 431 --epcoh 7", "unknown flag --epcoh for approve", "did you mean --epoch?"},
		{"approve 431 --epoch 7 -x", "unknown flag -x for approve", "countersign help approve lists the flags"},
		{"approve -5 --epoch 7", "unknown flag -5 for approve", ""},
		{"approve 431 --epoch 7 --=1", "unknown flag", ""},
		{"approve 431 --epoch 7 ---json", "unknown flag", ""},
		{"--epoch 7 approve 431", "unknown flag --epoch", "come after its name"},
		{"-vh", "unknown flag --vh", ""},
		{"receipt --out x verify f --key k", "unknown flag --out for receipt verify", ""},
		{"receipt verify f", "receipt verify needs --key", "usage: countersign receipt verify FILE --key value"},
		{"receipt 5 verify", `unexpected argument "verify"`, ""},
		{"file -c C1 --hold 5", `--hold needs a duration such as 30s or 15m, not "5"`, ""},
		{"file -c C1 --force=maybe", `--force is true or false, not "maybe"`, ""},
		{"file -c C1 --ratio x", `invalid value "x" for flag -ratio`, ""}, // found by cli, of a type that only it knows
		{"version 1", `unexpected argument "1"`, ""},
		{"completion", "completion needs a subcommand: bash, zsh, fish", ""},
		{"completion bsh", `unknown command "completion bsh"`, `did you mean "completion bash"?`},
	} {
		t.Run(test.line, func(t *testing.T) {
			words := strings.Fields(test.line)
			got := runTest(t, testEnv(words...))
			wantUsageError(t, got)
			first, rest, _ := strings.Cut(got.stderr, "\n")
			if !strings.HasPrefix(first, "countersign: ") || !strings.Contains(first, test.err) {
				t.Errorf("stderr %q, want %q", first, test.err)
			}
			if !strings.Contains(rest, test.hint) || strings.Count(rest, "\n") > 1 {
				t.Errorf("after it %q, want %q", rest, test.hint)
			}
			wantSameAsJSON(t, words, got)
		})
	}
}

// wantSameAsJSON runs words with --json in front and compares the one line on stderr with the text.
func wantSameAsJSON(t *testing.T, words []string, text outcome) {
	t.Helper()
	got := runTest(t, testEnv(append([]string{"--json"}, words...)...))
	wantUsageError(t, got)
	var line struct{ Error, Hint, Kind string }
	if err := json.Unmarshal([]byte(got.stderr), &line); err != nil {
		t.Fatalf("%v in %q", err, got.stderr)
	}
	want := "countersign: " + line.Error + "\n"
	if line.Hint != "" {
		want += "hint: " + line.Hint + "\n"
	}
	if text.stderr != want || line.Kind != kindUsage || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("got %q for %q", got.stderr, text.stderr)
	}
}

func TestEmptyEpoch(t *testing.T) {
	got := runTest(t, testEnv("approve", "431", "--epoch", ""))
	wantUsageError(t, got)
	if !strings.Contains(got.stderr, `--epoch needs a whole number, not ""`) {
		t.Errorf("stderr %q", got.stderr)
	}
}

// --json counts for an error wherever it stands among the flags, and not behind "--" or as part of another word.
func TestJSONErrors(t *testing.T) {
	for line, want := range map[string]bool{
		"--json aprove":                  true,
		"aprove --json":                  true,
		"aprove 1 --epoch --json":        true,
		"approve 431 --json":             true,
		"approve 431 --bogus --json":     true,
		"approve 431 --bogus -json":      true,
		"approve 431 --json=true":        true,
		"approve 431 --epoch x --json":   true,
		"audit lgo --json":               true,
		"audit --json":                   true,
		"--json":                         true,
		"approve 431 --json=maybe":       false,
		"approve 431 --json=false":       false,
		"approve 431 -- --json":          false,
		"approve 431 --note=--json":      false,
		"approve 431 --jsonx":            false,
		"approve json":                   false,
		"approve x --epoch 7 --json":     true, // found by the command itself
		"text --json --text-file /nope/": true,
	} {
		t.Run(line, func(t *testing.T) {
			got := runTest(t, testEnv(strings.Fields(line)...))
			wantUsageError(t, got)
			var value map[string]any
			if err := json.Unmarshal([]byte(got.stderr), &value); (err == nil) != want {
				t.Fatalf("stderr %q", got.stderr)
			}
			if want && (value["code"] != 2.0 || value["kind"] != "usage" || len(value) != 4) {
				t.Errorf("got %v", value)
			}
		})
	}
}

func TestNearest(t *testing.T) {
	names := []string{"approve", "reject", "list", "show", "settle"}
	for word, want := range map[string]string{
		"aprove": "approve", "approved": "approve", "lst": "list", "shwo": "show", "setle": "settle",
		"": "", "xyzzy": "", "help": "",
	} {
		if got := nearest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
