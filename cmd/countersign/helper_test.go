package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"testing"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/ledger"
)

// testEnv is an env without a terminal, without variables and with a fixed clock, two hours east of Greenwich.
func testEnv(args ...string) env {
	return env{
		Args:   append([]string{programName}, args...),
		Stdin:  strings.NewReader(""),
		Stdout: new(bytes.Buffer),
		Stderr: new(bytes.Buffer),
		Getenv: func(string) string { return "" },
		After:  func(time.Duration) <-chan time.Time { return make(chan time.Time) }, // nobody waits without a reason
		Now:    func() time.Time { return time.Unix(1_700_000_000, 0).In(time.FixedZone("", 2*60*60)) },
		ReadSecret: func(context.Context, string) (string, error) {
			return "", errors.New("asked for a secret without a terminal")
		},
	}
}

// withVariables is e with these environment variables.
func (e env) withVariables(variables map[string]string) env {
	e.Getenv = func(name string) string { return variables[name] }
	return e
}

// outcome is what a run left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// runTest runs the probe.
func runTest(t *testing.T, e env) outcome {
	t.Helper()
	return runApp(t, newProbe(e), e)
}

// runProgram runs the program.
func runProgram(t *testing.T, e env) outcome {
	t.Helper()
	return runApp(t, newApp(e), e)
}

func runApp(t *testing.T, a *app, e env) outcome {
	t.Helper()
	code := a.run(t.Context())
	return outcome{code, e.Stdout.(*bytes.Buffer).String(), e.Stderr.(*bytes.Buffer).String()}
}

// newProbe is the program with the probe commands in place of the real ones, but for those that tell of the program.
func newProbe(e env) *app {
	a := newApp(e)
	a.commands = nil
	a.add(a.versionCommand(), a.completionCommand(), a.helpCommand())
	a.add(probeCommands(a)...)
	return a
}

// probeMain is the probe as a process of its own.
func probeMain() {
	a := newProbe(processEnv())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	os.Exit(a.run(ctx))
}

// probeCommands stand for every shape of command that there is. Each prints what reached it.
func probeCommands(a *app) []*cli.Command {
	epoch := func() cli.Flag { return &cli.Int64Flag{Name: "epoch", Usage: "decide on epoch `E`", Required: true} }
	return []*cli.Command{
		{
			Name: "approve", ArgsUsage: "ID", Usage: "stands for a decision",
			Flags: []cli.Flag{epoch(), &cli.StringFlag{Name: "note"}},
			Action: func(c *cli.Context) error {
				id, err := oneID(c)
				if err != nil {
					return err
				}
				return a.echo(c, "id", id, "epoch", c.Int64("epoch"), "note", c.String("note"))
			},
		},
		{
			Name: "file", Usage: "stands for a filing",
			Flags: []cli.Flag{
				&cli.StringFlag{Name: "channel", Aliases: []string{"c"}, Required: true},
				&cli.StringFlag{Name: "thread"},
				&cli.StringSliceFlag{Name: "tag"},
				&cli.BoolFlag{Name: "force"},
				&cli.DurationFlag{Name: "hold"},
				&cli.Float64Flag{Name: "ratio"},
			},
			Action: func(c *cli.Context) error {
				return a.echo(c, "channel", c.String("channel"), "thread", c.String("thread"), "tags", c.StringSlice("tag"),
					"force", c.Bool("force"), "hold", c.Duration("hold").String())
			},
		},
		{
			Name: "audit", Usage: "stands for a group",
			Subcommands: []*cli.Command{
				{Name: "log", Usage: "a command in a group", Action: func(c *cli.Context) error { return a.echo(c) }},
				{Name: "find", Usage: "another", ArgsUsage: "WORD [WORD...]", Action: func(c *cli.Context) error { return a.echo(c) }},
			},
		},
		{
			Name: "receipt", ArgsUsage: "ID", Usage: "stands for a command that is a group, too",
			Flags:  []cli.Flag{&cli.StringFlag{Name: "out"}},
			Action: func(c *cli.Context) error { return a.echo(c, "out", c.String("out")) },
			Subcommands: []*cli.Command{{
				Name: "verify", ArgsUsage: "FILE", Usage: "a command in it",
				Flags:  []cli.Flag{&cli.StringFlag{Name: "key", Required: true}},
				Action: func(c *cli.Context) error { return a.echo(c, "key", c.String("key")) },
			}},
		},
		{Name: "internal", Hidden: true, Action: func(c *cli.Context) error { panic("the probe panics") }},
		{
			Name: "text", Usage: "reads a text", Flags: []cli.Flag{textFlag()},
			Action: func(c *cli.Context) error {
				text, err := a.readText(c, 20)
				if err != nil {
					return err
				}
				return a.echo(c, "text", text)
			},
		},
		{
			Name: "token", Usage: "reads the operator's token", Flags: []cli.Flag{tokenFlag()},
			Action: func(c *cli.Context) error {
				token, err := a.operatorToken(c)
				if err != nil {
					return err
				}
				return a.echo(c, "token", token)
			},
		},
		{
			Name: "die", Usage: "stands for a worker that ends in the middle of a delivery", ArgsUsage: "LEDGER",
			Flags:  []cli.Flag{&cli.BoolFlag{Name: "dispatching"}},
			Action: func(c *cli.Context) error { return dieAt(c.Context, c.Args().First(), c.Bool("dispatching")) },
		},
	}
}

// deadWorker has the form of a worker's name, and no lock.
const deadWorker = "w-0123456789ab"

// dieAt claims what waits, and goes no further than to the begin of its dispatch.
func dieAt(ctx context.Context, path string, dispatching bool) error {
	l, err := ledger.Open(ctx, path, ledger.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	destinations, err := l.Destinations(ctx, ledger.DeliverFilter{})
	if err != nil || len(destinations) == 0 {
		return errors.Join(errors.New("nothing waits"), err)
	}
	ready, err := l.Next(ctx, destinations[0], ledger.DeliverFilter{}, 0)
	if err != nil {
		return err
	}
	claim, err := l.Claim(ctx, ready.DecisionID, deadWorker)
	if err == nil && dispatching {
		_, err = l.BeginDispatch(ctx, claim)
	}
	return err
}

// echo prints the command's name and arguments, and the pairs given, as one JSON value.
func (a *app) echo(c *cli.Context, pairs ...any) error {
	got := map[string]any{"command": c.Command.Name, "args": c.Args().Slice(), "config": c.String("config")}
	for i := 0; i < len(pairs); i += 2 {
		got[pairs[i].(string)] = pairs[i+1]
	}
	return writeJSON(a.env.Stdout, got)
}
