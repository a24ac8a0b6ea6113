package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"countersign/config"
	"countersign/ledger"
	"countersign/sweep"
)

// mtaProgram is a directory in which the program itself runs.
type mtaProgram struct {
	m        *mta
	dir      string
	password string
	said     bytes.Buffer
}

// initialised is one with a configuration as init makes it, and the server added.
func (m *mta) initialised(t *testing.T, a mtaAccess) *mtaProgram {
	t.Helper()
	p := &mtaProgram{m: m, dir: t.TempDir(), password: a.password}
	p.run(t, 0, "", "init", "--operator", "anna")
	file, err := os.OpenFile(filepath.Join(p.dir, "countersign.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(m.section(a))
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs the program, which has to end with this exit code, and returns its standard output.
func (p *mtaProgram) run(t *testing.T, code int, stdin string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(t), args...)
	command.Dir = p.dir
	command.Env = append(os.Environ(), "TEST_MTA_PASSWORD="+p.password, config.EnvVar+"=countersign.toml")
	command.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	_ = command.Run() // the exit code is looked at
	p.said.Write(stdout.Bytes())
	p.said.Write(stderr.Bytes())
	if got := command.ProcessState.ExitCode(); got != code {
		t.Fatalf("%q: exit %d, want %d\n%s%s", args, got, code, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

func (p *mtaProgram) json(t *testing.T, into any, code int, stdin string, args ...string) {
	t.Helper()
	out := p.run(t, code, stdin, append(args, "--json", "--verbose")...)
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%q: %v\n%s", args, err, out)
	}
}

func (p *mtaProgram) approve(t *testing.T, channel, subject, text string) (obligation string) {
	t.Helper()
	var filed ledger.Filed
	p.json(t, &filed, 0, text, "file", "--counterparty", "acme", "--platform", "smtp", "--channel", channel, "--subject", subject)
	obligation = fmt.Sprint(filed.ObligationID)
	p.run(t, 0, "", "approve", obligation, "--epoch", fmt.Sprint(filed.Epoch), "--token-file", "anna.token")
	return obligation
}

// show reads the obligation, and makes sure that nothing is in flight or held.
func (p *mtaProgram) show(t *testing.T, obligation string) (o ledger.Shown) {
	t.Helper()
	var claims []ledger.HeldClaim
	p.json(t, &claims, 0, "", "claims")
	if len(claims) > 0 {
		t.Errorf("claims has %+v", claims)
	}
	p.json(t, &o, 0, "", "show", obligation)
	return o
}

func (p *mtaProgram) keepsSecret(t *testing.T, secrets ...string) {
	t.Helper()
	if form := p.m.leak(p.said.Bytes(), secrets...); form != "" {
		t.Errorf("the program printed a secret as %q", form)
	}
	p.m.keptIn(t, p.dir, secrets...)
}

// testProgram goes the way of the README, from init to the mailbox, and into what can go wrong there.
func (m *mta) testProgram(t *testing.T) {
	t.Run("delivered", func(t *testing.T) {
		p := m.initialised(t, m.access())
		id := p.approve(t, m.recipient, "=?utf-8?q?Offer?= für Zoë", "..dots\n.\nFrom here on  \n\ttabs, é, 漢, 🙂")
		if out := p.run(t, 0, "", "deliver", "--verbose"); !bytes.Contains(out, []byte("delivered 1, refused 0, ambiguous 0, not prepared 0, skipped 0\n")) {
			t.Errorf("got\n%s", out)
		}
		if out := p.run(t, 0, "", "deliver"); len(out) > 0 {
			t.Errorf("a pass that has nothing to do says\n%s", out)
		}
		m.check(t, []letter{m.letterOf(t, p.show(t, id))})
		p.keepsSecret(t, m.password)
	})
	for _, refusal := range m.refusals(t) {
		t.Run(refusal.name, func(t *testing.T) {
			p := m.initialised(t, refusal.access)
			id := p.approve(t, m.recipient+refusal.also, "not to be sent", "not to be sent")
			var r sweep.Report
			p.json(t, &r, 75, "", "deliver")
			if len(r.NotPrepared) != 1 || !strings.Contains(r.NotPrepared[0].Error, refusal.want) {
				t.Errorf("%+v", r)
			}
			unclaimed(t, p.show(t, id))
			p.run(t, 0, "", "audit", "log")
			p.keepsSecret(t, m.password, refusal.access.password)
		})
	}
}
