// Package notify answers one question: what are the operators told, and where?
//
// Everything that happens to an obligation is queued as a notice in the transaction of what it tells (package ledger). A pass verifies the
// one internal channel (Verify), and then brings each obligation's card up to date, replies in its thread, and tells what is unknown.
// A notice goes out at least once and is never lost; unverified, nothing goes out, and there is no other place for it.
//
//	post the card without buttons      a crash from here on leaves a card that can do nothing
//	RecordCard
//	post the text's parts, if it is longer than a message
//	edit the card: all of it, with its buttons
//	RecordView                         the manifest: without it the ledger refuses an approval from this card
//	reply in the thread                each verdict, receipt and hold
//	NoticesTold, Told
//
// Whatever isn't ours (texts, names, reasons, a provider's words) is plain text, with hidden characters shown as marks.
package notify
