package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"countersign/config"
)

func (a *app) configCommand() *cli.Command {
	return &cli.Command{
		Name:     "config",
		Usage:    "look after the configuration",
		Category: categoryUpkeep,
		Description: manual{
			text:     "countersign init makes one, with all keys explained.",
			examples: []string{"countersign config check"},
		}.String(),
		Subcommands: []*cli.Command{a.configCheckCommand()},
	}
}

func (a *app) configCheckCommand() *cli.Command {
	return &cli.Command{
		Name:  "check",
		Usage: "tell what is wrong with the configuration, and what is unwise",
		Description: manual{
			text:     "All problems are told at once, each with its line. Secrets are not read, and nothing is dialled.",
			examples: []string{"countersign config check", "countersign --config desk.toml config check --json"},
			exits:    []exitNote{{exitUsage, "it can't be used as it is"}},
		}.String(),
		Action: a.configCheck,
	}
}

// checkedConfiguration is what config check found.
type checkedConfiguration struct {
	OK       bool            `json:"ok"`
	Path     string          `json:"path"`
	Problems []configProblem `json:"problems"`
	Warnings []string        `json:"warnings"`
}

type configProblem struct {
	Line  int    `json:"line"` // 0 where it isn't known
	Key   string `json:"key"`
	Error string `json:"error"`
}

func (a *app) configCheck(c *cli.Context) error {
	path, err := config.Find(c.String("config"), a.env.Getenv)
	if err != nil {
		return err
	}
	cfg, err := loadConfiguration(path)
	invalid, isInvalid := errors.AsType[*config.InvalidError](err)
	if err != nil && !isInvalid {
		return err
	}
	found := checkedConfiguration{OK: err == nil, Path: path, Problems: []configProblem{}, Warnings: []string{}}
	if isInvalid {
		found.Path = invalid.Path
		for _, p := range invalid.Problems {
			found.Problems = append(found.Problems, configProblem{p.Line, p.Key, p.Text})
		}
	} else {
		found.Path, found.Warnings = cfg.Path, notNil(cfg.Warnings())
	}
	return a.tellChecked(found, invalid)
}

func (a *app) tellChecked(found checkedConfiguration, invalid *config.InvalidError) error {
	err := a.out.show(found, func(p *page) {
		if invalid != nil {
			for _, problem := range invalid.Problems {
				p.line("%s", problemLine(invalid.Path, problem))
			}
			return
		}
		p.line("%s is sound", found.Path)
		for _, warning := range found.Warnings {
			p.line("warning: %s", warning)
		}
	})
	if err == nil && !found.OK {
		err = exitf(exitUsage, kindConfiguration, "the configuration has %s", count(len(found.Problems), "problem"))
	}
	return err
}
