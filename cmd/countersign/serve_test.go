package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"countersign/ledger"
	"countersign/tests/fakeslack"
)

// served is `countersign serve` as a process, with a desk in a fake Slack and one operator there.
type served struct {
	*testDesk
	slack  *fakeslack.Server
	anna   fakeslack.User
	cmd    *exec.Cmd
	stderr *bufio.Reader
}

const deskChannel = "C0INTERNAL"

func serve(t *testing.T, flags ...string) *served {
	t.Helper()
	s := &served{testDesk: newTestDesk(t), slack: fakeslack.New(t)}
	s.slack.AddChannel(fakeslack.Channel{ID: deskChannel, Name: "desk", IsMember: true, ContextTeamID: fakeslack.TeamID})
	s.anna = s.slack.AddUser(fakeslack.User{ID: "U0ANNA", TeamID: fakeslack.TeamID, Name: "anna"})
	s.ok("operator", "add", "anna", "--slack-team", fakeslack.TeamID, "--slack-user", s.anna.ID)
	s.append(`
[internal]
platform = "slack"
team = "` + fakeslack.TeamID + `"
channel = "` + deskChannel + `"

[transports.slack]
token = "env:BOT"
app_token = "env:APP"
signing_secret = "env:SECRET"
api_url = "` + s.slack.URL() + `"
`)
	s.variables["BOT"], s.variables["APP"], s.variables["SECRET"] = fakeslack.BotToken, fakeslack.AppToken, fakeslack.Secret
	s.now = time.Now() // the process has no other clock
	s.cmd = exec.Command("countersign", append([]string{"serve", "--notify", "10ms", "--deliver", "10ms"}, flags...)...)
	s.cmd.Env = append(os.Environ(), "GORACE="+noExitSleep)
	for name, value := range s.variables {
		s.cmd.Env = append(s.cmd.Env, name+"="+value)
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stderr = bufio.NewReader(stderr)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	return s
}

func (s *served) append(text string) {
	s.t.Helper()
	f, err := os.OpenFile(s.path("countersign.toml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// until waits, without a clock, for something in the channel.
func (s *served) until(what string, condition func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	if err := s.slack.Until(ctx, condition); err != nil {
		s.t.Fatalf("never came true: %s (%v)", what, err)
	}
}

// card is the first message in the channel that has this button.
func (s *served) card(action string) (fakeslack.Message, bool) {
	for _, m := range s.slack.Messages(deskChannel) {
		for _, b := range fakeslack.Buttons(m) {
			if b.ActionID == action {
				return m, true
			}
		}
	}
	return fakeslack.Message{}, false
}

// address is where the process says that it listens.
func (s *served) address() string {
	s.t.Helper()
	line, err := s.stderr.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "listening on http://") {
		s.t.Fatalf("%q, %v", line, err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

// end asks the process to end, as a service manager does, and returns what it said.
func (s *served) end() string {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	rest, err := io.ReadAll(s.stderr)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		s.t.Errorf("serve ended with %v: %s", err, rest)
	}
	return string(rest)
}

func get(t *testing.T, url string, into any) int {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if into != nil {
		if err := json.NewDecoder(response.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	return response.StatusCode
}

// A draft that is filed while serve runs is approved by a click, and sent by its own pass; the card tells the receipt.
func TestServeBySocket(t *testing.T) {
	s := serve(t, "--health", "127.0.0.1:0")
	base := s.address()
	if err := s.slack.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	filed := s.file("The pumps come in week 12.", "acme")
	s.until("the card can be approved", func() bool { _, ok := s.card("approve"); return ok })
	s.click("approve")
	s.until("the marked draft asks once more", func() bool { return len(s.slack.Views()) > 0 })
	if _, err := s.slack.Send(t.Context(), s.slack.Submit(s.slack.Views()[0], nil, s.anna)); err != nil {
		t.Fatal(err)
	}
	s.until("the card tells the receipt", func() bool {
		for _, m := range s.slack.Messages(deskChannel) {
			if strings.Contains(strings.Join(fakeslack.DecodedTexts(m), "\n"), "approved by anna · receipt 1 · draft sha256 ") {
				return true
			}
		}
		return false
	})
	var ready struct {
		Ready     bool       `json:"ready"`
		LastHeard *time.Time `json:"last_heard"`
	}
	if code := get(t, base+"/readyz", &ready); code != http.StatusOK || !ready.Ready || ready.LastHeard == nil {
		t.Errorf("readyz %d %+v", code, ready)
	}
	if code := get(t, base+"/healthz", nil); code != http.StatusOK {
		t.Errorf("healthz %d", code)
	}
	said := s.end()
	for _, secret := range []string{fakeslack.BotToken, fakeslack.AppToken, fakeslack.Secret} {
		if strings.Contains(said, secret) {
			t.Errorf("a secret was logged: %s", said)
		}
	}
	d, err := s.ledger().Show(t.Context(), filed.ObligationID)
	if err != nil || d.Status != ledger.StatusSent || d.Decisions[0].Operator != "anna" {
		t.Errorf("%+v, %v", d, err)
	}
	if sent := s.read("outbox/messages.jsonl"); strings.Count(sent, "\n") != 1 || !strings.Contains(sent, "The pumps come in week 12.") {
		t.Errorf("sent %q", sent)
	}
}

func (s *served) click(action string) {
	s.t.Helper()
	m, ok := s.card(action)
	if !ok {
		s.t.Fatalf("no card has the button %s", action)
	}
	if _, err := s.slack.Send(s.t.Context(), s.slack.Click(m, action, s.anna)); err != nil {
		s.t.Fatal(err)
	}
}

// The same by HTTP: what Slack did not sign does nothing.
func TestServeByHTTP(t *testing.T) {
	s := serve(t, "--listen", "127.0.0.1:0")
	base := s.address()
	filed := s.file("The pumps come in week 12.", "acme")
	s.until("the card can be undone or decided", func() bool { _, ok := s.card("reject"); return ok })
	m, _ := s.card("reject")
	click := s.slack.Click(m, "reject", s.anna)
	unsigned := s.slack.SignedRequest(base+"/slack/interactions", click.Payload, time.Now())
	unsigned.Header.Set("X-Slack-Signature", "v0="+strings.Repeat("0", 64))
	if code := s.post(unsigned); code != http.StatusUnauthorized {
		t.Errorf("a false signature: %d", code)
	}
	if code := s.post(s.slack.SignedRequest(base+"/slack/interactions", click.Payload, time.Now())); code != http.StatusOK {
		t.Errorf("a true signature: %d", code)
	}
	s.until("the reason is asked for", func() bool { return len(s.slack.Views()) == 1 })
	submit := s.slack.Submit(s.slack.Views()[0], map[string]string{"words": "week 13, they said"}, s.anna)
	if code := s.post(s.slack.SignedRequest(base+"/slack/interactions", submit.Payload, time.Now())); code != http.StatusOK {
		t.Errorf("the submission: %d", code)
	}
	s.until("the card has no buttons any more", func() bool { _, waits := s.card("reject"); return !waits })
	s.end()
	d, err := s.ledger().Show(t.Context(), filed.ObligationID)
	if err != nil || d.Status != ledger.StatusRejected || d.Decisions[0].Reason != "week 13, they said" {
		t.Errorf("%+v, %v", d, err)
	}
}

func (s *served) post(r *http.Request) int {
	s.t.Helper()
	r.RequestURI = ""
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
