package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// commandLine is what the words after the program's name mean. urfave/cli v2 stops at the first positional argument
// and knows a global flag only before the command's name, so the words are sorted here, by the flags and commands that
// cli itself will use, and handed on as it wants them (canonical).
type commandLine struct {
	path    []*cli.Command // the command, below the groups that it is in; empty if none was named
	flags   []flagUse      // in the order given
	args    []string       // positional arguments
	problem error          // the first thing that could not be understood
}

// flagUse is one flag as it was given.
type flagUse struct {
	flag   cli.Flag
	global bool
	value  string
	bare   bool // no value was written: a switch
}

// sorter reads words from left to right.
type sorter struct {
	app        *app
	line       commandLine
	rest       []string
	noFlags    bool // "--" has come
	wantsValue bool // the words ended where a flag's value must follow
}

// parse sorts words.
func (a *app) parse(words []string) commandLine {
	return a.sortWords(words).line
}

// sortWords goes on after the first problem, so that --help and --json count wherever they stand.
func (a *app) sortWords(words []string) *sorter {
	s := &sorter{app: a, rest: words}
	for len(s.rest) > 0 {
		word := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case s.noFlags || !isFlag(word):
			s.word(word)
		case word == "--":
			s.noFlags = true
		default:
			s.flag(word)
		}
	}
	return s
}

// isFlag tells if word is a flag or "--". A single "-" is an argument: standard input.
func isFlag(word string) bool {
	return len(word) > 1 && word[0] == '-'
}

// word takes a command's name or a positional argument.
func (s *sorter) word(word string) {
	group := s.expectsCommand()
	if len(s.line.args) == 0 && (group || !s.noFlags) {
		if c := findCommand(s.candidates(), word); c != nil {
			s.line.path = append(s.line.path, c)
			return
		}
	}
	switch {
	case !group:
		s.line.args = append(s.line.args, word)
	case word == "help" && len(s.line.path) > 0:
		s.use(flagUse{flag: findFlag(s.app.flags, "help"), global: true, value: "true", bare: true})
	default:
		s.fail(unknownCommand(s.line.path, s.candidates(), word))
	}
}

// expectsCommand tells if the next word must be a command's name: nothing was named yet, or only a group.
func (s *sorter) expectsCommand() bool {
	c := s.line.command()
	return c == nil || c.Action == nil
}

// candidates are the commands that the next word may name.
func (s *sorter) candidates() []*cli.Command {
	if c := s.line.command(); c != nil {
		return c.Subcommands
	}
	return s.app.commands
}

// flag takes a flag, and the next word where the flag wants a value and has none yet.
func (s *sorter) flag(word string) {
	name, value, hasValue := splitFlag(word)
	f, global := s.lookup(name)
	if f == nil {
		s.fail(unknownFlag(s.line, s.known(), name))
		return
	}
	use := flagUse{flag: f, global: global, value: value}
	switch {
	case hasValue:
	case !takesValue(f):
		use.value, use.bare = "true", true
	case s.endsHere() && bareValue(f) != "":
		use.value, use.bare = bareValue(f), true
	case s.endsHere():
		s.wantsValue = len(s.rest) == 0
		s.fail(missingValue(s.line, f, s.rest))
		return
	default:
		use.value = s.rest[0]
		s.rest = s.rest[1:]
	}
	s.use(use)
}

// endsHere tells if nothing follows that could be a value.
func (s *sorter) endsHere() bool { return len(s.rest) == 0 || s.isKnownFlag(s.rest[0]) }

// isKnownFlag tells if word can't be meant as a value, which may begin with a dash (a Telegram channel is "-100…"):
// it is spelled like a flag of this command, so the value before it was forgotten.
func (s *sorter) isKnownFlag(word string) bool {
	if word == "--" {
		return true
	}
	if !isFlag(word) {
		return false
	}
	name, _, _ := splitFlag(word)
	f, _ := s.lookup(name)
	return f != nil
}

// lookup finds a flag of the command, or a global one.
func (s *sorter) lookup(name string) (f cli.Flag, global bool) {
	if c := s.line.command(); c != nil {
		if f := findFlag(c.Flags, name); f != nil {
			return f, false
		}
	}
	f = findFlag(s.app.flags, name)
	return f, f != nil
}

// known are the flags that can be given here.
func (s *sorter) known() []cli.Flag {
	if c := s.line.command(); c != nil {
		return slices.Concat(c.Flags, s.app.flags)
	}
	return s.app.flags
}

func (s *sorter) use(u flagUse) {
	s.line.flags = append(s.line.flags, u)
}

func (s *sorter) fail(err error) {
	if s.line.problem == nil {
		s.line.problem = err
	}
}

// command is the command named, nil if there is none.
func (l commandLine) command() *cli.Command {
	if len(l.path) == 0 {
		return nil
	}
	return l.path[len(l.path)-1]
}

// isSet tells if the global switch of that name is on.
func (l commandLine) isSet(name string) bool {
	return slices.ContainsFunc(l.flags, func(u flagUse) bool {
		return u.global && flagName(u.flag) == name && isTrue(u.value)
	})
}

// canonical is the line as cli wants it: global flags, the command's name, its flags, and after "--" the arguments.
// Each value hangs on its flag by "=", so that one with a dash stays a value.
func (l commandLine) canonical() []string {
	var globals, locals, names []string
	for _, u := range l.flags {
		word := "--" + flagName(u.flag) + "=" + u.value
		if u.global {
			globals = append(globals, word)
		} else {
			locals = append(locals, word)
		}
	}
	for _, c := range l.path {
		names = append(names, c.Name)
	}
	return slices.Concat([]string{programName}, globals, names, locals, []string{"--"}, l.args)
}

// splitFlag takes "--name=value" apart; one dash is as good as two, as in package flag.
func splitFlag(word string) (name, value string, hasValue bool) {
	return strings.Cut(strings.TrimPrefix(word[1:], "-"), "=")
}

// wantsJSON tells if --json stands anywhere among the flags of a line that could not be understood.
func wantsJSON(words []string) bool {
	for _, word := range words {
		if word == "--" {
			return false
		}
		if !isFlag(word) {
			continue
		}
		name, value, hasValue := splitFlag(word)
		if name == "json" && (!hasValue || isTrue(value)) {
			return true
		}
	}
	return false
}

func findCommand(commands []*cli.Command, name string) *cli.Command {
	i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(name) })
	if i < 0 {
		return nil
	}
	return commands[i]
}

func findFlag(flags []cli.Flag, name string) cli.Flag {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return nil
	}
	return flags[i]
}

func flagName(f cli.Flag) string { return f.Names()[0] }

// bareFlag is a flag that may stand without a value, and then has this one.
type bareFlag struct {
	*cli.StringSliceFlag
	bare string
}

// bareValue is "" for a flag that needs a value.
func bareValue(f cli.Flag) string {
	b, _ := f.(bareFlag)
	return b.bare
}

func takesValue(f cli.Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}
