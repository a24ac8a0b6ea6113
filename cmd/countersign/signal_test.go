package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/sweep"
)

// slowMail is a mail server on loopback that keeps its answer to the first message until it is released.
type slowMail struct {
	address string
	taken   chan struct{} // closed once the first message is there as a whole
	release chan struct{}
	mails   atomic.Int64
}

func newSlowMail(t *testing.T) *slowMail {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	m := &slowMail{address: listener.Addr().String(), taken: make(chan struct{}), release: make(chan struct{})}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go m.serve(textproto.NewConn(conn))
		}
	}()
	return m
}

func (m *slowMail) serve(c *textproto.Conn) {
	defer c.Close()
	for answer := "220 localhost"; c.PrintfLine("%s", answer) == nil; {
		line, err := c.ReadLine()
		if err != nil {
			return
		}
		answer = "250 ok"
		if strings.EqualFold(line, "DATA") {
			if c.PrintfLine("354 go on") != nil {
				return
			}
			if _, err := c.ReadDotBytes(); err != nil {
				return
			}
			if m.mails.Add(1) == 1 {
				close(m.taken)
				<-m.release
			}
		}
	}
}

// mailDesk is a desk with two approved messages for one reader on that server.
func mailDesk(t *testing.T, m *slowMail) *testDesk {
	t.Helper()
	d := newTestDesk(t)
	d.now = time.Now() // a process of its own has no other
	section := fmt.Sprintf("\n[transports.smtp]\naddress = %q\ntls = \"none\"\nfrom = \"Desk <desk@desk.invalid>\"\n", m.address)
	if err := os.WriteFile(d.path("countersign.toml"), []byte(d.read("countersign.toml")+section), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, party := range []string{"one", "two"} {
		e := d.env("file", "--json", "--counterparty", party, "--platform", "smtp", "--channel", "reader@reader.invalid", "--subject", "Hello")
		e.Stdin = strings.NewReader("Hello")
		got := runProgram(t, e)
		var filed ledger.Filed
		if err := json.Unmarshal([]byte(got.stdout), &filed); err != nil {
			t.Fatalf("%+v, %v", got, err)
		}
		d.ok("approve", fmt.Sprint(filed.ObligationID), "--epoch", fmt.Sprint(filed.Epoch))
	}
	return d
}

// startPass starts a pass as a process, with SIGHUP as a shell leaves it, or ignored.
func (d *testDesk) startPass(ignored bool) (*exec.Cmd, *bytes.Buffer) {
	d.t.Helper()
	line := "exec countersign deliver --json"
	if ignored {
		line = "trap '' HUP; " + line
	}
	cmd := exec.Command("sh", "-c", line)
	var stdout bytes.Buffer
	cmd.Env = append(os.Environ(), "GORACE="+noExitSleep, "COUNTERSIGN_CONFIG="+d.path("countersign.toml"))
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	// What is handled here is set to its default in a new process, also where this one runs under nohup.
	handled := make(chan os.Signal, 1)
	signal.Notify(handled, syscall.SIGHUP)
	defer signal.Stop(handled)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, &stdout
}

// A terminal that was closed used to kill a pass in the middle of a dispatch, which then was unknown for ever.
func TestAClosedTerminalLetsAPassFinishTheMessageInHand(t *testing.T) {
	for name, ignored := range map[string]bool{"closed": false, "under nohup": true} {
		t.Run(name, func(t *testing.T) {
			m := newSlowMail(t)
			d := mailDesk(t, m)
			cmd, stdout := d.startPass(ignored)
			<-m.taken
			for range 2 { // one comes from the shell, another from the kernel
				if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
					t.Fatal(err)
				}
			}
			close(m.release)
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			var report sweep.Report
			if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
				t.Fatalf("%s: %v", stdout, err)
			}
			if report.Interrupted == ignored || len(report.Delivered) != int(m.mails.Load()) || ignored && len(report.Delivered) != 2 {
				t.Errorf("%d mails, %+v", m.mails.Load(), report)
			}
			d.ok("deliver")
			if got := m.mails.Load(); got != 2 {
				t.Errorf("%d mails in all", got)
			}
			var shown ledger.Shown
			d.json(&shown, "show", "1")
			if shown.Status != ledger.StatusSent {
				t.Errorf("the message in hand is %s", shown.Status)
			}
		})
	}
}

// stopped runs the program after a signal has come.
func (d *testDesk) stopped(args ...string) outcome {
	d.t.Helper()
	ctx, cancel := context.WithCancel(d.t.Context())
	cancel()
	e := d.env(args...)
	code := run(ctx, e)
	return outcome{code, stdoutOf(e), e.Stderr.(*bytes.Buffer).String()}
}

// A signal before the first message used to be a failure (1) with a programmer's words, and one after it none.
func TestASignalBeforeAPassIsNoFailure(t *testing.T) {
	d := newTestDesk(t)
	filed := d.file("Hello", "a")
	d.ok("approve", "1", "--epoch", fmt.Sprint(filed.Epoch))
	for _, pass := range []string{"deliver", "recover"} {
		if got := d.stopped(pass); got != (outcome{}) {
			t.Errorf("%s: %+v", pass, got)
		}
		got := d.stopped(pass, "--verbose")
		if got.code != 0 || got.stderr != "" || !strings.Contains(got.stdout, "; ended early, what is left waits for the next pass\n") {
			t.Errorf("%s --verbose: %+v", pass, got)
		}
		got = d.stopped(pass, "--json")
		var report map[string]any
		if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || got.code != 0 || report["interrupted"] != true {
			t.Errorf("%s --json: %+v, %v", pass, got, err)
		}
		for key, list := range report {
			if list == nil {
				t.Errorf("%s --json: %s is null", pass, key)
			}
		}
	}
	if got := d.stopped("list"); got.code != exitFailure || got.stderr != "countersign: a signal ended it before it was done\n" {
		t.Errorf("list: %+v", got)
	}
	// Nothing was lost.
	var report sweep.Report
	d.json(&report, "deliver")
	if len(report.Delivered) != 1 {
		t.Errorf("%+v", report)
	}
}

// What is wrong besides the signal is told all the same.
func TestASignalHidesNoOtherError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := fmt.Errorf("%w: %w", leftUnknown(1), context.Canceled)
	if got := bySignal(ctx, err); got != err {
		t.Errorf("got %v", got)
	}
}
