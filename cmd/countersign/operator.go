package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"countersign/config"
	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
)

func (a *app) operatorCommand() *cli.Command {
	return &cli.Command{
		Name:     "operator",
		Usage:    "say who may decide: edit the operators of the configuration",
		Category: categoryUpkeep,
		Description: manual{
			text: `Edits the configuration's text in place: comments and all other settings stay as they are. Whoever
may write that file says who decides; no operator's token is asked for.`,
			examples: []string{"countersign operator list", "countersign operator add anna", "countersign operator remove anna"},
		}.String(),
		Subcommands: []*cli.Command{a.operatorListCommand(), a.operatorAddCommand(), a.operatorRotateCommand(), a.operatorRemoveCommand()},
	}
}

func (a *app) operatorListCommand() *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "list the operators, and where each can decide",
		Description: manual{
			text:     "Tokens and their hashes are not shown.",
			examples: []string{"countersign operator list", "countersign operator list --json"},
		}.String(),
		Action: a.operatorList,
	}
}

func (a *app) operatorAddCommand() *cli.Command {
	return &cli.Command{
		Name:      "add",
		Usage:     "add an operator, with a new token in a file that only you can read",
		ArgsUsage: "ID",
		Description: manual{
			text: `The token goes to --out, else into a new file beside the configuration, and is shown nowhere; the
configuration has its hash alone. Hand it to the operator, and keep it away from agents: whoever
has it can approve. With --slack-team and --slack-user, the ids and not the names, they decide in
the internal channel too.`,
			examples: []string{
				"countersign operator add anna",
				"countersign operator add anna --slack-team T0EXAMPLE --slack-user U0EXAMPLE1",
				"countersign operator add anna --out /home/anna/countersign.token",
			},
			exits: []exitNote{{exitUsage, "the ID is taken, or the configuration can't be edited; nothing was changed"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "slack-team", Usage: "`ID` of the operator's Slack workspace", Action: notEmpty("slack-team")},
			&cli.StringFlag{Name: "slack-user", Usage: "`ID` of the operator in that workspace", Action: notEmpty("slack-user")},
			outFlag(),
		},
		Action: a.operatorAdd,
	}
}

func (a *app) operatorRotateCommand() *cli.Command {
	return &cli.Command{
		Name:      "rotate",
		Usage:     "give an operator a new token; the old one is worth nothing then",
		ArgsUsage: "ID",
		Description: manual{
			text: `The new token goes into a new file, as with add. What they decided stays decided: to take that back
too, remove them.`,
			examples: []string{"countersign operator rotate anna", "countersign operator rotate anna --out new.token"},
			exits:    []exitNote{{exitUsage, "there is no such operator, or the configuration can't be edited; nothing was changed"}},
		}.String(),
		Flags:  []cli.Flag{outFlag()},
		Action: a.operatorRotate,
	}
}

func (a *app) operatorRemoveCommand() *cli.Command {
	return &cli.Command{
		Name:      "remove",
		Usage:     "remove an operator, and void their approvals that were not dispatched",
		ArgsUsage: "ID",
		Description: manual{
			text: `First they can't decide any more; then each approval of theirs that was not dispatched is taken
out of circulation, and its draft waits for somebody else's decision. Given again, for one who is
not in the configuration any more, it does the second alone. Their token file is not deleted.`,
			examples: []string{"countersign operator remove anna", "countersign operator remove anna --reason 'left the company' --json"},
			exits:    []exitNote{{exitUsage, "there is no such operator, and nothing that they approved"}},
		}.String(),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "reason", Usage: "`TEXT` that the agents and the audit log get", Value: removedReason, Action: notEmpty("reason")},
		},
		Action: a.operatorRemove,
	}
}

const removedReason = "no operator any more"

func outFlag() cli.Flag {
	return &cli.StringFlag{Name: "out", Usage: "write the token to the new `FILE`", Action: notEmpty("out")}
}

// listedOperator is an operator without what could let anybody in.
type listedOperator struct {
	ID        string `json:"id"`
	Terminal  bool   `json:"terminal"` // has a token
	SlackTeam string `json:"slack_team"`
	SlackUser string `json:"slack_user"`
}

func (a *app) operatorList(c *cli.Context) error {
	cfg, err := a.configuration(c)
	if err != nil {
		return err
	}
	list := []listedOperator{}
	for _, e := range cfg.Operators {
		list = append(list, listedOperator{e.ID, e.TokenSHA256 != "", e.SlackTeam, e.SlackUser})
	}
	return a.out.show(list, func(p *page) {
		if len(list) == 0 {
			p.line("nobody can decide: the configuration has no operator")
			return
		}
		var rows [][]string
		for _, o := range list {
			rows = append(rows, []string{o.ID, yesNo(o.Terminal), orNone(strings.TrimSpace(o.SlackTeam + " " + o.SlackUser))})
		}
		p.table([]column{{title: "OPERATOR"}, {title: "TERMINAL"}, {title: "SLACK"}}, rows)
	})
}

