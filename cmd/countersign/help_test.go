package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/mattn/go-runewidth"
	"github.com/urfave/cli/v2"
)

// everyCommand calls f with the path of each command of the program.
func everyCommand(a *app, f func(path []*cli.Command)) {
	var walk func(path, commands []*cli.Command)
	walk = func(path, commands []*cli.Command) {
		for _, c := range commands {
			f(append(slices.Clone(path), c))
			walk(append(slices.Clone(path), c), c.Subcommands)
		}
	}
	walk(nil, a.commands)
}

// Each command explains itself, in the same shape, and fits a terminal.
func TestEveryCommandHasHelp(t *testing.T) {
	everyCommand(newApp(testEnv()), func(path []*cli.Command) {
		name := commandName(path)
		t.Run(name, func(t *testing.T) {
			c := path[len(path)-1]
			if c.Usage == "" || strings.ContainsAny(c.Usage[:1], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") || strings.HasSuffix(c.Usage, ".") {
				t.Errorf("Usage %q: want a phrase in lower case without a full stop", c.Usage)
			}
			if len(path) == 1 && c.Category == "" {
				t.Error("no Category")
			}
			if !strings.Contains(c.Description, "\nExamples:\n") {
				t.Error("no examples in Description")
			}
			asked := runProgram(t, testEnv(append(commandNames(path), "--help")...))
			help := runProgram(t, testEnv(append([]string{"help"}, commandNames(path)...)...))
			if asked != help || help.code != 0 || help.stderr != "" || !strings.HasPrefix(help.stdout, "countersign "+name+" - ") {
				t.Errorf("got %+v and %+v", asked, help)
			}
			for line := range strings.Lines(help.stdout) {
				if w := runewidth.StringWidth(line); w > defaultWidth {
					t.Errorf("%d columns: %s", w, line)
				}
			}
		})
	})
}

// An example that the program would not take is worse than none.
func TestExamplesAreUnderstood(t *testing.T) {
	a := newApp(testEnv())
	everyCommand(a, func(path []*cli.Command) {
		for _, example := range exampleLines(path[len(path)-1].Description) {
			if err := a.parse(example).check(); err != nil {
				t.Errorf("%s: %q: %v", commandName(path), example, err)
			}
		}
	})
}

// exampleLines are the words of each call of the program in a command's description, without what a shell would do.
// An example quotes with '…' only.
func exampleLines(description string) [][]string {
	var lines [][]string
	for line := range strings.Lines(description) {
		_, call, found := strings.Cut(line, programName+" ")
		if !found || !strings.HasPrefix(line, "  ") {
			continue
		}
		end := strings.IndexAny(call, "|<>)")
		if end >= 0 {
			call = call[:end]
		}
		var words []string
		for i, part := range strings.Split(call, "'") {
			if i%2 == 1 {
				words = append(words, part)
			} else {
				words = append(words, strings.Fields(part)...)
			}
		}
		lines = append(lines, words)
	}
	return lines
}

// A command's flag of the same name would hide a global one behind the command's name; cli would read a variable from
// the process's own environment.
func TestFlagsOfCommands(t *testing.T) {
	a := newApp(testEnv())
	everyCommand(a, func(path []*cli.Command) {
		for _, f := range path[len(path)-1].Flags {
			for _, name := range f.Names() {
				if findFlag(a.flags, name) != nil {
					t.Errorf("%s: --%s is a global flag", commandName(path), name)
				}
			}
			d, ok := f.(cli.DocGenerationFlag)
			if !ok || len(d.GetEnvVars()) > 0 || d.GetUsage() == "" {
				t.Errorf("%s: --%s wants a usage, and no EnvVars", commandName(path), flagName(f))
			}
		}
	})
}

func TestHelp(t *testing.T) {
	for _, test := range []struct {
		line string
		want []string
	}{
		{"help", []string{"Usage:\n  countersign COMMAND [options]\n", "\nUpkeep:\n", "--config FILE", "  75  try later"}},
		{"--help", []string{"Usage:\n  countersign COMMAND [options]\n"}},
		{"-h --json", []string{"Usage:\n  countersign COMMAND [options]\n"}},
		{"approve --help", []string{"Usage:\n  countersign approve ID --epoch E [options]\n", "Options:\n  --epoch E", "decide on epoch E"}},
		{"approve --epoch x --bogus -h", []string{"countersign approve - "}}, // whatever else is wrong
		{"help approve", []string{"countersign approve - "}},
		{"audit --help", []string{"Usage:\n  countersign audit SUBCOMMAND [options]\n", "Subcommands:\n  log", "  find"}},
		{"audit help", []string{"countersign audit - "}},
		{"help audit find", []string{"Usage:\n  countersign audit find WORD [WORD...] [options]\n"}},
		{"help receipt", []string{"  countersign receipt ID [options]\n", "Subcommands:\n  verify"}},
		{"receipt verify -h", []string{"  countersign receipt verify FILE --key value [options]\n"}},
	} {
		t.Run(test.line, func(t *testing.T) {
			got := runTest(t, testEnv(strings.Fields(test.line)...))
			if got.code != 0 || got.stderr != "" {
				t.Errorf("exit %d, stderr %q", got.code, got.stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stdout, want) {
					t.Errorf("%q is missing in\n%s", want, got.stdout)
				}
			}
			if strings.Contains(got.stdout, "internal") || strings.Contains(got.stdout, "default: false") {
				t.Errorf("got\n%s", got.stdout)
			}
		})
	}
}

func TestManual(t *testing.T) {
	got := manual{text: "\nWhat it does.\n", examples: []string{"countersign x", "countersign y"},
		exits: []exitNote{{4, "too late"}, {75, "busy"}}}.String()
	const want = "What it does.\n\nExamples:\n  countersign x\n  countersign y\n\nExit codes:\n  4   too late\n  75  busy"
	if got != want {
		t.Errorf("got %q", got)
	}
}
