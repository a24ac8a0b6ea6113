package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"
)

func (a *app) helpCommand() *cli.Command {
	return &cli.Command{
		Name:      "help",
		Usage:     "show what a command does and how it is called",
		ArgsUsage: "[COMMAND...]",
		Category:  categoryUpkeep,
		Description: manual{
			text: "Help is text on standard output, also with --json. `countersign COMMAND --help` shows the same.",
			examples: []string{
				"countersign help",
				"countersign help completion bash",
			},
		}.String(),
		Action: func(c *cli.Context) error {
			path, err := a.find(c.Args().Slice())
			if err != nil {
				return err
			}
			return a.printHelp(path)
		},
	}
}

// find follows the names of a command from its group down.
func (a *app) find(names []string) ([]*cli.Command, error) {
	var path []*cli.Command
	candidates := a.commands
	for _, name := range names {
		c := findCommand(candidates, name)
		if c == nil {
			return nil, unknownCommand(path, candidates, name)
		}
		path, candidates = append(path, c), c.Subcommands
	}
	return path, nil
}

// manual is what a command's help says below its usage line.
type manual struct {
	text     string     // what it does and what to know, in lines short enough for a terminal
	examples []string   // whole lines as one would type them
	exits    []exitNote // what its exit codes mean here, where the general table isn't enough
}

type exitNote struct {
	code    int
	meaning string
}

// String is the manual as a cli.Command's Description.
func (m manual) String() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(m.text))
	if len(m.examples) > 0 {
		b.WriteString("\n\nExamples:")
		for _, line := range m.examples {
			b.WriteString("\n  " + line)
		}
	}
	if len(m.exits) > 0 {
		b.WriteString("\n\nExit codes:")
		for _, note := range m.exits {
			fmt.Fprintf(&b, "\n  %-2d  %s", note.code, note.meaning)
		}
	}
	return b.String()
}

// helpPage is what the template is filled from.
type helpPage struct {
	Title       string
	Usage       string
	Description string
	Groups      []helpGroup
	Flags       []flagHelp
	GlobalFlags []flagHelp
	More        string
}

type helpGroup struct {
	Name     string
	Commands []*cli.Command
}

// The tabs are set by cli's printer.
const helpTemplate = `{{.Title}}

Usage:
  {{.Usage}}
{{- with .Description}}

{{.}}{{end}}
{{- range .Groups}}

{{.Name}}:{{range .Commands}}
  {{.Name}}{{"\t"}}{{.Usage}}{{end}}{{end}}
{{- with .Flags}}

Options:{{range .}}
  {{.Forms}}{{"\t"}}{{.About}}{{end}}{{end}}
{{- with .GlobalFlags}}

Global options, before or after the command:{{range .}}
  {{.Forms}}{{"\t"}}{{.About}}{{end}}{{end}}
{{- with .More}}

{{.}}{{end}}
`

const about = `An approval ledger for outbound messages: agents file drafts, a named operator
decides on the exact text, a worker sends it once, and the ledger proves what
went out.`

// programNotes end the program's own help.
const programNotes = `The configuration is the file of --config, else of $COUNTERSIGN_CONFIG, else
./countersign.toml, else the one in the user's configuration directory.

Exit codes:
  0   done
  1   unexpected failure, or a check that failed
  2   usage or configuration, unknown command, no such obligation
  3   refused by cleaning, validation, baseline, policy, review or an earlier
      rejection
  4   stale epoch, already decided, too late, conflicting idempotency key
  5   not authorised, own draft
  6   held by an active claim
  7   this pass left something unknown
  75  try later: ledger busy, or nothing could be prepared`

// printHelp shows the help of the command at the end of path, of the program where path is empty.
func (a *app) printHelp(path []*cli.Command) error {
	help := helpPage{
		Title:       programName + " - approve each outbound message before it is sent",
		Usage:       usageLine(path),
		Description: about,
		Groups:      grouped(a.commands, "Commands"),
		GlobalFlags: helpOf(a.flags),
		More:        programNotes,
	}
	if len(path) > 0 {
		c := path[len(path)-1]
		help.Title = programName + " " + commandName(path) + " - " + c.Usage
		help.Description = c.Description
		help.Groups = grouped(c.Subcommands, "Subcommands")
		help.Flags = helpOf(c.VisibleFlags())
		help.GlobalFlags = nil
		help.More = "Global options, before or after the command: " + strings.Join(flagForms(a.flags), ", ") + "\n" +
			helpFor(nil) + " tells what they do, and lists the exit codes."
	}
	// cli's printer drops write errors.
	var text bytes.Buffer
	cli.HelpPrinter(&text, helpTemplate, help)
	_, err := a.env.Stdout.Write(text.Bytes())
	return err
}

type flagHelp struct{ Forms, About string }

func helpOf(flags []cli.Flag) []flagHelp {
	var list []flagHelp
	for _, f := range flags {
		// cli prints a flag as "--name VALUE, -n VALUE\tusage".
		forms, _, _ := strings.Cut(f.String(), "\t")
		list = append(list, flagHelp{forms, flagAbout(f)})
	}
	return list
}

// flagAbout is what a flag is for. cli's own text for it calls the absence of a number "default: 0".
func flagAbout(f cli.Flag) string {
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return ""
	}
	about := strings.ReplaceAll(d.GetUsage(), "`", "")
	switch value := d.GetDefaultText(); value {
	case "", "0", "0s", "false":
		return about
	default:
		return about + " (default: " + value + ")"
	}
}

// flagForms are flags as they are typed, without what they are for.
func flagForms(flags []cli.Flag) []string {
	var forms []string
	for _, f := range flags {
		forms = append(forms, flagForm(f))
	}
	return forms
}

// grouped sorts commands by category, in the order in which the categories first come.
func grouped(commands []*cli.Command, other string) []helpGroup {
	var groups []helpGroup
	at := map[string]int{}
	for _, c := range commands {
		if c.Hidden {
			continue
		}
		name := c.Category
		if name == "" {
			name = other
		}
		if _, ok := at[name]; !ok {
			at[name] = len(groups)
			groups = append(groups, helpGroup{Name: name})
		}
		groups[at[name]].Commands = append(groups[at[name]].Commands, c)
	}
	return groups
}
