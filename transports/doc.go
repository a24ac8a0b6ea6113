// Package transports says how one approved message leaves the house, and how
// honest a transport has to be about what became of it.
//
// The order of the steps is the safety:
//
//  1. [Transport.Validate] at filing: refuses, without any network, what the
//     transport could not send exactly as it stands.
//  2. [Transport.Connect] once a pass: connect, secure, authenticate.
//  3. [Session.Prepare] before the claim: lets the provider refuse whatever it
//     can refuse without the counterparty seeing anything. When it fails, no
//     approval has been used up and a later pass may try again.
//  4. [Session.Send] exactly once, after the ledger has committed that
//     dispatch began. Nothing is ever sent a second time: neither here, nor by
//     a library underneath.
//
// Between 3 and 4 the caller claims the message. When it doesn't get the claim
// it calls [Session.Reset] and goes on with the next message.
//
// A Send ends in one of three ways, decided by the protocol's stage and code and
// never by the words of an error:
//
//	outcome    when                                                  Send returns
//	confirmed  the provider said yes, with a coordinate; a later     Receipt, nil
//	           QUIT or close error changes nothing
//	refused    the provider said no, or provably nothing was         *RefusedError
//	           handed over
//	ambiguous  anything else: time-out, reset, cut-off answer        *AmbiguousError,
//	                                                                 or any other error
//
// [Classify] is the one place where an error nobody recognises becomes
// ambiguous. A session on which something ambiguous happened is finished: its
// later Prepare fails.
//
// What a provider says is untrusted. Transports cap it and keep it valid UTF-8
// ([Words]); whoever shows it must still render control and hidden characters.
// No error, receipt or detail holds a secret.
//
// The package knows no ledger, and its implementations know none either.
package transports