// editedOperator is an operator who was added, or got another token.
type editedOperator struct {
	ID            string `json:"id"`
	TokenFile     string `json:"token_file"`
	Configuration string `json:"configuration"`
}

func (a *app) operatorAdd(c *cli.Context) error {
	return a.editOperator(c, func(path, tokenSHA256 string) error {
		return config.AddOperator(c.Context, path, operator.Entry{
			ID: c.Args().First(), SlackTeam: c.String("slack-team"), SlackUser: c.String("slack-user"), TokenSHA256: tokenSHA256,
		})
	})
}

func (a *app) operatorRotate(c *cli.Context) error {
	return a.editOperator(c, func(path, tokenSHA256 string) error {
		return config.SetToken(c.Context, path, c.Args().First(), tokenSHA256)
	})
}

// editOperator makes a token, and then has its hash put into the configuration. A token that no configuration knows is worth nothing,
// so that a crash between the two leaves a file and no door.
func (a *app) editOperator(c *cli.Context, edit func(path, tokenSHA256 string) error) error {
	cfg, err := a.configuration(c)
	if err != nil {
		return err
	}
	token, hash, err := operator.NewToken()
	if err != nil {
		return err
	}
	made := editedOperator{ID: c.Args().First(), Configuration: cfg.Path}
	if made.TokenFile, err = writeToken(c.String("out"), filepath.Dir(cfg.Path), made.ID, token); err != nil {
		return err
	}
	if err := edit(cfg.Path, hash); err != nil {
		return errors.Join(err, os.Remove(made.TokenFile))
	}
	return a.out.show(made, func(p *page) {
		p.line("Operator %s decides with the token in %s.", made.ID, made.TokenFile)
		p.line("Keep it away from agents: whoever has it can approve.")
	})
}

// writeToken writes a token into a new file: out, or the first free one of ID.token, ID-2.token, … in dir. An older file may be that of
// an operator who was removed, and is never taken up.
func writeToken(out, dir, id, token string) (string, error) {
	if out == "" && !operatorName.MatchString(id) {
		return "", usagef("%q is no name for a file: only letters, digits and . _ @ - are", id).hinted("say with --out FILE where the token goes")
	}
	path, err := filepath.Abs(out)
	if err != nil {
		return "", err
	}
	for n := 1; ; n++ {
		if out == "" {
			path = filepath.Join(dir, id+".token")
			if n > 1 {
				path = filepath.Join(dir, fmt.Sprintf("%s-%d.token", id, n))
			}
		}
		err := writeNew(path, []byte(token+"\n"))
		if err == nil {
			return path, nil
		}
		if out != "" || !errors.Is(err, fs.ErrExist) {
			return "", cannotMake("the token file", err)
		}
	}
}

// removedOperator is what is left of an operator.
type removedOperator struct {
	ID      string           `json:"id"`
	Removed bool             `json:"removed"` // from the configuration, by this call
	Voided  []ledger.Decided `json:"voided"`  // approvals of theirs, as their obligations stand now
}

func (a *app) operatorRemove(c *cli.Context) error {
	cfg, err := a.configuration(c)
	if err != nil {
		return err
	}
	out := removedOperator{ID: c.Args().First(), Removed: true}
	err = config.RemoveOperator(c.Context, cfg.Path, out.ID)
	unknown, isUnknown := errors.AsType[*config.UnknownOperatorError](err)
	if err != nil && !isUnknown {
		return err
	}
	out.Removed = !isUnknown
	err = a.withOpen(c, cfg, func(d *desk.Desk) (err error) {
		out.Voided, err = d.Ledger.VoidApprovalsOf(c.Context, out.ID, c.String("reason"))
		return err
	})
	switch {
	case err != nil:
		return notVoided(out, err)
	case !out.Removed && len(out.Voided) == 0:
		return unknown
	}
	return a.out.show(out, func(p *page) { showRemoved(p, out, len(cfg.Operators)) })
}

// notVoided says how far it got: what they approved could still go out.
func notVoided(out removedOperator, err error) error {
	if !out.Removed {
		return err
	}
	known := explain(err)
	err = fmt.Errorf("%s is removed, but what they approved is not taken back yet: %w", out.ID, err)
	return (&exitError{code: known.code, kind: known.kind, err: err}).hinted("give the same command again: it goes on with that")
}

func showRemoved(p *page, out removedOperator, before int) {
	if out.Removed {
		p.line("%s is no operator any more", out.ID)
	} else {
		p.line("%s was no operator of the configuration any more", out.ID)
	}
	var rows [][]string
	for _, v := range out.Voided {
		rows = append(rows, []string{fmt.Sprint(v.ObligationID), fmt.Sprint(v.DecisionID), string(v.Status), fmt.Sprint(v.Epoch)})
	}
	if len(rows) == 0 {
		p.line("nothing that they approved waits to be sent")
	}
	p.section("Approvals that are taken back:", []column{{title: "ID"}, {title: "DECISION"}, {title: "STATUS"}, {title: "EPOCH"}}, rows)
	if out.Removed && before == 1 {
		p.blank()
		p.line("Nobody can decide now; %s operator add makes an operator.", programName)
	}
}
