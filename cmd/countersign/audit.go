package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
)

func (a *app) auditCommand() *cli.Command {
	return &cli.Command{
		Name:     "audit",
		Usage:    "ask who did what, when",
		Category: categoryAudit,
		Description: manual{
			text:     "Every filing, decision, step of a delivery, receipt and refusal has a row, stamped by the system.",
			examples: []string{"countersign audit log --id 431"},
		}.String(),
		Subcommands: []*cli.Command{a.auditLogCommand()},
	}
}

func (a *app) auditLogCommand() *cli.Command {
	return &cli.Command{
		Name:  "log",
		Usage: "list the rows of the audit log, oldest first",
		Description: manual{
			text: `Filters combine. Without --limit the log is shown from its beginning. On a terminal the details
are cut to its width; --json has them whole, with times in Unix microseconds (at_us).

A time is RFC 3339, a date (its midnight here), or Unix seconds.`,
			examples: []string{
				"countersign audit log --id 431",
				"countersign audit log --counterparty acme --since 2026-11-01 --until 2026-12-01",
				"countersign audit log --actor operator-a --limit 20 --json",
			},
		}.String(),
		Flags: []cli.Flag{
			&cli.Int64Flag{Name: "id", Usage: "only rows of the obligation `ID`"},
			&cli.StringFlag{Name: "actor", Usage: "only what `NAME` did", Action: notEmpty("actor")},
			&cli.StringFlag{Name: "counterparty", Usage: "only rows of obligations to `NAME`", Action: notEmpty("counterparty")},
			&cli.StringFlag{Name: "since", Usage: "only from `TIME` on"},
			&cli.StringFlag{Name: "until", Usage: "only until `TIME`"},
			&cli.Int64Flag{Name: "limit", Usage: "only the newest `N` rows"},
		},
		Action: a.auditLog,
	}
}

func (a *app) auditLog(c *cli.Context) error {
	filter, err := a.auditFilter(c)
	if err != nil {
		return err
	}
	return a.withDesk(c, func(d *desk.Desk) error {
		entries, err := d.Ledger.Audit(c.Context, filter)
		if err != nil {
			return err
		}
		return a.out.show(notNil(entries), func(p *page) {
			if len(entries) == 0 {
				p.line("no row matches")
				return
			}
			p.table(auditColumns(true), auditRows(p, entries, true))
		})
	})
}

func (a *app) auditFilter(c *cli.Context) (f ledger.AuditFilter, err error) {
	f.Actor, f.Counterparty = c.String("actor"), c.String("counterparty")
	if f.ObligationID, err = positive(c, "id"); err != nil {
		return f, err
	}
	limit, err := positive(c, "limit")
	if err != nil {
		return f, err
	}
	f.Limit = int(limit)
	if f.Since, err = a.timeOf(c, "since"); err != nil {
		return f, err
	}
	f.Until, err = a.timeOf(c, "until")
	return f, err
}

func showAudit(p *page, entries []ledger.AuditEntry) {
	p.section("Audit:", auditColumns(false), auditRows(p, entries, false))
}

func auditColumns(withID bool) []column {
	list := []column{{title: "TIME"}, {title: "EVENT"}, {title: "ACTOR", cut: true}, {title: "DETAIL", cut: true}}
	if withID {
		return append([]column{{title: "ROW"}, {title: "ID"}}, list...)
	}
	return list
}

func auditRows(p *page, entries []ledger.AuditEntry, withID bool) [][]string {
	var rows [][]string
	for _, e := range entries {
		row := []string{p.timeMicro(e.AtUS), e.Event, e.Actor, detailText(e.Detail)}
		if withID {
			id := "-"
			if e.ObligationID != nil {
				id = fmt.Sprint(*e.ObligationID)
			}
			row = append([]string{fmt.Sprint(e.ID), id}, row...)
		}
		rows = append(rows, row)
	}
	return rows
}

// detailText is a row's detail for people: what somebody said comes first, hashes are short, and what is empty is left out.
func detailText(raw json.RawMessage) string {
	var detail map[string]any
	if err := json.Unmarshal(raw, &detail); err != nil {
		return string(raw) // of another implementation, or damaged
	}
	empty := []string{"", "null", "false", "[]", "{}"}
	said := []string{"reason", "note", "evidence", "detail", "coordinate"}
	var words []string
	for _, key := range append(said, slices.Sorted(maps.Keys(detail))...) {
		value, ok := detail[key]
		delete(detail, key)
		if text := detailValue(value); ok && !slices.Contains(empty, text) {
			words = append(words, key+"="+text)
		}
	}
	return strings.Join(words, " ")
}

func detailValue(value any) string {
	const hash, shown = 64, 8
	switch v := value.(type) {
	case string:
		if len(v) == hash && !strings.Contains(v, " ") {
			return v[:shown]
		}
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
}

// timeMicro is a Unix time in microseconds, to the millisecond.
func (p *page) timeMicro(us int64) string {
	return time.UnixMicro(us).In(p.zone).Format("2006-01-02T15:04:05.000Z07:00")
}
