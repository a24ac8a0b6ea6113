package ledger

// Status is the state of an obligation.
type Status string

const (
	// StatusOpen is an inbound signal that nobody has drafted an answer to. Entered by recording it; left by a draft on it or Close.
	StatusOpen Status = "open"
	// StatusDrafted waits for an operator. Entered by File, and again when an approval is taken back; left by Decide, Withdraw, Close.
	StatusDrafted Status = "drafted"
	// StatusApproved has a snapshot that may be claimed once. Entered by Decide; left by Complete, or by whatever takes it back.
	StatusApproved Status = "approved"
	// StatusRejected is refused by an operator, for good. The pair may be filed for anew.
	StatusRejected Status = "rejected"
	// StatusSent has a receipt with the provider's coordinate. Final.
	StatusSent Status = "sent"
	// StatusClosed is finished without a send: withdrawn, handled by hand, or overtaken by a newer draft. Final.
	StatusClosed Status = "closed"
)

// ClaimState is the state of a delivery claim. There is one function for each arrow, and no other way.
type ClaimState string

const (
	// ClaimClaimed reserves the approval for one worker. Entered by Claim; left by BeginDispatch or a cancel; adopted by Adopt.
	ClaimClaimed ClaimState = "claimed"
	// ClaimDispatching has permitted the one send. Entered by BeginDispatch; left by Complete, MarkUnknown, MarkDead.
	ClaimDispatching ClaimState = "dispatching"
	// ClaimUnknown is a send whose outcome nobody knows, or that was refused. Entered by MarkUnknown and MarkDead; left by evidence
	// alone (Reconcile, ConfirmSpooled). It is never retried.
	ClaimUnknown ClaimState = "unknown"
	// ClaimDelivered has a receipt. Final.
	ClaimDelivered ClaimState = "delivered"
	// ClaimCancelled was given up before dispatch. Final: its decision can't be used again.
	ClaimCancelled ClaimState = "cancelled"
)

// Verdict is what an operator decides.
type Verdict string

// The two verdicts.
const (
	Approve Verdict = "approve"
	Reject  Verdict = "reject"
)

// Priority orders the panel and the destinations: P0 is the most urgent.
type Priority string

// DefaultPriority is a draft's when its filer names none.
const DefaultPriority Priority = "P2"

func (p Priority) valid() bool { return p == "P0" || p == "P1" || p == "P2" || p == "P3" }

// Outcome is how a Send ended.
type Outcome string

const (
	// Confirmed: the provider said yes, with a coordinate.
	Confirmed Outcome = "confirmed"
	// Refused: the provider said no, or provably nothing was handed over.
	Refused Outcome = "refused"
	// Ambiguous: anything else.
	Ambiguous Outcome = "ambiguous"
)

// Receipt kinds of obligation_deliveries.
const (
	receiptSent   = "draft_sent"
	receiptManual = "manual_notice"
	receiptReject = "reject_notice"
)

const weOweThem = "we_owe_them"
