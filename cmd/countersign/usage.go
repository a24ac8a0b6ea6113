package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"github.com/xrash/smetrics"
)

// check tells what is wrong with a line before anything runs. cli would find part of it, and print it to stdout
// together with the help. Values come out in the one spelling that cli reads the same way.
func (l commandLine) check() error {
	switch {
	case l.problem != nil:
		return l.problem
	case l.command() == nil:
		return usagef("no command given").hinted("%s lists the commands", helpFor(nil))
	case l.command().Action == nil:
		return needsSubcommand(l.path)
	}
	for _, find := range []func() error{l.checkFlags, l.checkRequired, l.checkArgs} {
		if err := find(); err != nil {
			return err
		}
	}
	return nil
}

// checkFlags looks at each flag given: whether it is the command's, whether it was given before, and its value.
func (l commandLine) checkFlags() error {
	for i := range l.flags {
		u := &l.flags[i]
		name := flagName(u.flag)
		if !u.global && !slices.Contains(l.command().Flags, u.flag) {
			return unknownFlag(l, l.command().Flags, name)
		}
		repeated := slices.ContainsFunc(l.flags[:i], func(earlier flagUse) bool { return earlier.flag == u.flag })
		if repeated && !u.bare && !isRepeatable(u.flag) {
			return l.usagef("--%s is given twice", name)
		}
		var err error
		if u.value, err = l.checkValue(u.flag, u.value); err != nil {
			return err
		}
	}
	return nil
}

// checkValue returns value as cli's flag package will read it: that one takes 010 for eight.
func (l commandLine) checkValue(f cli.Flag, value string) (string, error) {
	switch f.(type) {
	case *cli.Int64Flag, *cli.IntFlag:
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return "", l.usagef("--%s needs a whole number, not %q", flagName(f), value)
		}
		return strconv.FormatInt(n, 10), nil
	case *cli.DurationFlag:
		if _, err := time.ParseDuration(value); err != nil {
			return "", l.usagef("--%s needs a duration such as 30s or 15m, not %q", flagName(f), value)
		}
	case *cli.BoolFlag:
		if _, err := strconv.ParseBool(value); err != nil {
			return "", l.usagef("--%s is true or false, not %q", flagName(f), value)
		}
	}
	return value, nil
}

// checkRequired finds the flags that the command can't do without.
func (l commandLine) checkRequired() error {
	var missing []string
	for _, f := range l.command().Flags {
		given := slices.ContainsFunc(l.flags, func(u flagUse) bool { return u.flag == f })
		if isRequired(f) && !given {
			missing = append(missing, "--"+flagName(f))
		}
	}
	if len(missing) > 0 {
		return l.usagef("%s needs %s", commandName(l.path), strings.Join(missing, ", "))
	}
	return nil
}

// checkArgs counts the positional arguments against the command's ArgsUsage.
func (l commandLine) checkArgs() error {
	takes := arityOf(l.command().ArgsUsage)
	switch given := len(l.args); {
	case given < takes.min:
		return l.usagef("%s needs %s", commandName(l.path), takes.names[given])
	case takes.max >= 0 && given > takes.max:
		return l.usagef("unexpected argument %q", l.args[takes.max])
	}
	return nil
}

// arity is how many positional arguments a command takes.
type arity struct {
	names    []string
	min, max int // max < 0: any number
}

// arityOf reads it off the text that help shows: "ID", "[ACTION]", "FILE [NAME...]".
func arityOf(argsUsage string) arity {
	names := strings.Fields(argsUsage)
	takes := arity{names: names, max: len(names)}
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			takes.min++
		}
		if strings.HasSuffix(strings.TrimSuffix(name, "]"), "...") {
			takes.max = -1
		}
	}
	return takes
}

// usagef is a usage error that hints at how this command is called.
func (l commandLine) usagef(format string, args ...any) *exitError {
	return usagef(format, args...).hinted("usage: %s (more: %s)", usageLine(l.path), helpFor(l.path))
}

