package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// platforms are all there are. A filter for another one would find nothing, for ever, and say nothing.
var platforms = []string{"local", "smtp", "slack", "telegram"}

func platformFlag(usage string) cli.Flag {
	return &cli.StringFlag{Name: "platform", Usage: usage, Action: func(_ *cli.Context, value string) error {
		if slices.Contains(platforms, value) {
			return nil
		}
		err := usagef("--platform needs %s, not %q", strings.Join(platforms, ", "), value)
		if near := nearest(value, platforms); near != "" {
			return err.hinted("did you mean %s?", near)
		}
		return err
	}}
}
