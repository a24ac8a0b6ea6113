package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"countersign/config"
	"countersign/desk"
	"countersign/operator"
)

// configuration finds and reads the configuration. What is unwise in it is told by `config check`, and here only when
// asked: a cron line would mail it each time.
func (a *app) configuration(c *cli.Context) (*config.Config, error) {
	path, err := config.Find(c.String("config"), a.env.Getenv)
	if err != nil {
		return nil, err
	}
	cfg, err := loadConfiguration(path)
	if err != nil {
		return nil, err
	}
	for _, warning := range cfg.Warnings() {
		a.log.Info("configuration", "warning", warning)
	}
	return cfg, nil
}

// loadConfiguration reads the file at path. One that can't be read is a mistake of the caller's, like one that is wrong.
func loadConfiguration(path string) (*config.Config, error) {
	cfg, err := config.Load(path)
	var invalid *config.InvalidError
	if err == nil || errors.As(err, &invalid) {
		return cfg, err
	}
	return nil, &exitError{code: exitUsage, kind: kindConfiguration, err: err}
}

// withDesk opens what the configuration names, for the time of work.
func (a *app) withDesk(c *cli.Context, work func(d *desk.Desk) error) error {
	cfg, err := a.configuration(c)
	if err != nil {
		return err
	}
	return a.withOpen(c, cfg, work)
}

func (a *app) withOpen(c *cli.Context, cfg *config.Config, work func(d *desk.Desk) error) error {
	d, err := desk.Open(c.Context, cfg, desk.Options{Now: a.env.Now})
	if err != nil {
		return err
	}
	err = work(d)
	if closing := d.Close(); closing != nil {
		err = errors.Join(err, fmt.Errorf("close the ledger: %w", closing))
	}
	return err
}

// asOperator is withDesk for what only an operator may do. The token is asked for before the ledger is opened: nobody
// waits for a person who looks for a token.
func (a *app) asOperator(c *cli.Context, work func(d *desk.Desk, who operator.Operator) error) error {
	cfg, err := a.configuration(c)
	if err != nil {
		return err
	}
	token, err := a.operatorToken(c)
	if err != nil {
		return err
	}
	return a.withOpen(c, cfg, func(d *desk.Desk) error {
		who, err := d.Operator(c.Context, token)
		if err != nil {
			return err
		}
		return work(d, who)
	})
}
