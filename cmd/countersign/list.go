package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
)

func (a *app) listCommand() *cli.Command {
	return &cli.Command{
		Name:     "list",
		Usage:    "list the drafts that wait for a decision, the most urgent first; or others",
		Category: categoryOperators,
		Description: manual{
			text: `AGE is since the filing. Whatever the system has to say about a draft stands below, in full.

Filters combine. --status is open, drafted, approved, rejected, sent, closed or all; without it
the list is what waits for a decision.`,
			examples: []string{
				"countersign list",
				"countersign list --priority P0",
				"countersign list --platform smtp --agent billing --json",
				"countersign list --status approved --older-than 1h",
				"countersign list --status all --counterparty acme",
			},
		}.String(),
		Flags: append(waitingFlags(),
			&cli.StringFlag{Name: "status", Usage: "instead of what waits, those in `STATUS`", Action: notEmpty("status")}),
		Action: a.list,
	}
}

func (a *app) list(c *cli.Context) error {
	filter, err := a.listFilter(c)
	if err != nil {
		return err
	}
	return a.withDesk(c, func(d *desk.Desk) error {
		waiting, err := d.Ledger.Waiting(c.Context, filter)
		if err != nil {
			return err
		}
		return a.out.show(notNil(waiting), func(p *page) {
			if filter.Status == "" {
				showWaiting(p, waiting, a.env.Now())
			} else {
				showListed(p, waiting, a.env.Now())
			}
		})
	})
}

func (a *app) listFilter(c *cli.Context) (ledger.ListFilter, error) {
	f := ledger.ListFilter{Priority: ledger.Priority(c.String("priority")), Platform: c.String("platform"), Agent: c.String("agent"),
		Counterparty: c.String("counterparty"), Status: ledger.Status(c.String("status"))}
	switch f.Priority {
	case "", "P0", "P1", "P2", "P3":
	default:
		return f, usagef("--priority is P0, P1, P2 or P3, not %q", string(f.Priority))
	}
	switch f.Status {
	case "", ledger.StatusOpen, ledger.StatusDrafted, ledger.StatusApproved, ledger.StatusRejected, ledger.StatusSent, ledger.StatusClosed, ledger.AnyStatus:
	default:
		return f, usagef("--status is open, drafted, approved, rejected, sent, closed or all, not %q", string(f.Status))
	}
	age, err := notNegative(c, "older-than")
	if age > 0 {
		f.FiledBefore = a.env.Now().Add(-age)
	}
	return f, err
}

// notNil is list as JSON shows it: an empty array, not null.
func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func showWaiting(p *page, waiting []ledger.Listed, now time.Time) {
	if len(waiting) == 0 {
		p.line("nothing waits for a decision")
		return
	}
	var rows [][]string
	for _, o := range waiting {
		rows = append(rows, listRow(o, now, string(o.Priority)))
	}
	p.table(listColumns("PRI"), rows)
	showMarked(p, waiting)
	p.blank()
	p.line("%s show ID has the whole text; approve or reject it with its epoch", programName)
}

// showListed is the list of what doesn't only wait.
func showListed(p *page, listed []ledger.Listed, now time.Time) {
	if len(listed) == 0 {
		p.line("nothing matches")
		return
	}
	var rows [][]string
	for _, o := range listed {
		rows = append(rows, listRow(o, now, string(o.Priority), string(o.Status)))
	}
	p.table(listColumns("PRI", "STATUS"), rows)
	showMarked(p, listed)
}

// listColumns are the columns of a list, the given ones in their middle.
func listColumns(titles ...string) []column {
	list := []column{{title: "ID"}, {title: "EPOCH"}}
	for _, title := range titles {
		list = append(list, column{title: title})
	}
	return append(list, column{title: "AGE"},
		column{title: "COUNTERPARTY", cut: true}, column{title: "DESTINATION", cut: true}, column{title: "SUMMARY", cut: true})
}

func listRow(o ledger.Listed, now time.Time, middle ...string) []string {
	filed := "-" // a signal that nothing was filed for
	if o.FiledTS > 0 {
		filed = age(now, o.FiledTS)
	}
	row := append([]string{fmt.Sprint(o.ObligationID), fmt.Sprint(o.Epoch)}, middle...)
	return append(row, filed, o.Counterparty, destination(o.Platform, o.Channel), o.Summary)
}

func showMarked(p *page, listed []ledger.Listed) {
	var marked []field
	for _, o := range listed {
		if len(o.Markers) > 0 {
			marked = append(marked, field{fmt.Sprintf("%d", o.ObligationID), strings.Join(o.Markers, " ")})
		}
	}
	if len(marked) > 0 {
		p.blank()
		p.line("Marked:")
		p.fieldsIn(markerInk, marked...)
	}
}

// destination is where a message goes, for a table.
func destination(platform, channel string) string { return platform + " " + channel }

// age is how long ago something was, in its largest unit. A clock that ran back makes nothing younger than new.
func age(now time.Time, seconds int64) string {
	const day = 24 * time.Hour
	switch d := max(now.Sub(time.Unix(seconds, 0)), 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%dh", d/time.Hour)
	default:
		return fmt.Sprintf("%dd", d/day)
	}
}
