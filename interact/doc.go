// Package interact answers one question: what does a click in the internal channel do?
//
// Slack hands an interaction over, by Socket Mode (Socket) or HTTP (HTTP). It is acknowledged first, since Slack waits three seconds, and
// worked on after (Handler). For each the order is the same:
//
//	who        the user's own team and id, as Slack signed them, are looked up in the operators of this moment; bots are nobody
//	where      the message has to be a card that this ledger posted, in the one internal channel
//	what       the button names an obligation, an epoch and a hash; it grants nothing, and what it names is compared with the ledger
//	decide     the ledger decides in one transaction, with a nonce derived from the click, so that a redelivered click is the same decision
//	tell       an error goes to the person who clicked, alone, in one of four sentences
//
// Whatever is shown in the channel comes from the ledger through package notify, never from here.
package interact
