package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"countersign/ledger"
	"countersign/schema"
)

func (a *app) dbCommand() *cli.Command {
	return &cli.Command{
		Name:     "db",
		Usage:    "look after the ledger's file",
		Category: categoryUpkeep,
		Description: manual{
			text:     "Without --ledger it is the configured one.",
			examples: []string{"countersign db check", "countersign db upgrade"},
		}.String(),
		Subcommands: []*cli.Command{a.dbUpgradeCommand(), a.dbCheckCommand()},
	}
}

func (a *app) dbUpgradeCommand() *cli.Command {
	return &cli.Command{
		Name:  "upgrade",
		Usage: "bring an older ledger, or another implementation's, to this version",
		Description: manual{
			text: `A backup is made beside it first. A ledger that can't be taken over without a guess is left
untouched, and the rows in the way are named. A ledger that has lost guards gets them back,
if its tables are whole and its rows fit together. Stop all passes before.`,
			examples: []string{"countersign db upgrade", "countersign db upgrade --ledger old.db --json"},
			exits:    []exitNote{{exitFailure, "rows are in the way; nothing was changed"}},
		}.String(),
		Flags:  []cli.Flag{ledgerFlag()},
		Action: a.dbUpgrade,
	}
}

func (a *app) dbCheckCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "read the whole ledger and tell whether it is sound",
		Description: manual{
			text:     "Pages, indexes, references, guards, hashes, and whether rows fit together.",
			examples: []string{"countersign db check", "countersign db check --ledger copy.db --json"},
			exits:    []exitNote{{exitFailure, "it is not sound"}},
		}.String(),
		Flags:  []cli.Flag{ledgerFlag()},
		Action: a.dbCheck,
	}
}

func ledgerFlag() cli.Flag {
	return &cli.StringFlag{Name: "ledger", Usage: "use the ledger at `PATH`, whatever is configured", Action: notEmpty("ledger")}
}

// ledgerOptions finds the ledger's file, and how to open it.
func (a *app) ledgerOptions(c *cli.Context) (path string, opts ledger.Options, err error) {
	opts.Now = a.env.Now
	if path := c.String("ledger"); path != "" {
		return path, opts, nil
	}
	cfg, err := a.configuration(c)
	if err != nil {
		return "", opts, err
	}
	opts.BusyTimeout = cfg.Ledger.BusyTimeout
	return cfg.Ledger.Path, opts, nil
}

// upgraded is what db upgrade did.
type upgraded struct {
	Path string `json:"path"`
	ledger.Upgraded
}

func (a *app) dbUpgrade(c *cli.Context) error {
	path, opts, err := a.ledgerOptions(c)
	if err != nil {
		return err
	}
	done, err := ledger.Upgrade(c.Context, path, opts)
	if err != nil {
		return err
	}
	return a.out.show(upgraded{path, done}, func(p *page) { showUpgraded(p, path, done) })
}

func showUpgraded(p *page, path string, done ledger.Upgraded) {
	if !done.Changed {
		p.line("%s is up to date", path)
		return
	}
	if len(done.Restored) > 0 {
		p.line("%s: guards restored", path)
		for _, object := range done.Restored {
			p.line("  %s", object)
		}
		p.line("somebody took them off: find out who, and what they wrote meanwhile")
	} else {
		p.line("%s was upgraded", path)
	}
	p.line("what it was before is in %s", done.Backup)
	if len(done.Manual) > 0 {
		p.line("approved elsewhere, and never claimed here: %s", numbers(done.Manual))
		p.line("  revoke them and approve what then waits, or close them")
	}
	if len(done.Held) > 0 {
		p.line("in flight elsewhere: %s", numbers(done.Held))
		p.line("  %s recover makes what was being dispatched unknown; %s claims lists them", programName, programName)
	}
}

func numbers(ids []int64) string {
	var words []string
	for _, id := range ids {
		words = append(words, fmt.Sprint(id))
	}
	return strings.Join(words, ", ")
}

func (a *app) dbCheck(c *cli.Context) error {
	path, opts, err := a.ledgerOptions(c)
	if err != nil {
		return err
	}
	found, err := checkLedger(c.Context, path, opts)
	if err != nil {
		return err
	}
	if err := a.out.show(found, func(p *page) { showChecked(p, path, found) }); err != nil {
		return err
	}
	if !found.OK {
		return exitf(exitFailure, kindCheckFailed, "%s is not sound: %s", path, count(len(found.Problems), "problem")).
			hinted("stop all passes; db upgrade puts lost guards back, and whatever else is wrong is for a backup to mend")
	}
	return nil
}

// checkLedger tells of a ledger that isn't even opened, since its guards are not all there, like of any other.
func checkLedger(ctx context.Context, path string, opts ledger.Options) (ledger.Checked, error) {
	l, err := ledger.Open(ctx, path, opts)
	if guard, ok := errors.AsType[*schema.GuardError](err); ok {
		return ledger.Checked{Version: schema.Version, Problems: []string{guard.Error()}}, nil
	}
	if err != nil {
		return ledger.Checked{}, err
	}
	found, err := l.Check(ctx)
	return found, errors.Join(err, l.Close())
}

func showChecked(p *page, path string, found ledger.Checked) {
	if found.OK {
		p.line("%s is sound (ledger %s, schema version %d)", path, found.LedgerID, found.Version)
		return
	}
	for _, problem := range found.Problems {
		p.line("%s", problem)
	}
}
