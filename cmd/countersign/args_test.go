package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// Each line below must reach the command the same way, wherever its flags stand.
func TestFlagsStandAnywhere(t *testing.T) {
	const approved = `{"command":"approve","args":["431"],"config":"","id":431,"epoch":7,"note":""}`
	const configured = `{"command":"approve","args":["431"],"config":"c.toml","id":431,"epoch":7,"note":""}`
	for line, want := range map[string]string{
		"approve 431 --epoch 7":                          approved,
		"approve --epoch 7 431":                          approved,
		"approve --epoch=7 431":                          approved,
		"approve -epoch 7 431":                           approved,
		"approve 431 --epoch=7 --json":                   approved,
		"--json approve 431 --epoch 7":                   approved,
		"approve --json 431 -v --epoch 7":                approved,
		"-v approve --epoch 7 -- 431":                    approved,
		"--json --verbose -- approve 431 --epoch":        "",
		"approve 431 --epoch 07":                         approved,
		"approve 431 --epoch +7":                         approved,
		"approve --json --json 431 --epoch 7":            approved,
		"approve 431 --json=false --epoch 7":             approved,
		"--config c.toml approve 431 --epoch 7":          configured,
		"approve 431 --epoch 7 --config=c.toml":          configured,
		"approve --config c.toml 431 --epoch 7":          configured,
		"audit log":                                      `{"command":"log","args":[],"config":""}`,
		"--json audit log":                               `{"command":"log","args":[],"config":""}`,
		"audit --json log":                               `{"command":"log","args":[],"config":""}`,
		"audit log --json --config x":                    `{"command":"log","args":[],"config":"x"}`,
		"audit --config x log":                           `{"command":"log","args":[],"config":"x"}`,
		"audit find a b -v c":                            `{"command":"find","args":["a","b","c"],"config":""}`,
		"audit find -- --json -x":                        `{"command":"find","args":["--json","-x"],"config":""}`,
		"audit find -- a -- b":                           `{"command":"find","args":["a","--","b"],"config":""}`,
		"audit find -":                                   `{"command":"find","args":["-"],"config":""}`,
		"audit find help h":                              `{"command":"find","args":["help","h"],"config":""}`,
		"receipt 12":                                     `{"command":"receipt","args":["12"],"config":"","out":""}`,
		"receipt --out x 12":                             `{"command":"receipt","args":["12"],"config":"","out":"x"}`,
		"receipt -- verify":                              `{"command":"receipt","args":["verify"],"config":"","out":""}`,
		"receipt verify f.json --key k.pub":              `{"command":"verify","args":["f.json"],"config":"","key":"k.pub"}`,
		"receipt verify --key k.pub f.json --json":       `{"command":"verify","args":["f.json"],"config":"","key":"k.pub"}`,
		"--json receipt verify --key=k=1 -- --help":      `{"command":"verify","args":["--help"],"config":"","key":"k=1"}`,
		"receipt verify --key k.pub -- verify":           `{"command":"verify","args":["verify"],"config":"","key":"k.pub"}`,
		"receipt --config c verify --key k --verbose -f": "",
	} {
		t.Run(line, func(t *testing.T) {
			got := runTest(t, testEnv(strings.Fields(line)...))
			if want == "" {
				wantUsageError(t, got)
				return
			}
			wantJSONEqual(t, got, want)
		})
	}
}

// A value is taken as it was written, be it empty, dashed, with commas, or like a command's name.
func TestFlagValues(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		want string // of the keys that are not as in the simplest filing
	}{
		{"a dash in front", []string{"file", "--channel", "-100123"}, `{"channel":"-100123"}`},
		{"a dash in front, after =", []string{"file", "--channel=-v"}, `{"channel":"-v"}`},
		{"only a dash", []string{"file", "--channel", "-"}, `{"channel":"-"}`},
		{"an alias", []string{"file", "-c", "C1"}, `{"channel":"C1"}`},
		{"an alias with =", []string{"file", "-c=C1"}, `{"channel":"C1"}`},
		{"an = inside", []string{"file", "--channel", "a=b"}, `{"channel":"a=b"}`},
		{"blanks and quotes", []string{"file", "--channel", ` a "b" `}, `{"channel":" a \"b\" "}`},
		{"empty", []string{"file", "-c", "C1", "--thread", ""}, `{"channel":"C1"}`},
		{"a command's name", []string{"file", "-c", "audit"}, `{"channel":"audit"}`},
		// urfave/cli splits slices at commas unless told otherwise.
		{"commas", []string{"file", "-c", "C1", "--tag", "a,b", "--tag", "c"}, `{"channel":"C1","tags":["a,b","c"]}`},
		{"a switch", []string{"file", "--force", "-c", "C1"}, `{"channel":"C1","force":true}`},
		{"a switch off", []string{"file", "--force=false", "-c", "C1"}, `{"channel":"C1"}`},
		{"a switch twice", []string{"file", "--force", "--force", "-c", "C1"}, `{"channel":"C1","force":true}`},
		{"a duration", []string{"file", "--hold", "90s", "-c", "C1"}, `{"channel":"C1","hold":"1m30s"}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			want := map[string]any{"command": "file", "args": []any{}, "config": "", "thread": "", "tags": nil,
				"force": false, "hold": "0s"}
			if err := json.Unmarshal([]byte(test.want), &want); err != nil {
				t.Fatal(err)
			}
			doc, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			wantJSONEqual(t, runTest(t, testEnv(test.args...)), string(doc))
		})
	}
}

func wantJSONEqual(t *testing.T, got outcome, want string) {
	t.Helper()
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("exit %d, stderr %q", got.code, got.stderr)
	}
	if compact(t, got.stdout) != compact(t, want) {
		t.Errorf("got  %s\nwant %s", got.stdout, want)
	}
}

// compact gives a JSON value one spelling.
func compact(t *testing.T, doc string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(doc), &value); err != nil {
		t.Fatalf("%v in %q", err, doc)
	}
	spelled, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(spelled)
}

func wantUsageError(t *testing.T, got outcome) {
	t.Helper()
	if got.code != exitUsage {
		t.Errorf("exit %d, want %d", got.code, exitUsage)
	}
	if got.stdout != "" {
		t.Errorf("stdout %q, want nothing", got.stdout)
	}
}

func TestArity(t *testing.T) {
	for argsUsage, want := range map[string][2]int{
		"":                 {0, 0},
		"ID":               {1, 1},
		"[ACTION]":         {0, 1},
		"FILE [NAME]":      {1, 2},
		"[COMMAND...]":     {0, -1},
		"WORD [WORD...]":   {1, -1},
		"FILE NAME [X...]": {2, -1},
	} {
		if got := arityOf(argsUsage); got.min != want[0] || got.max != want[1] {
			t.Errorf("%q: %d to %d, want %v", argsUsage, got.min, got.max, want)
		}
	}
}
