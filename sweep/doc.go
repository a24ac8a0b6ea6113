// Package sweep makes the passes over a ledger that cron runs: it joins the ledger, which says what may be sent, with the
// transports, which send it.
//
// [Sweeper.Recover] cleans up after workers that died. [Sweeper.Deliver] recovers, and then delivers what is approved. Both
// make one pass and return what they did. Any number of passes may overlap, in one process or in many.
//
// # Files
//
// Beside the ledger's file lies a directory of the same name with ".d" added, 0700, with three rooms:
//
//	workers/<worker>.lock       held locked by each living worker, for as long as its pass lasts
//	destinations/<hash>.lock    held locked by the one worker that is on this destination; it holds the worker's name
//	spool/<worker>-<n>.slot     room for one receipt, reserved and synced before any dispatch begins; held locked by its worker
//
// All three rest on flock(2), which the kernel gives back when the holder's process ends, however it ends. No clock decides
// whether a worker lives. A file is removed only by whoever holds its lock, and everybody who gets a lock makes sure that the
// file is still the one under that name: so no two can hold "the same" lock on two different files. The one exception is
// [Sweeper.TakeOver], by which an operator declares a stopped worker dead; such a worker finds its file gone, and whatever it
// does then is refused by the ledger, since its claims have moved to another generation.
//
// Where a link, a directory or a pipe stands in the place of a destination's lock, that destination alone is left out, and the
// report says what to remove.
//
// # The order of a delivery
//
// It stands in one function, parcel.deliver, and the order is the safety:
//
//	destination lock, session, Prepare    nothing is claimed; a failure uses up no approval
//	slot                                  room to keep a receipt that the ledger can't take
//	Claim or Adopt                        durable; a crash from here on leaves a claim that another worker adopts
//	BeginDispatch                         durable; a crash from here on leaves a claim that becomes unknown
//	the last checks, Send                 at most once; never again for this approval
//	Complete or MarkUnknown               or the slot, when the ledger can't take a confirmed receipt
//
// A cancelled context (SIGTERM, SIGHUP) ends the pass between two of these steps up to BeginDispatch; from BeginDispatch on the message
// in hand is finished.
package sweep
