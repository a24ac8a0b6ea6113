// Package slack posts messages as an app through Slack's Web API
// (https://docs.slack.dev/apis/web-api/).
//
// # Destinations
//
// A channel is an id: C… or G… for channels, D… for a direct message that is open
// already. A #name is no destination, for names change hands; [Transport.Resolve]
// turns one into its id, once, when a draft is filed. A thread is the ts of its
// first message, like 1234567890.123456. There is no subject.
//
// # Texts
//
// A text is posted as plain text: &, < and > escaped once, no markup, no mentions, no
// link previews. The limit is counted in UTF-16 units, for Slack's pages say
// "characters" and not which: that count is never below any other. What is posted,
// escapes included, never has more than [MaxText] of them, beyond which Slack cuts with
// ok true.
//
// # Outcomes
//
// They are decided in one function, judge, by how far the exchange came:
//
//	connecting failed, or not an octet of the body went out    refused
//	octets of it did, and then anything but a whole reply      ambiguous
//	HTTP 429                                                   refused, with its Retry-After
//	ok false with a code documented to mean "not posted"       refused
//	ok false with any other code, any other HTTP status        ambiguous
//	a reply that isn't one JSON object                         ambiguous
//	ok true before the whole text was handed over              ambiguous
//	ok true with channel and ts                                confirmed
//
// Every request has a connection of its own, HTTP/1.1, opened before and closed after
// it. So no request can be repeated by net/http, none meets a connection that the
// server just gave up, and no reply can belong to another request. Prepare opens the
// connection of the post, so that a network that is down uses up no approval. No
// redirect is followed, no rate limit waited out.
//
// The coordinate is "<channel>:<ts>". A receipt is altered where Slack warns that it
// cut the text, or where the text, channel or thread that it echoes isn't what was
// sent; its detail says which.
//
// # The library
//
// slack-go builds the requests. What comes back is read here: the library takes ok
// false without a code for success, takes the first JSON value for the whole reply,
// calls every 5xx retryable, and fails on a field of an unexpected type that nobody
// asked for.
//
// # The token
//
// It is asked for at each Connect and is part of each request's body. No error, receipt
// or log has it; the library's debug log is never on.
package slack
