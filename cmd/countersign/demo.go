package main

import (
	"os"

	"github.com/urfave/cli/v2"

	"countersign/demo"
)

func (a *app) demoCommand() *cli.Command {
	return &cli.Command{
		Name:     "demo",
		Usage:    "run the whole loop on a throw-away ledger with a real SMTP server on loopback",
		Category: categoryStart,
		Description: manual{
			text: `Needs no configuration and no network. A draft is filed, steered and filed anew; the old approval
is refused; the new text is approved, delivered, and compared byte for byte with what arrived; a
worker process is killed in mid-dispatch, and its delivery reconciled with evidence.`,
			examples: []string{
				"countersign demo",
				"countersign demo --keep /tmp/countersign-demo",
			},
			exits: []exitNote{{0, "every step really held"}, {exitFailure, "a step did not hold; the last line says which"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "keep", Usage: "leave ledger, configuration, token and mails in the new or empty `DIR`", Action: notEmpty("keep")},
		},
		Action: a.demo,
	}
}

// demo tells its story on stdout, or on stderr where stdout is for one JSON value.
func (a *app) demo(c *cli.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	story := a.env.Stdout
	if a.out.json {
		story = a.env.Stderr
	}
	if err := demo.Run(c.Context, demo.Options{Out: story, Keep: c.String("keep"), Program: program}); err != nil || !a.out.json {
		return err
	}
	return writeJSON(a.env.Stdout, struct {
		OK   bool   `json:"ok"`
		Kept string `json:"kept,omitempty"`
	}{true, c.String("keep")})
}
