package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
	"countersign/ledger"
)

const (
	agentEnv     = "COUNTERSIGN_AGENT"
	defaultAgent = "cli"

	// maxText is the most that is read of a text, in bytes. It lies far above every limit that can be configured, so that
	// the ledger counts the characters and names its own limit.
	maxText = 16 << 20
)

func (a *app) fileCommand() *cli.Command {
	return &cli.Command{
		Name:     "file",
		Usage:    "file a draft; it waits for an operator, and nothing is sent",
		Category: categoryAgents,
		Description: manual{
			text: `The text is taken exactly: only control characters, outer blank lines and the final newline
go. Another filing for the same counterparty and channel replaces a draft that still waits,
and gets a new epoch: whatever was decided on the old one is void.

With an idempotency key the same filing can be repeated: the answer is the first one, with
the status as it is now.`,
			examples: []string{
				"countersign file --counterparty acme --platform smtp --channel anna@example.com < text",
				"echo Hello | countersign file --counterparty acme --platform local --channel anna --priority P1",
				"countersign file --counterparty acme --platform local --channel anna --text-file mail.txt --json",
			},
			exits: []exitNote{
				{exitRefused, "a field was refused, or the transport can't send it as it is; nothing was stored"},
				{exitConflict, "the idempotency key was used for something else"},
				{exitHeld, "a delivery to the same counterparty and channel is in flight or unknown"},
			},
		}.String(),
		Flags:  fileFlags(),
		Action: a.file,
	}
}

func fileFlags() []cli.Flag {
	required := func(name, usage string) cli.Flag {
		return &cli.StringFlag{Name: name, Usage: usage, Required: true}
	}
	return []cli.Flag{
		required("counterparty", "it is for `NAME`"),
		required("platform", "send it by `PLATFORM`: smtp, slack, telegram, local"),
		required("channel", "send it to `ADDRESS` on that platform"),
		&cli.StringFlag{Name: "thread", Usage: "answer in the thread `ID`"},
		&cli.StringFlag{Name: "user", Usage: "`NAME` asked the agent for it, and can't approve it"},
		&cli.StringFlag{Name: "subject", Usage: "the subject is `TEXT`"},
		&cli.StringFlag{Name: "priority", Usage: "`P` is P0 (most urgent) to P3", Value: string(ledger.DefaultPriority)},
		&cli.StringFlag{Name: "summary", Usage: "`TEXT` is its line in the operator's list"},
		&cli.StringFlag{Name: "context", Usage: "`TEXT` tells the operator why"},
		&cli.Int64Flag{Name: "signal", Usage: "it answers the inbound item `ID`"},
		&cli.StringFlag{Name: "auto-send-after", Usage: "approve it by itself after `TIME`, where the policy allows that"},
		agentFlag(),
		&cli.StringFlag{Name: "idempotency-key", Usage: "a repetition with the same `KEY` changes nothing", Action: notEmpty("idempotency-key")},
		&cli.BoolFlag{Name: "force-despite-signed-contract", Usage: "file it although the baseline shows a signed contract"},
		textFlag(),
	}
}

// agentFlag is the flag that agent reads.
func agentFlag() cli.Flag {
	return &cli.StringFlag{
		Name:   "agent",
		Usage:  fmt.Sprintf("the agent is `NAME` (else that of $%s, else %q)", agentEnv, defaultAgent),
		Action: notEmpty("agent"),
	}
}

// agent is who files. It is a name, and proves nothing: whatever it files, an operator has to approve.
func (a *app) agent(c *cli.Context) string {
	if name := c.String("agent"); name != "" {
		return name
	}
	if name := a.env.Getenv(agentEnv); name != "" {
		return name
	}
	return defaultAgent
}

func (a *app) file(c *cli.Context) error {
	filing, err := a.filing(c)
	if err != nil {
		return err
	}
	return a.withDesk(c, func(d *desk.Desk) error {
		filed, err := d.File(c.Context, filing)
		if err != nil {
			return err
		}
		return a.out.show(filed, func(p *page) { showFiled(p, filed) })
	})
}

func (a *app) filing(c *cli.Context) (ledger.Filing, error) {
	signal, err := positive(c, "signal")
	if err != nil {
		return ledger.Filing{}, err
	}
	deadline, err := a.timeOf(c, "auto-send-after")
	if err != nil {
		return ledger.Filing{}, err
	}
	text, err := a.readText(c, maxText)
	if err != nil {
		return ledger.Filing{}, err
	}
	f := ledger.Filing{
		Counterparty: c.String("counterparty"), Platform: c.String("platform"), Channel: c.String("channel"),
		Thread: c.String("thread"), User: c.String("user"), Subject: c.String("subject"), Text: text,
		Priority: ledger.Priority(c.String("priority")), Summary: c.String("summary"), Context: c.String("context"),
		Signal: signal, Agent: a.agent(c), IdempotencyKey: c.String("idempotency-key"),
		ForceDespiteSignedContract: c.Bool("force-despite-signed-contract"),
	}
	if !deadline.IsZero() {
		f.AutoSendAfter = deadline.Unix()
	}
	return f, nil
}

// positive is an optional number that is at least 1 where it is given; 0 where it isn't.
func positive(c *cli.Context, name string) (int64, error) {
	n := c.Int64(name)
	if c.IsSet(name) && n < 1 {
		return 0, usagef("--%s needs a positive whole number, not %d", name, n)
	}
	return n, nil
}

// timeOf reads a moment: Unix seconds, RFC 3339, or a date, which is its midnight in the reader's zone. It is the zero time
// where the flag isn't given.
func (a *app) timeOf(c *cli.Context, name string) (time.Time, error) {
	value := c.String(name)
	if !c.IsSet(name) {
		return time.Time{}, nil
	}
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil && seconds > 0 {
		return time.Unix(seconds, 0), nil
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return at, nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, value, a.env.Now().Location()); err == nil {
		return at, nil
	}
	return time.Time{}, usagef("--%s needs a time such as 2026-11-30T09:00:00Z, 2026-11-30 or Unix seconds, not %q", name, value)
}

func showFiled(p *page, f ledger.Filed) {
	verb := "filed"
	if f.Refiled {
		verb = "filed again; the draft before it is superseded"
	}
	if f.Replayed {
		verb = "filed already, with this idempotency key; nothing was changed, and this is what was answered then, but the status"
	}
	p.line("obligation %d is %s", f.ObligationID, verb)
	p.fields(
		field{"epoch", fmt.Sprint(f.Epoch)},
		field{"status", string(f.Status)},
		field{"priority", string(f.Priority)},
		field{"text sha256", f.DraftSHA256},
		field{"envelope", f.EnvelopeSHA256},
		field{"marks", orNone(strings.Join(f.Markers, " "))},
		field{"notice", f.Notice.Routed + ": " + f.Notice.Reason},
	)
	if f.Cleaned {
		p.line("cleaning changed what came in; %s show %d has it as it is stored", programName, f.ObligationID)
	}
	for _, warning := range f.Warnings {
		p.line("warning: %s", warning)
	}
}

// orNone stands for a value that isn't there.
func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
