package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/sweep"
)

func (a *app) deliverCommand() *cli.Command {
	return &cli.Command{
		Name:     "deliver",
		Usage:    "make one pass: send what is approved, each message once",
		Category: categoryDelivery,
		Description: manual{
			text: `For cron: passes may overlap, and a pass that delivered everything says nothing; with --verbose it
says one line, and at a terminal a line for each message. What dead passes left behind is cleaned up
first. SIGTERM and SIGHUP let it finish the message in hand, and that is no failure.

A message whose send was refused or is ambiguous is held as unknown: it is never sent again,
claims lists it, and an operator resolves it. What could not be prepared has used up no
approval; a later pass tries again, once the destination has rested for a while. --now doesn't
wait for that: what fails again then rests longer.`,
			examples: []string{
				"countersign deliver",
				"countersign deliver --verbose --limit 10",
				"countersign deliver --platform smtp --max-runtime 50s --json",
				"countersign deliver --dry-run",
				"countersign deliver --now --platform smtp",
			},
			exits: []exitNote{
				{exitUnknown, "something was refused or is ambiguous; wins over 75"},
				{exitTryLater, "nothing was delivered and something could not be prepared, or the ledger is busy"},
			},
		}.String(),
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: "limit", Usage: "begin the dispatch of `N` messages at most"},
			platformFlag("only messages for `PLATFORM`"),
			&cli.DurationFlag{Name: "max-runtime", Usage: "begin nothing new after `TIME`"},
			&cli.BoolFlag{Name: "now", Usage: "try also what rests after a failure; --dry-run tells what that is"},
			&cli.BoolFlag{Name: "dry-run", Usage: "list what would be tried and what rests, and touch nothing"},
		},
		Action: a.deliver,
	}
}

func (a *app) deliver(c *cli.Context) error {
	limit, err := positive(c, "limit")
	if err != nil {
		return err
	}
	runtime, err := notNegative(c, "max-runtime")
	if err != nil {
		return err
	}
	opts := sweep.Options{Limit: int(limit), Platform: c.String("platform"), MaxRuntime: runtime,
		NoBackoff: c.Bool("now"), DryRun: c.Bool("dry-run")}
	return a.pass(c, func(d *desk.Desk) error {
		done := a.watch(&opts)
		report, err := d.Deliver(c.Context, opts)
		done()
		return errors.Join(a.tellDelivered(c.Bool("verbose"), opts.DryRun, report), outcomeOf(report, err))
	}, func() error {
		return a.tellDelivered(c.Bool("verbose"), opts.DryRun, sweep.Stopped())
	})
}

// pass is withDesk for one pass. Where a signal comes before the pass has begun, stopped says so: nothing was done and nothing is
// lost, which is no more a failure than a signal between two messages.
func (a *app) pass(c *cli.Context, work func(*desk.Desk) error, stopped func() error) error {
	begun := false
	err := a.withDesk(c, func(d *desk.Desk) error {
		begun = true
		return work(d)
	})
	if !begun && c.Context.Err() != nil && errors.Is(err, context.Canceled) {
		return stopped()
	}
	return err
}

// outcomeOf is how a pass ends. What is left unknown comes first: it needs a person, whatever else went wrong.
func outcomeOf(r sweep.Report, err error) error {
	if held := len(r.Refused) + len(r.Ambiguous); held > 0 {
		return errors.Join(leftUnknown(held), err)
	}
	if err == nil && len(r.NotPrepared) > 0 && len(r.Delivered) == 0 {
		return exitf(exitTryLater, kindNotPrepared, "nothing was delivered: %s could not be prepared", count(len(r.NotPrepared), "message")).
			hinted("no approval was used up; a later pass tries again")
	}
	return err
}

func leftUnknown(n int) error {
	return exitf(exitUnknown, kindUnknown, "this pass left %s unknown", count(n, "delivery")).
		hinted("%s claims lists what is held; find out whether it arrived, then reconcile or settle it", programName)
}

// watch shows on a terminal, in one line that goes away at the end, how far the pass is.
func (a *app) watch(opts *sweep.Options) (done func()) {
	if !a.env.StderrTTY || a.out.json {
		return func() {}
	}
	const clear = "\r\x1b[K"
	counts := map[sweep.Kind]int{}
	opts.Progress = func(k sweep.Kind, _ sweep.Item) {
		counts[k]++
		fmt.Fprintf(a.env.Stderr, clear+"delivered %d, refused %d, ambiguous %d, not prepared %d, skipped %d …",
			counts[sweep.Delivered], counts[sweep.Refused], counts[sweep.Ambiguous], counts[sweep.NotPrepared], counts[sweep.Skipped])
	}
	return func() { fmt.Fprint(a.env.Stderr, clear) }
}

// tellDelivered says nothing of a pass that did its work, unless somebody watches: each message at a terminal, one line in all with -v.
func (a *app) tellDelivered(verbose, dryRun bool, r sweep.Report) error {
	watched := a.env.Width > 0
	return a.out.show(r, func(p *page) {
		if watched {
			showItems(p, "delivered", r.Delivered)
		}
		if watched || dryRun {
			showItems(p, "skipped", r.Skipped)
		}
		showItems(p, "refused", r.Refused)
		showItems(p, "ambiguous", r.Ambiguous)
		showItems(p, "not prepared", r.NotPrepared)
		showItems(p, "would try", r.Planned)
		if watched || verbose || dryRun {
			p.line("%s", summary(r, dryRun))
		}
	})
}

func showItems(p *page, what string, items []sweep.Item) {
	for _, item := range items {
		line := fmt.Sprintf("%s: obligation %d, decision %d", what, item.ObligationID, item.DecisionID)
		if item.ObligationID == 0 { // a receipt that nobody can assign
			line = what
		}
		if item.Platform != "" {
			line += ", " + destination(item.Platform, item.Channel)
		}
		if item.Coordinate != "" {
			line += ", as " + item.Coordinate
		}
		if item.Altered {
			line += ", altered by the provider"
		}
		if item.Error != "" {
			line += ": " + item.Error
		}
		p.line("%s", line)
	}
}

func summary(r sweep.Report, dryRun bool) string {
	line := count(len(r.Planned), "message") + " would be tried"
	if !dryRun {
		line = tally(r)
	}
	if r.Interrupted {
		line += "; ended early, what is left waits for the next pass"
	}
	return line
}

func tally(r sweep.Report) string {
	return fmt.Sprintf("delivered %d, refused %d, ambiguous %d, not prepared %d, skipped %d",
		len(r.Delivered), len(r.Refused), len(r.Ambiguous), len(r.NotPrepared), len(r.Skipped))
}
