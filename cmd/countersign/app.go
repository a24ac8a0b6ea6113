package main

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

const programName = "countersign"

// app is one run of the program. Commands are its methods, one file each, and use it for all that they say and ask.
type app struct {
	env      env
	flags    []cli.Flag     // taken before and after the command's name
	commands []*cli.Command // in the order in which help lists them
	out      output
	log      *slog.Logger // to stderr: warnings, and with --verbose what goes on
}

// newApp builds the program for env: nothing is read and nothing runs yet.
func newApp(e env) *app {
	a := &app{env: e, flags: globalFlags()}
	a.configure(false, false)
	a.add(a.allCommands()...)
	return a
}

// add makes commands part of the program.
func (a *app) add(commands ...*cli.Command) {
	for _, c := range commands {
		prepare(c)
	}
	a.commands = append(a.commands, commands...)
}

// allCommands lists what the program can do. A new command is a constructor in a file of its own, and a line here.
func (a *app) allCommands() []*cli.Command {
	return []*cli.Command{
		a.demoCommand(),
		a.initCommand(),
		a.fileCommand(),
		a.waitCommand(),
		a.inboxCommand(),
		a.withdrawCommand(),
		a.triageCommand(),
		a.listCommand(),
		a.showCommand(),
		a.diffCommand(),
		a.approveCommand(),
		a.rejectCommand(),
		a.revokeCommand(),
		a.steerCommand(),
		a.deliverCommand(),
		a.recoverCommand(),
		a.notifyCommand(),
		a.serveCommand(),
		a.claimsCommand(),
		a.cancelCommand(),
		a.reconcileCommand(),
		a.settleCommand(),
		a.closeCommand(),
		a.auditCommand(),
		a.operatorCommand(),
		a.configCommand(),
		a.dbCommand(),
		a.versionCommand(),
		a.completionCommand(),
		a.helpCommand(),
	}
}

// The groups of commands in help, in this order.
const (
	categoryStart     = "Start"
	categoryAgents    = "Agents"
	categoryOperators = "Operators"
	categoryDelivery  = "Delivery"
	categoryAudit     = "Audit"
	categoryUpkeep    = "Upkeep"
)

func globalFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{
			Name:   "config",
			Usage:  "read the configuration from `FILE`",
			Action: notEmpty("config"),
		},
		&cli.BoolFlag{Name: "json", Usage: "print one JSON value, and errors as JSON"},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "tell on stderr what goes on"},
		&cli.BoolFlag{Name: "help", Aliases: []string{"h"}, Usage: "show help and do nothing else"},
		&cli.BoolFlag{Name: "version", Usage: "show the version and do nothing else"},
	}
}

// notEmpty is the Action of a string flag whose value may not be "".
func notEmpty(name string) func(*cli.Context, string) error {
	return func(_ *cli.Context, value string) error {
		if value == "" {
			return usagef("--%s is empty", name)
		}
		return nil
	}
}

// configure sets what the global flags say about output.
func (a *app) configure(asJSON, verbose bool) {
	a.out = newOutput(a.env, asJSON)
	a.log = newLogger(a.env, asJSON, verbose)
}

// run is the whole program; it returns the exit code. A cancelled ctx asks the command to finish what it has in hand.
func run(ctx context.Context, e env) int {
	return newApp(e).run(ctx)
}

func (a *app) run(ctx context.Context) (code int) {
	defer func() {
		// Go's own exit code for a panic is 2, which here says that the caller made a mistake.
		if p := recover(); p != nil {
			code = a.report(fmt.Errorf("internal error: %v", p))
			fmt.Fprintf(a.env.Stderr, "%s", debug.Stack())
		}
	}()
	return a.report(bySignal(ctx, a.runArgs(ctx, a.env.Args[1:])))
}

// runArgs does what the words after the program's name ask for.
func (a *app) runArgs(ctx context.Context, words []string) error {
	if words, ok := completionRequest(words); ok {
		return a.complete(words)
	}
	line := a.parse(words)
	a.configure(line.isSet("json"), line.isSet("verbose"))
	if line.isSet("help") {
		return a.printHelp(line.path)
	}
	if line.isSet("version") {
		return a.showVersion()
	}
	if err := line.check(); err != nil {
		if wantsJSON(words) {
			a.configure(true, false)
		}
		return err
	}
	return a.execute(ctx, line)
}

// execute hands a checked line to urfave/cli, which parses it once more into the context that the command reads.
func (a *app) execute(ctx context.Context, line commandLine) error {
	// The words are already known to be arguments, but cli would take one that reads like a subcommand for it.
	line.command().Subcommands = nil
	program := &cli.App{
		Name:                      programName,
		Flags:                     a.flags,
		Commands:                  a.commands,
		Reader:                    a.env.Stdin,
		Writer:                    a.env.Stdout,
		ErrWriter:                 a.env.Stderr,
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		OnUsageError:              onUsageError,
		// Without it cli prints the error and calls os.Exit.
		ExitErrHandler: func(*cli.Context, error) {},
	}
	return program.RunContext(ctx, line.canonical())
}

// prepare gives c and its subcommands what is the same for all of them.
func prepare(c *cli.Command) {
	c.HideHelp = true
	c.OnUsageError = onUsageError
	for _, sub := range c.Subcommands {
		prepare(sub)
	}
}

// onUsageError keeps cli from printing to stdout what it can't parse. The line was checked before, so that only values
// of flag types that check doesn't know come this far.
func onUsageError(_ *cli.Context, err error, _ bool) error {
	return &exitError{code: exitUsage, kind: kindUsage, err: err}
}
