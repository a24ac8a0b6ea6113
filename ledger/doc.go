// Package ledger is the contract: what may be sent, who decided it, and what became of it.
//
// The promise: at most one automatic dispatch attempt for each approved decision. A crash after dispatch began may leave zero sends
// and a held claim; that is deliberate, and a person resolves it with evidence.
//
// An obligation goes
//
//	open ──> drafted ──> approved ──> sent
//	            │  ^         │
//	            │  └─────────┤ approval taken back (revoked, cancelled, expired): a new epoch
//	            ├──> rejected│
//	            └──> closed <┘ withdrawn, handled by hand, or a newer draft holds the pair
//
// and the claim on an approval
//
//	claimed ──> dispatching ──> delivered
//	   │              └──> unknown ──> delivered (evidence only)
//	   └──> cancelled
//
//	state        entered by                     left by
//	claimed      Claim (Adopt: new holder)      BeginDispatch, Cancel, CancelByOperator, Revoke, expiry
//	dispatching  BeginDispatch                  Complete, MarkUnknown, MarkDead
//	unknown      MarkUnknown, MarkDead          Reconcile, ConfirmSpooled
//	delivered    Complete, Reconcile            (final)
//	cancelled    Cancel, Revoke, expiry         (final; the decision can't be used again)
//
// An approval binds one epoch (a number that strictly advances at every filing), one text, one envelope. Claim and BeginDispatch each
// check all of it again, in their own BEGIN IMMEDIATE. Every step writes its audit row in its own transaction; a refusal is recorded
// although its own work was rolled back. The same rules stand a second time as triggers in the database (package schema).
package ledger
