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
		Usage:    "list the drafts that wait for a decision, the most urgent first",
		Category: categoryOperators,
		Description: manual{
			text: "AGE is since the filing. Whatever the system has to say about a draft stands below, in full.",
			examples: []string{
				"countersign list",
				"countersign list --priority P0",
				"countersign list --platform smtp --agent billing --json",
			},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "priority", Usage: "only those of priority `P`", Action: notEmpty("priority")},
			&cli.StringFlag{Name: "platform", Usage: "only those for `PLATFORM`", Action: notEmpty("platform")},
			&cli.StringFlag{Name: "agent", Usage: "only those that the agent `NAME` filed", Action: notEmpty("agent")},
		},
		Action: a.list,
	}
}

func (a *app) list(c *cli.Context) error {
	filter := ledger.ListFilter{Priority: ledger.Priority(c.String("priority")), Platform: c.String("platform"), Agent: c.String("agent")}
	switch filter.Priority {
	case "", "P0", "P1", "P2", "P3":
	default:
		return usagef("--priority is P0, P1, P2 or P3, not %q", string(filter.Priority))
	}
	return a.withDesk(c, func(d *desk.Desk) error {
		waiting, err := d.Ledger.Waiting(c.Context, filter)
		if err != nil {
			return err
		}
		return a.out.show(notNil(waiting), func(p *page) { showWaiting(p, waiting, a.env.Now()) })
	})
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
	var marked []field
	for _, o := range waiting {
		rows = append(rows, []string{fmt.Sprint(o.ObligationID), fmt.Sprint(o.Epoch), string(o.Priority), age(now, o.FiledTS),
			o.Counterparty, destination(o.Platform, o.Channel), o.Summary})
		if len(o.Markers) > 0 {
			marked = append(marked, field{fmt.Sprintf("%d", o.ObligationID), strings.Join(o.Markers, " ")})
		}
	}
	p.table([]column{{title: "ID"}, {title: "EPOCH"}, {title: "PRI"}, {title: "AGE"},
		{title: "COUNTERPARTY", cut: true}, {title: "DESTINATION", cut: true}, {title: "SUMMARY", cut: true}}, rows)
	if len(marked) > 0 {
		p.blank()
		p.line("Marked:")
		p.fields(marked...)
	}
	p.blank()
	p.line("%s show ID has the whole text; approve or reject it with its epoch", programName)
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