func unknownCommand(path, candidates []*cli.Command, word string) error {
	var names []string
	for _, c := range candidates {
		if !c.Hidden {
			names = append(names, c.Names()...)
		}
	}
	err := usagef("unknown command %q", strings.TrimSpace(commandName(path)+" "+word))
	if near := nearest(word, names); near != "" {
		return err.hinted("did you mean %q?", strings.TrimSpace(commandName(path)+" "+near))
	}
	if len(candidates) == 0 {
		path = nil
	}
	return err.hinted("%s lists the commands", helpFor(path))
}

func unknownFlag(line commandLine, known []cli.Flag, name string) error {
	var names []string
	for _, f := range known {
		names = append(names, f.Names()...)
	}
	where := ""
	if len(line.path) > 0 {
		where = " for " + commandName(line.path)
	}
	err := usagef("unknown flag %s%s", dashed(name), where)
	if near := nearest(name, names); near != "" {
		return err.hinted("did you mean %s?", dashed(near))
	}
	if line.command() == nil {
		return err.hinted("flags of a command come after its name; %s lists the commands", helpFor(nil))
	}
	return err.hinted("%s lists the flags", helpFor(line.path))
}

func missingValue(line commandLine, f cli.Flag, rest []string) error {
	err := line.usagef("--%s needs a value", flagName(f))
	if len(rest) == 0 || rest[0] == "--" {
		return err
	}
	return err.hinted("%s is a flag itself; if it is meant as the value, write --%s=%s", rest[0], flagName(f), rest[0])
}

func needsSubcommand(path []*cli.Command) error {
	var names []string
	for _, c := range path[len(path)-1].VisibleCommands() {
		names = append(names, c.Name)
	}
	return usagef("%s needs a subcommand: %s", commandName(path), strings.Join(names, ", ")).
		hinted("%s tells what they do", helpFor(path))
}

// nearest is the name most like word, "" where none is like it.
func nearest(word string, names []string) string {
	// Below 0.7 words have little more than some letters in common.
	best, found := 0.7, ""
	for _, name := range names {
		if s := similarity(name, word); s > best {
			best, found = s, name
		}
	}
	return found
}

// similarity is from 0 to 1 (equal). Letters in another order are near to equal, which the metric of Jaro and Winkler
// does not see in words as short as commands are.
func similarity(name, word string) float64 {
	const boost, prefix = 0.7, 4 // the parameters of the metric's authors
	letters := func(s string) string { return string(slices.Sorted(slices.Values([]rune(s)))) }
	switch {
	case word == "":
		return 0
	case len(word) > 1 && letters(name) == letters(word):
		return 0.99
	}
	return smetrics.JaroWinkler(name, word, boost, prefix)
}

// usageLine is how a command is called: its name, arguments and required flags.
func usageLine(path []*cli.Command) string {
	words := append([]string{programName}, commandNames(path)...)
	if len(path) == 0 {
		return strings.Join(append(words, "COMMAND [options]"), " ")
	}
	c := path[len(path)-1]
	if c.Action == nil {
		return strings.Join(append(words, "SUBCOMMAND [options]"), " ")
	}
	if c.ArgsUsage != "" {
		words = append(words, c.ArgsUsage)
	}
	for _, f := range c.Flags {
		if isRequired(f) {
			words = append(words, flagForm(f))
		}
	}
	return strings.Join(append(words, "[options]"), " ")
}

// flagForm is a flag as it is typed: "--epoch E".
func flagForm(f cli.Flag) string {
	form, _, _ := strings.Cut(helpOf([]cli.Flag{f})[0].Forms, ", ")
	return form
}

// helpFor is the line that shows the help of a command.
func helpFor(path []*cli.Command) string {
	return strings.TrimSpace(programName + " help " + commandName(path))
}

func commandNames(path []*cli.Command) []string {
	var names []string
	for _, c := range path {
		names = append(names, c.Name)
	}
	return names
}

// commandName is the command's name with those of its groups: "audit log".
func commandName(path []*cli.Command) string {
	return strings.Join(commandNames(path), " ")
}

func isRequired(f cli.Flag) bool {
	r, ok := f.(cli.RequiredFlag)
	return ok && r.IsRequired()
}

func isRepeatable(f cli.Flag) bool {
	s, ok := f.(cli.DocGenerationSliceFlag)
	return ok && s.IsSliceFlag()
}

func isTrue(value string) bool {
	on, err := strconv.ParseBool(value)
	return err == nil && on
}

// dashed is a flag's name as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}
