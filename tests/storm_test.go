package tests

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"countersign/config"
	"countersign/desk"
	"countersign/ledger"
	"countersign/operator"
)

// storm is a desk with three providers, and the messages that are approved on it.
type storm struct {
	t        *testing.T
	dir      string
	desk     *desk.Desk
	anna     operator.Operator
	arrivals *arrivals
	messages []approvedMessage

	mu     sync.Mutex
	output bytes.Buffer // of all processes
	kills  int
}

type approvedMessage struct {
	obligation     int64
	platform, text string
}

const stormConfig = `
[[operators]]
id = "anna"
token_sha256 = "%s"

[transports.smtp]
address = "%s"
tls = "none"
from = "Desk <desk@example.com>"

[transports.slack]
token = "env:STORM_SLACK"
api_url = "%s"

[transports.telegram]
token = "env:STORM_TELEGRAM"
api_url = "%s"

[agents]
max_waiting = 0
max_hourly = 0

[deliver]
concurrency = 32
`

func newStorm(t *testing.T) *storm {
	s := &storm{t: t, dir: t.TempDir(), arrivals: newArrivals()}
	t.Setenv("STORM_SLACK", plantedSlack)
	t.Setenv("STORM_TELEGRAM", plantedTelegram)
	token, hash, err := operator.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(stormConfig, hash, mailServer(t, s.arrivals), slackServer(t, s.arrivals), telegramServer(t, s.arrivals))
	if err := os.WriteFile(s.config(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(s.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Create(t.Context(), c.Ledger.Path); err != nil {
		t.Fatal(err)
	}
	if s.desk, err = desk.Open(t.Context(), c, desk.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.desk.Close() })
	if s.anna, err = s.desk.Operator(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *storm) config() string { return filepath.Join(s.dir, "countersign.toml") }

// destination spreads messages over three platforms and sixty destinations.
func destination(n int) (platform, channel string) {
	where := n % 60 / 3
	switch n % 3 {
	case 0:
		return "smtp", fmt.Sprintf("buyer%d@example.com", where)
	case 1:
		return "slack", fmt.Sprintf("C0STORM%02d", where)
	default:
		return "telegram", fmt.Sprint(7000 + where)
	}
}

func (s *storm) approve(n int) {
	s.t.Helper()
	platform, channel := destination(n)
	text := fmt.Sprintf("message %d: 5 < 6 & 7 > 4", n)
	filed, err := s.desk.File(s.t.Context(), ledger.Filing{Agent: "storm", Counterparty: fmt.Sprintf("customer %d", n), Platform: platform, Channel: channel, Text: text})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.desk.Ledger.Decide(s.t.Context(), ledger.Decision{ObligationID: filed.ObligationID, Epoch: filed.Epoch,
		Verdict: ledger.Approve, Operator: s.anna}); err != nil {
		s.t.Fatal(err)
	}
	s.messages = append(s.messages, approvedMessage{filed.ObligationID, platform, text})
}

// deliver runs one pass as a process of its own, and kills it when the time is over. It tells whether the pass ended by itself.
func (s *storm) deliver(ctx context.Context, life time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, life)
	defer cancel()
	var out bytes.Buffer
	pass := exec.CommandContext(ctx, program(s.t), "deliver", "-v", "--config", s.config())
	pass.Stdout, pass.Stderr = &out, &out
	_ = pass.Run() // exit 7 is expected: what was killed left something unknown
	s.mu.Lock()
	defer s.mu.Unlock()
	s.output.Write(out.Bytes())
	if ctx.Err() != nil {
		s.kills++
	}
	return ctx.Err() == nil
}

// blow lets four workers overlap, each of which is killed at random ten times. A pass that ends before it is killed counts for nothing,
// and is made again.
func (s *storm) blow(seed uint64) {
	var workers sync.WaitGroup
	for worker := range uint64(4) {
		chance := rand.New(rand.NewPCG(seed, worker))
		workers.Go(func() {
			for kills, tries := 0, 0; kills < 10 && tries < 100; tries++ {
				if !s.deliver(s.t.Context(), time.Duration(20+chance.IntN(400))*time.Millisecond) {
					kills++
				}
			}
		})
	}
	workers.Wait()
}

// settle runs passes that nobody kills until nothing is left to deliver.
func (s *storm) settle() {
	s.t.Helper()
	for range 5 {
		if !s.deliver(s.t.Context(), 3*time.Minute) {
			s.t.Fatal("a pass did not end")
		}
		left, err := s.desk.Ledger.Destinations(s.t.Context(), ledger.DeliverFilter{})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
	}
}

// tally is one line of the table.
type tally struct{ approved, arrived, twice, sent, unknown, waiting int }

// table checks every message, and counts.
func (s *storm) table() map[string]*tally {
	s.t.Helper()
	out := map[string]*tally{"smtp": {}, "slack": {}, "telegram": {}}
	for _, m := range s.messages {
		row := out[m.platform]
		row.approved++
		shown, err := s.desk.Ledger.Show(s.t.Context(), m.obligation)
		if err != nil {
			s.t.Fatal(err)
		}
		arrived := s.arrivals.of(m.text)
		switch {
		case arrived > 1:
			row.twice++
			s.t.Errorf("%s: %q arrived %d times", m.platform, m.text, arrived)
		case arrived == 1:
			row.arrived++
		}
		switch {
		case shown.Status == ledger.StatusSent:
			row.sent++
			if arrived != 1 {
				s.t.Errorf("%s: %q is sent and arrived %d times", m.platform, m.text, arrived)
			}
		case shown.Claim != nil && shown.Claim.State == ledger.ClaimUnknown:
			row.unknown++
		case shown.Status == ledger.StatusApproved && arrived == 0:
			row.waiting++
		default:
			s.t.Errorf("%s: %q arrived %d times and is %s with claim %+v", m.platform, m.text, arrived, shown.Status, shown.Claim)
		}
	}
	return out
}

// Approved messages over three platforms and sixty destinations, four overlapping passes, each killed at random ten times: every
// message arrives at most once, and each is delivered, unknown, or still waiting. COUNTERSIGN_FULL=1 takes 1,000 messages.
func TestKilledPassesSendNothingTwice(t *testing.T) {
	messages := 300
	if os.Getenv("COUNTERSIGN_FULL") != "" {
		messages = 1000
	}
	seed := uint64(time.Now().UnixNano())
	s := newStorm(t)
	for n := range messages {
		s.approve(n)
	}
	s.blow(seed)
	s.settle()
	t.Logf("seed %d, %d passes killed", seed, s.kills)
	t.Logf("%-9s %8s %8s %6s %6s %8s %8s", "platform", "approved", "arrived", "twice", "sent", "unknown", "waiting")
	rows := s.table()
	for _, platform := range []string{"smtp", "slack", "telegram"} {
		row := rows[platform]
		t.Logf("%-9s %8d %8d %6d %6d %8d %8d", platform, row.approved, row.arrived, row.twice, row.sent, row.unknown, row.waiting)
	}
	if s.kills < messages/10 && s.kills < 40 {
		t.Errorf("only %d passes were killed: there was too little to deliver for the rest", s.kills)
	}
	s.noSecrets()
}

// noSecrets looks for the planted secrets in all output, in the ledger, and in everything beside it.
func (s *storm) noSecrets() {
	s.t.Helper()
	places := map[string]string{"the output of a pass": s.output.String()}
	err := filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		// Reading the ledger's files behind SQLite's back is done by a copy in a process of its own, for closing them here would
		// drop the locks of this process.
		content, err := exec.Command("cat", path).Output()
		places[path] = string(content)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for place, content := range places {
		for _, secret := range planted {
			if strings.Contains(content, secret) {
				s.t.Errorf("%s holds a secret", place)
			}
		}
	}
}
