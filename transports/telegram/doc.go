// Package telegram sends messages as a bot through the Telegram Bot API
// (https://core.telegram.org/bots/api).
//
// # Destinations
//
// A channel is a chat's id, a signed 64-bit decimal like -1001234567890, or the
// public name of a channel or group in lower case, like @acme_support. A thread
// is one of
//
//	42           the topic with this message_thread_id
//	reply:7      a reply to message 7 of the chat
//	42/reply:7   both
//
// There is no subject.
//
// # Texts
//
// A text has 1 to [MaxText] UTF-16 units and is sent without a parse mode, for
// markup eats characters. What the server would trim, drop or replace is refused
// by Validate, never mended. Link previews are off: they show what nobody approved.
//
// # Outcomes
//
// They are decided in one function, judge, by how far the request came:
//
//	connecting failed, or the time was over before the text was touched  refused
//	the text was handed over, and then anything but a whole reply        ambiguous
//	HTTP 5xx, or a reply that isn't wholly JSON or makes no sense        ambiguous
//	ok false with a documented 4xx code                                  refused
//	ok true with chat and message                                        confirmed
//
// No request is ever repeated, no redirect followed, no rate limit waited out. A
// chat that has moved to another id is refused with that id, and not followed: the
// destination was part of the approval.
//
// The coordinate is "<chat id>:<message id>". A receipt is altered where what
// Telegram echoes, text, chat, topic or reply, isn't what was sent; its detail says
// which.
//
// # The token
//
// It is part of every URL. It is asked for at each Connect, and no error, receipt
// or log has it in any form.
package telegram
