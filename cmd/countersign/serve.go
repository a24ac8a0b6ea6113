package main

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"countersign/desk"
)

func (a *app) serveCommand() *cli.Command {
	return &cli.Command{
		Name:     "serve",
		Usage:    "run the operators' surface in Slack, and the passes if asked",
		Category: categoryDelivery,
		Description: manual{
			text: `Takes clicks in the internal channel by Socket Mode, which needs transports.slack.app_token and no
address of its own; or by HTTP, with --listen, where Slack posts to /slack/interactions and signs
with transports.slack.signing_secret. Cards and notices go out as by notify, within seconds.

/healthz says that the process runs. /readyz says whether Slack can reach it and when it was last
heard. Operators decide at the terminal as well, and all the same when Slack is down.

SIGTERM ends it: what was clicked, and the message in hand, is finished first.`,
			examples: []string{
				"countersign serve",
				"countersign serve --deliver 30s --sweep 60s --health 127.0.0.1:8081",
				"countersign serve --listen 127.0.0.1:8080",
			},
			exits: []exitNote{
				{exitUsage, "the configuration lacks the internal channel or a secret, or Slack refuses a token"},
			},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "listen", Usage: "take Slack's requests by HTTP on `HOST:PORT`, instead of Socket Mode", Action: notEmpty("listen")},
			&cli.StringFlag{Name: "health", Usage: "in Socket Mode, serve /healthz and /readyz on `HOST:PORT`", Action: notEmpty("health")},
			&cli.DurationFlag{Name: "notify", Usage: "look at the outbox each `TIME`", Value: desk.DefaultNotify},
			&cli.DurationFlag{Name: "deliver", Usage: "make a deliver pass each `TIME`"},
			&cli.DurationFlag{Name: "sweep", Usage: "each `TIME`, recover what dead workers left, and tell the agents"},
		},
		Action: a.serve,
	}
}

func (a *app) serve(c *cli.Context) error {
	opts := desk.ServeOptions{Listen: c.String("listen"), Health: c.String("health"), Log: a.log,
		Listening: func(address string) { fmt.Fprintf(a.env.Stderr, "listening on http://%s\n", address) }}
	if opts.Listen != "" && opts.Health != "" {
		return usagef("--listen serves /healthz and /readyz too; leave --health out")
	}
	for _, interval := range []struct {
		name string
		into *time.Duration
	}{{"notify", &opts.Notify}, {"deliver", &opts.Deliver}, {"sweep", &opts.Sweep}} {
		value, err := notNegative(c, interval.name)
		if err != nil {
			return err
		}
		*interval.into = value
	}
	return a.withDesk(c, func(d *desk.Desk) error { return d.Serve(c.Context, opts) })
}
