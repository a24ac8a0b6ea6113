package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"countersign/ledger"
	"countersign/sweep"
)

const (
	firstTry  = "Dear Mr Weber,\n\nwe can deliver 120 pumps at 410 EUR each.\n.\nRegards"
	secondTry = "Dear Mr Weber,\n\nwe can deliver 120 pumps at 430 EUR each, in week 12.\n.\n..dots, trailing blanks   \nFrom here on: AT&T <pumps@example.com>, é, עברית, 🚰\n\nRegards"
	lostText  = "Dear Ms Rossi,\n\nyour order 7781 ships on Monday."
)

func (s *story) filing(text string) ledger.Filing {
	return ledger.Filing{Counterparty: "weber gmbh", Platform: "smtp", Channel: "weber@demo.invalid", Subject: "Offer 2291: pumps", Text: text,
		Priority: "P1", Agent: "quote-agent", Context: "answers their request of Monday"}
}

// fileAndSteer: an agent files, the operator asks for a change, the agent hears of it and files anew.
func (s *story) fileAndSteer(ctx context.Context) error {
	s.title("1. An agent files a draft; it authorises nothing")
	var err error
	if s.stale, err = s.desk.File(ctx, s.filing(firstTry)); err != nil {
		return err
	}
	s.say("obligation %d, epoch %d, sha256 %.16s, %s", s.stale.ObligationID, s.stale.Epoch, s.stale.DraftSHA256, s.stale.Status)
	s.say("notice: %s (%s)", s.stale.Notice.Routed, s.stale.Notice.Reason)

	s.title("2. The operator steers; the agent reads its inbox and files anew: the epoch rotates")
	if _, err := s.desk.Ledger.Steer(ctx, s.anna, s.stale.ObligationID, "430, not 410, and name the week"); err != nil {
		return err
	}
	inbox, err := s.desk.Ledger.Inbox(ctx, "quote-agent")
	if err != nil {
		return err
	}
	if err := must(len(inbox) == 1 && inbox[0].Kind == "steered", "the agent's inbox is %+v", inbox); err != nil {
		return err
	}
	s.say("inbox: %s: %s", inbox[0].Kind, inbox[0].Body)
	if s.first, err = s.desk.File(ctx, s.filing(secondTry)); err != nil {
		return err
	}
	s.say("obligation %d again, epoch %d, sha256 %.16s", s.first.ObligationID, s.first.Epoch, s.first.DraftSHA256)
	return must(s.first.ObligationID == s.stale.ObligationID && s.first.Epoch > s.stale.Epoch && s.first.Refiled, "re-filing gave %+v", s.first)
}

// refuseStale: an approval of the text that was replaced releases nothing.
func (s *story) refuseStale(ctx context.Context) error {
	s.title("3. An approval of the old text is refused")
	_, err := s.approve(ctx, s.stale)
	var stale *ledger.StaleEpochError
	if err := must(errors.As(err, &stale), "the stale approval ended with: %v", err); err != nil {
		return err
	}
	s.say("refused: %v", err)
	report, err := s.deliver(ctx)
	if err != nil {
		return err
	}
	return must(len(report.Delivered) == 0 && len(s.mail.all()) == 0, "something was sent without an approval: %+v", report)
}

func (s *story) approve(ctx context.Context, f ledger.Filed) (ledger.Decided, error) {
	return s.desk.Ledger.Decide(ctx, ledger.Decision{ObligationID: f.ObligationID, Epoch: f.Epoch, Verdict: ledger.Approve, Operator: s.anna})
}

func (s *story) deliver(ctx context.Context) (sweep.Report, error) {
	return s.desk.Deliver(ctx, sweep.Options{})
}

// approveAndDeliver: the approved bytes are the bytes that arrive.
func (s *story) approveAndDeliver(ctx context.Context) error {
	s.title("4. anna approves exactly this text, and a worker delivers it")
	decided, err := s.approve(ctx, s.first)
	if err != nil {
		return err
	}
	s.say("decision %d by %s on epoch %d", decided.DecisionID, decided.Operator, decided.Epoch)
	report, err := s.deliver(ctx)
	if err != nil {
		return err
	}
	mails := s.mail.all()
	if err := must(len(report.Delivered) == 1 && len(mails) == 1, "delivered %+v, %d mails arrived", report, len(mails)); err != nil {
		return err
	}
	got := mails[0]
	s.say("arrived at %s, subject %q:", got.to, got.subject)
	s.quote(got.text)
	if err := must(got.text == secondTry, "the text that arrived is %q", got.text); err != nil {
		return err
	}
	s.say("compared byte for byte: equal (%d bytes, sha256 %.16s)", len(got.text), ledger.HashText(got.text))
	shown, err := s.desk.Ledger.Show(ctx, s.first.ObligationID)
	if err != nil {
		return err
	}
	s.say("receipt: %s", shown.Delivery.Coordinate)
	return must(shown.Status == ledger.StatusSent && ledger.HashText(got.text) == s.first.DraftSHA256, "the ledger says %+v", shown.Listed)
}

