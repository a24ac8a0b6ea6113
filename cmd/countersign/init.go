package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/urfave/cli/v2"

	"countersign/config"
	"countersign/ledger"
	"countersign/operator"
)

const firstOperator = "operator-a"

func (a *app) initCommand() *cli.Command {
	return &cli.Command{
		Name:     "init",
		Usage:    "make a configuration, a first operator and a ledger, as far as they are missing",
		Category: categoryStart,
		Description: manual{
			text: `Nothing that exists is overwritten or changed: a second run tells what is there. Where the
configuration exists, its operators are left alone.

The configuration is made at --config, else $COUNTERSIGN_CONFIG, else ./countersign.toml. The
operator's token goes beside it into a file that only you can read; the configuration holds
its hash alone. Hand the token to the operator, and keep it away from agents: whoever has it
can approve.`,
			examples: []string{
				"countersign init",
				"countersign --config /etc/countersign/desk.toml init --operator anna",
			},
			exits: []exitNote{{exitUsage, "something else stands in the place of what init would make"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "operator", Usage: "`NAME` of the first operator", Value: firstOperator},
		},
		Action: a.init,
	}
}

// initialised is what init made, and what it found.
type initialised struct {
	Configuration madeFile     `json:"configuration"`
	Operator      madeOperator `json:"operator"`
	Ledger        madeFile     `json:"ledger"`
}

type madeFile struct {
	Path    string `json:"path"`
	Created bool   `json:"created"`
}

// madeOperator is empty where the configuration was there before.
type madeOperator struct {
	ID        string `json:"id"`
	TokenFile string `json:"token_file"`
	Created   bool   `json:"created"`
}

// operatorName is what can be part of a file's name everywhere.
var operatorName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$`)

func (a *app) init(c *cli.Context) error {
	name := c.String("operator")
	if !operatorName.MatchString(name) {
		return usagef("--operator is a name of letters, digits and . _ @ -, not %q", name)
	}
	path, err := filepath.Abs(a.newConfiguration(c))
	if err != nil {
		return err
	}
	made := initialised{Configuration: madeFile{Path: path}}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		made.Configuration.Created = true
		if made.Operator, err = makeConfiguration(path, name); err != nil {
			return err
		}
	}
	cfg, err := loadConfiguration(path)
	if err != nil {
		return err
	}
	if made.Ledger, err = makeLedger(c.Context, cfg, ledger.Options{Now: a.env.Now, BusyTimeout: cfg.Ledger.BusyTimeout}); err != nil {
		return err
	}
	return a.out.show(made, func(p *page) { showInitialised(p, made, name) })
}

// newConfiguration is where init makes a configuration: a named place, or this folder.
func (a *app) newConfiguration(c *cli.Context) string {
	for _, named := range []string{c.String("config"), a.env.Getenv(config.EnvVar)} {
		if named != "" {
			return named
		}
	}
	return "countersign.toml"
}

// makeConfiguration makes the operator's token, and then the configuration that names its hash. After a crash between the
// two the next run goes on with the token that it finds: nobody else can have made it, or read it.
func makeConfiguration(path, name string) (madeOperator, error) {
	made := madeOperator{ID: name, TokenFile: filepath.Join(filepath.Dir(path), name+".token")}
	token, _, err := operator.NewToken()
	if err != nil {
		return made, err
	}
	switch err := writeNew(made.TokenFile, []byte(token+"\n")); {
	case err == nil:
		made.Created = true
	case errors.Is(err, fs.ErrExist):
		if token, err = foundToken(made.TokenFile); err != nil {
			return made, err
		}
	default:
		return made, cannotMake("the token file", err)
	}
	err = writeNew(path, config.Template(name, operator.HashToken(token)))
	if err != nil && made.Created {
		err = errors.Join(err, os.Remove(made.TokenFile))
	}
	if err != nil {
		return made, cannotMake("the configuration", err)
	}
	return made, nil
}

// tokenForm is what operator.NewToken makes. The hash of anything weaker could be guessed.
var tokenForm = regexp.MustCompile(`^cs_op_[A-Za-z0-9_-]{43}$`)

// foundToken reads a token that an earlier run left behind. What could have come from elsewhere is not taken.
func foundToken(path string) (string, error) {
	move := func(err error) error {
		return (&exitError{code: exitUsage, kind: kindConfiguration, err: err}).
			hinted("move %s away, or choose another --operator", path)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return "", move(err)
	}
	if !info.Mode().IsRegular() {
		return "", move(fmt.Errorf("%s is there and no regular file", path))
	}
	token, err := readTokenFile(path)
	if err != nil {
		return "", move(err)
	}
	if !tokenForm.MatchString(token) {
		return "", move(fmt.Errorf("%s is there and holds no token of this program", path))
	}
	return token, nil
}

func cannotMake(what string, err error) error {
	return (&exitError{code: exitUsage, kind: kindConfiguration, err: fmt.Errorf("make %s: %w", what, err)}).
		hinted("the folder must be there, and writable for you; nothing that exists is overwritten")
}

// writeNew makes a file, mode 0600, that holds data or isn't there: it is written under another name first, and the link
// fails where anything has the name, a dangling link included.
func writeNew(path string, data []byte) error {
	dir := filepath.Dir(path)
	draft, err := os.CreateTemp(dir, ".countersign-new-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(data)
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// makeLedger makes the configured ledger. One that is there is opened, to tell whether it can be used.
func makeLedger(ctx context.Context, cfg *config.Config, opts ledger.Options) (madeFile, error) {
	made := madeFile{Path: cfg.Ledger.Path, Created: true}
	err := ledger.Create(ctx, made.Path)
	if !errors.Is(err, fs.ErrExist) {
		return made, err
	}
	made.Created = false
	l, err := ledger.Open(ctx, made.Path, opts)
	if err != nil {
		return made, err
	}
	return made, l.Close()
}

func showInitialised(p *page, made initialised, asked string) {
	state := func(created bool) string {
		if created {
			return "made"
		}
		return "was there"
	}
	p.fields(
		field{"configuration", made.Configuration.Path + " (" + state(made.Configuration.Created) + ")"},
		field{"ledger", made.Ledger.Path + " (" + state(made.Ledger.Created) + ")"},
	)
	p.blank()
	if !made.Configuration.Created {
		p.line("The operators are those of the configuration; %s was not added.", asked)
		p.line("%s config check tells whether it is sound.", programName)
		return
	}
	p.line("Operator %s decides with the token in %s.", made.Operator.ID, made.Operator.TokenFile)
	p.line("Keep it away from agents: whoever has it can approve.")
	p.blank()
	p.line("Next:")
	p.line("  echo Hello | %s file --counterparty acme --platform local --channel anna", programName)
	p.line("  %s list", programName)
	p.line("  %s approve ID --epoch E --token-file %s", programName, made.Operator.TokenFile)
	p.line("  %s deliver", programName)
}
