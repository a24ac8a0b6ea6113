// Package smtp submits mail to one server (RFC 5321), over go-smtp's client.
//
// Where a message stops decides what is known of it, and is recorded as the
// stage of its error:
//
//	stage                             meaning                       outcome
//	connect greeting ehlo tls auth    no session                    PrepareError
//	mail rcpt                         the server won't take it      PrepareError
//	data                              no 354: no content was sent   refused
//	content                           cut before the final dot:     refused
//	                                  nothing was delivered
//	final-dot, 4xx or 5xx             the server said no            refused
//	final-dot, 250                    the server took it over       confirmed
//	final-dot, anything else          no reply, half of one, or     ambiguous
//	                                  one that makes no sense
//
// The final dot counts as sent from the moment its first octet was given to the
// operating system. A connection on which anything but a proper reply happened
// is closed at once, without another octet.
//
// TLS is required unless the address is on loopback or plain text was allowed,
// and a password never goes to another machine in plain text.
//
// A message is one text/plain part in base64, so that its decoded body is the
// approved text octet for octet. The channel is one or more plain addresses with
// commas between them, who all see each other; the thread is the Message-ID that
// is answered.
package smtp