// killWorker: a worker dies after the server took the mail and before it heard so. Nobody sends again.
func (s *story) killWorker(ctx context.Context) error {
	s.title("5. A worker is killed in mid-dispatch")
	filed, err := s.desk.File(ctx, ledger.Filing{Counterparty: "rossi spa", Platform: "smtp", Channel: "rossi@demo.invalid",
		Subject: "Order 7781", Text: lostText, Agent: "ship-agent"})
	if err != nil {
		return err
	}
	if s.second, err = s.approve(ctx, filed); err != nil {
		return err
	}
	if err := s.runAndKill(ctx); err != nil {
		return err
	}
	recovered, err := s.desk.Recover(ctx)
	if err != nil {
		return err
	}
	claims, err := s.desk.Ledger.Claims(ctx)
	if err != nil {
		return err
	}
	if err := must(len(claims) == 1 && claims[0].State == ledger.ClaimUnknown, "recover made %+v of it: %+v", recovered, claims); err != nil {
		return err
	}
	s.key = claims[0].Key
	s.say("recover: the delivery of obligation %d is %s: %s", s.second.ObligationID, claims[0].State, claims[0].Detail)
	report, err := s.deliver(ctx)
	if err != nil {
		return err
	}
	s.say("another pass: %d delivered. Unknown is never retried.", len(report.Delivered))
	return must(len(report.Delivered) == 0 && len(s.mail.all()) == 2, "an unknown delivery was tried again: %+v", report)
}

// runAndKill starts a real worker process, waits until the server has the mail, and kills it by its process id.
func (s *story) runAndKill(ctx context.Context) error {
	s.mail.setMute(true)
	defer s.mail.setMute(false)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	worker := exec.CommandContext(ctx, s.program, "deliver", "--config", s.configPath())
	worker.Stdout, worker.Stderr = os.Stderr, os.Stderr
	if err := worker.Start(); err != nil {
		return fmt.Errorf("worker process: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.Wait() }()
	select {
	case <-s.mail.taken:
	case err := <-ended:
		return must(false, "the worker ended before the mail arrived: %v", err)
	}
	if err := worker.Process.Kill(); err != nil {
		return fmt.Errorf("killing the worker: %w", err)
	}
	<-ended
	s.say("worker process %d got its mail through, and was killed before it heard so", worker.Process.Pid)
	return nil
}

// reconcile: a person finds the mail at the receiver, by the key in its Message-ID.
func (s *story) reconcile(ctx context.Context) error {
	s.title("6. anna looks for it at the receiver, and reconciles with evidence")
	found := s.mail.all()[1]
	if err := must(found.text == lostText, "the lost mail has the text %q", found.text); err != nil {
		return err
	}
	coordinate := "<" + found.messageID + ">"
	s.say("searching the mailbox for key %s finds Message-ID %s", s.key, coordinate)
	decided, err := s.desk.Ledger.Reconcile(ctx, s.anna, s.second.ObligationID, coordinate, "found in the receiver's mailbox, text equal")
	if err != nil {
		return err
	}
	s.say("obligation %d is %s", decided.ObligationID, decided.Status)
	return must(decided.Status == ledger.StatusSent && strings.Contains(found.messageID, s.key), "reconciled to %s", decided.Status)
}

// audit: who did what, when, and nothing missing.
func (s *story) audit(ctx context.Context) error {
	s.title("7. The audit trail")
	entries, err := s.desk.Ledger.Audit(ctx, ledger.AuditFilter{})
	if err != nil {
		return err
	}
	events := map[string]int{}
	for _, e := range entries {
		events[e.Event]++
		subject := ""
		if e.ObligationID != nil {
			subject = fmt.Sprintf("obligation %d", *e.ObligationID)
		}
		s.say("%s  %-12s %-15s %s", time.UnixMicro(e.AtUS).Format("2006-01-02T15:04:05.000000Z07:00"), e.Event, e.Actor, subject)
	}
	for event, times := range map[string]int{"staged": 3, "steered": 1, "refused": 1, "approved": 2, "claimed": 2, "dispatching": 2, "delivered": 1, "unknown": 1, "reconciled": 1} {
		if err := must(events[event] == times, "the audit trail has %d %q, want %d", events[event], event, times); err != nil {
			return err
		}
	}
	checked, err := s.desk.Ledger.Check(ctx)
	if err != nil {
		return err
	}
	s.say("ledger check: %d problems", len(checked.Problems))
	return must(checked.OK, "the ledger's check found %v", checked.Problems)
}
