// Package demo answers one question: does the main job really hold, on this machine?
//
// It runs the whole loop on a throw-away ledger, with a real SMTP server on a loopback port and a real worker process that is killed,
// tells it in a page of text, and fails when any step of it did not hold.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"countersign/config"
	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
	"countersign/plaintext"
)

// Options say where the demo happens and how a worker process is started.
type Options struct {
	Out io.Writer
	// Keep is a directory, new or empty, that everything is left in; "" is a temporary one that is removed.
	Keep string
	// Program is the path of this program: the worker that is killed is a real `countersign deliver`.
	Program string
}

// Run tells the story, and returns an error as soon as a step does not hold.
func Run(ctx context.Context, opts Options) (err error) {
	dir, cleanUp, err := workDir(opts.Keep)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanUp()) }()
	s := &story{out: opts.Out, dir: dir, program: opts.Program}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, scene := range []func(context.Context) error{
		s.setUp, s.fileAndSteer, s.refuseStale, s.approveAndDeliver, s.killWorker, s.reconcile, s.audit,
	} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	s.say("")
	s.say("Every step held: 2 approvals, 2 mails on the wire, none of them twice, every decision named.")
	if opts.Keep != "" {
		s.say("Kept in %s: the ledger, its configuration and token, and the mails as they arrived.", dir)
		s.say("Look at it:  countersign --config %s show %d", filepath.Join(dir, "countersign.toml"), s.first.ObligationID)
	}
	return nil
}

func workDir(keep string) (string, func() error, error) {
	if keep == "" {
		dir, err := os.MkdirTemp("", "countersign-demo-")
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	dir, err := filepath.Abs(keep)
	if err != nil {
		return "", nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: name a new directory with --keep", dir)
	}
	return dir, func() error { return nil }, err
}

// story is what the scenes hand on to each other.
type story struct {
	out          io.Writer
	dir, program string

	mail   *mailServer
	desk   *desk.Desk
	anna   operator.Operator
	first  ledger.Filed // the newest filing of the first obligation
	stale  ledger.Filed // its first filing
	second ledger.Decided
	key    string // names the delivery whose answer was lost
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

func (s *story) title(format string, args ...any) {
	s.say("")
	s.say("== "+format, args...)
}

// quote shows a text as it is, behind a bar.
func (s *story) quote(text string) {
	s.say("   | %s", strings.ReplaceAll(plaintext.Visible(text), "\n", "\n   | "))
}

func (s *story) close() error {
	var errs []error
	if s.desk != nil {
		errs = append(errs, s.desk.Close())
	}
	if s.mail != nil {
		errs = append(errs, s.mail.Close())
	}
	return errors.Join(errs...)
}

// must turns a promise that did not hold into the demo's failure.
func must(held bool, format string, args ...any) error {
	if held {
		return nil
	}
	return fmt.Errorf("the demo found a promise broken: "+format, args...)
}

// setUp makes a ledger, an operator and a mail server.
func (s *story) setUp(ctx context.Context) error {
	mails := filepath.Join(s.dir, "mails")
	if err := os.Mkdir(mails, 0o700); err != nil {
		return err
	}
	var err error
	if s.mail, err = startServer(mails); err != nil {
		return err
	}
	token, hash, err := operator.NewToken()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "anna.token"), []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	text := fmt.Sprintf(configuration, hash, s.mail.address)
	if err := os.WriteFile(s.configPath(), []byte(text), 0o600); err != nil {
		return err
	}
	c, err := config.Load(s.configPath())
	if err != nil {
		return err
	}
	if err := ledger.Create(ctx, c.Ledger.Path); err != nil {
		return err
	}
	if s.desk, err = desk.Open(ctx, c, desk.Options{}); err != nil {
		return err
	}
	s.say("Countersign demo: a throw-away ledger, a real SMTP server on %s, an operator named anna.", s.mail.address)
	s.anna, err = s.desk.Operator(ctx, token)
	return err
}

func (s *story) configPath() string { return filepath.Join(s.dir, "countersign.toml") }

const configuration = `# Made by the demo. The mail server of it is gone when the demo ends.
[ledger]
path = "countersign.db"

[[operators]]
id = "anna"
token_sha256 = "%s"

[transports.smtp]
address = "%s"
tls = "none"
from = "Desk <desk@demo.invalid>"
timeout = "10s"
`
