package notify

import (
	"fmt"
	"slices"
	"strings"

	"countersign/ledger"
)

// state is where an obligation stands, in words.
func state(s ledger.Subject) string {
	switch {
	case s.Status == ledger.StatusDrafted:
		return "waits for a decision"
	case s.Status == ledger.StatusApproved && claimIn(s, ledger.ClaimUnknown) && s.Claim.Settled:
		return "delivery unknown, settled"
	case s.Status == ledger.StatusApproved && claimIn(s, ledger.ClaimUnknown):
		return "delivery unknown"
	case s.Status == ledger.StatusApproved && claimIn(s, ledger.ClaimDispatching):
		return "is being sent"
	}
	return string(s.Status)
}

func claimIn(s ledger.Subject, states ...ledger.ClaimState) bool {
	return s.Claim != nil && slices.Contains(states, s.Claim.State)
}

// who tells whom the message is for, and where it goes.
func who(s ledger.Subject, about Destination) []field {
	out := []field{{label: "For:", text: s.Counterparty}, {label: "To: " + oneLine(s.Platform), text: s.Channel}}
	if s.Thread != nil {
		out = append(out, field{label: "In thread:", text: *s.Thread})
	}
	switch {
	case about.Failed:
		out = append(out, field{label: "What the provider calls it could not be asked."})
	case about.Known && about.Name != "":
		out = append(out, field{label: "The provider calls it:", text: about.Name})
	}
	if about.External {
		out = append(out, field{label: "EXTERNAL: people of another organisation read it."})
	}
	return out
}

// agent is what the agent says of its draft, and what is known about the filing.
func agent(s ledger.Subject) []field {
	if len(s.Filings) == 0 {
		return nil
	}
	out := []field{{label: "Agent " + oneLine(s.Agent) + " says:", text: said(s)}}
	filed := "Filed: " + at(s.FiledTS)
	if n := len(s.Filings); n > 1 {
		filed += fmt.Sprintf(" (filing %d; the first: %s). It supersedes what was filed before.", n, at(s.FirstFiledTS))
	}
	out = append(out, field{label: filed})
	if s.OriginUser != "" {
		out = append(out, field{label: "Asked for by:", text: s.OriginUser})
	}
	if s.Signal != nil {
		out = append(out, field{label: fmt.Sprintf("Answers #%d:", s.Signal.ObligationID), text: s.Signal.Summary})
	}
	if s.AutoSendAfter != nil && s.Status == ledger.StatusDrafted {
		out = append(out, field{label: "Deadline: " + at(*s.AutoSendAfter)})
	}
	return out
}

// said is the agent's summary and context, without the system's stamps: those stand by themselves.
func said(s ledger.Subject) string {
	return strings.TrimSpace(s.AgentSummary() + "\n" + s.AgentContext())
}

// decisionsShown bounds the history; the thread has told all of it.
const decisionsShown = 3

// history is who decided what, and what became of it.
func history(s ledger.Subject) []field {
	var out []field
	for _, d := range s.Decisions[max(0, len(s.Decisions)-decisionsShown):] {
		out = append(out, decided(d)...)
	}
	switch {
	case claimIn(s, ledger.ClaimDispatching):
		out = append(out, field{label: "A worker has been sending it since " + at(s.Claim.UpdatedTS) + "."})
	case claimIn(s, ledger.ClaimUnknown) && s.Claim.Settled:
		out = append(out, field{label: "Nobody knows whether it arrived, and an operator settled it: it is not pursued."})
	case claimIn(s, ledger.ClaimUnknown):
		out = append(out, field{label: fmt.Sprintf("Nobody knows whether it arrived. The message %q in this channel says where to look.", unknownTitle(s.ObligationID))})
	}
	if s.Status == ledger.StatusClosed {
		out = append(out, closed(s)...)
	}
	return append(out, received(s)...)
}

func decided(d ledger.DecisionShown) []field {
	verb := map[ledger.Verdict]string{ledger.Approve: "Approved", ledger.Reject: "Rejected"}[d.Decision]
	out := []field{{label: fmt.Sprintf("%s by %s at %s.", verb, oneLine(d.Operator), at(d.DecidedTS)), text: d.Reason}}
	if d.Voided != "" {
		out = append(out, field{label: fmt.Sprintf("The approval was %s by %s:", oneLine(d.Voided), oneLine(d.VoidedBy)), text: d.VoidedReason})
	}
	return out
}

// closed tells from the audit log who ended it without a delivery.
func closed(s ledger.Subject) []field {
	for _, e := range slices.Backward(s.Audit) {
		switch e.Event {
		case "withdrawn":
			return []field{{label: fmt.Sprintf("Withdrawn by agent %s at %s.", oneLine(e.Actor), at(e.AtUS/1_000_000))}}
		case "closed":
			return []field{{label: fmt.Sprintf("Closed by %s at %s, handled by hand.", oneLine(e.Actor), at(e.AtUS/1_000_000))}}
		}
	}
	return nil
}

// received is the receipt of what was sent. A rejection's or a closing's is no delivery.
func received(s ledger.Subject) []field {
	if s.Status != ledger.StatusSent || s.Delivery == nil {
		return nil
	}
	out := []field{{label: "Delivered at " + at(s.Delivery.DeliveredTS) + " as", text: s.Delivery.Coordinate}}
	if s.Delivery.Altered {
		out = append(out, field{label: "ALTERED: the provider shows another text than the approved one."})
	}
	return append(out, field{label: footer(s)})
}

// footer names the proof of a delivery (DESIGN section 8). It appears in the internal channel and nowhere else.
func footer(s ledger.Subject) string {
	if s.Delivery == nil || s.Delivery.DecisionID == nil {
		return ""
	}
	decision, by, sha := *s.Delivery.DecisionID, "", s.DraftSHA256
	for _, d := range s.Decisions {
		if d.DecisionID == decision {
			by = d.Operator
		}
	}
	if s.Snapshot != nil && s.Snapshot.DecisionID == decision {
		sha = s.Snapshot.TextSHA256
	}
	return fmt.Sprintf("approved by %s · receipt %d · draft sha256 %.16s", oneLine(by), decision, sha)
}
