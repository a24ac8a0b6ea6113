package smtp

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"

	"countersign/transports"
)

const (
	// maxLine is RFC 5322 section 2.1.1, without the CRLF.
	maxLine = 998
	// maxThread leaves room for the longer of the two fields that carry it.
	maxThread = maxLine - len("In-Reply-To: ")
	// encodedChunk gives encoded words of at most 56 octets, so that also behind
	// "Subject: " a line has at most the 76 of RFC 2047 section 2.
	encodedChunk = 33
)

var errNotExact = errors.New("the message as composed doesn't read back as approved")

// A letter is a message ready for the wire.
type letter struct {
	to     []address
	id     string // Message-ID, in its brackets
	octets []byte // header and body, CRLF line ends, no line begins with a dot
}

// utf8 tells if the letter needs SMTPUTF8, for its envelope and its header.
func (l letter) utf8() bool {
	for _, a := range l.to {
		if !a.ascii() {
			return true
		}
	}
	return false
}

// compose makes the letter and reads it back before anybody else sees it.
func compose(m transports.Message, from sender, to []address, at time.Time) (letter, error) {
	l := letter{to: to, id: messageID(m, from.domain)}
	var b bytes.Buffer
	w, err := message.CreateWriter(&b, header(m, from, l, at))
	if err != nil {
		return letter{}, err
	}
	if _, err := io.WriteString(w, m.Text); err != nil {
		return letter{}, err
	}
	if err := w.Close(); err != nil {
		return letter{}, err
	}
	if !bytes.HasSuffix(b.Bytes(), []byte("\r\n")) {
		b.WriteString("\r\n") // the last line of base64 has no end
	}
	l.octets = b.Bytes()
	return l, readBack(l, m)
}

// header has the fields of a letter, and no others. Auto-Submitted (RFC 3834) is
// not among them: a named person approved this text, answers to it are wanted,
// and whatever else the message says about its making would be internal.
//
// go-message writes the field that was set last first.
func header(m transports.Message, from sender, l letter, at time.Time) message.Header {
	var h mail.Header
	// The body is base64 of the stored octets, LF line ends included. RFC 2046
	// section 4.1.1 would have CRLF as the canonical line break of text, but base64
	// carries octets unchanged and readers take both: so the decoded body equals
	// the approved text, with no newline rule in between, and its hash is the hash
	// that was approved. Quoted-printable and 8bit would both touch line ends, and a
	// text without a final newline would gain one.
	h.Set("Content-Transfer-Encoding", "base64")
	h.SetContentType("text/plain", map[string]string{"charset": "utf-8"})
	h.Set("MIME-Version", "1.0")
	if m.Thread != "" {
		h.Set("References", m.Thread)
		h.Set("In-Reply-To", m.Thread)
	}
	h.SetMessageID(strings.Trim(l.id, "<>"))
	h.SetDate(at)
	if m.Subject != "" {
		h.Set("Subject", encodeSubject(m.Subject))
	}
	h.SetAddressList("To", mailboxes(l.to))
	h.SetAddressList("From", []*mail.Address{{Name: from.name, Address: from.String()}})
	return h.Header
}

func mailboxes(list []address) []*mail.Address {
	var boxes []*mail.Address
	for _, a := range list {
		boxes = append(boxes, &mail.Address{Address: a.String()})
	}
	return boxes
}

// messageID is the same for one claim, so that a search at the receiver tells
// whether its message arrived, and another for every other claim of any ledger,
// because receivers drop what bears an id they have seen.
func messageID(m transports.Message, domain string) string {
	return fmt.Sprintf("<countersign.%d.%d.%s@%s>", m.ObligationID, m.DecisionID, m.Key, domain)
}

// encodeSubject leaves alone what every reader takes literally. Go's mime encoder
// would pass a subject that reads like an encoded word, and its words are too
// long to be folded within the limit of RFC 2047 section 2.
func encodeSubject(s string) string {
	if isPlainSubject(s) {
		return s
	}
	var words []string
	for len(s) > 0 {
		n := min(encodedChunk, len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n-- // RFC 2047 section 5: each word holds whole characters
		}
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(s[:n]))+"?=")
		s = s[n:]
	}
	return strings.Join(words, " ")
}

// isPlainSubject tells if s survives folding and reading as it stands: visible
// ASCII words with single blanks between them, none too long for a line, and
// nothing that begins an encoded word.
func isPlainSubject(s string) bool {
	if strings.Contains(s, "=?") {
		return false
	}
	for word := range strings.SplitSeq(s, " ") {
		odd := strings.ContainsFunc(word, func(r rune) bool { return r <= ' ' || r > '~' })
		if word == "" || odd || len(word) > 60 {
			return false
		}
	}
	return true
}

// readBack decodes the letter as a receiver does and compares. A library that
// changed its mind about a header or a line end is found here, before the claim.
func readBack(l letter, m transports.Message) error {
	if err := checkLines(l); err != nil {
		return err
	}
	entity, err := message.Read(bytes.NewReader(l.octets))
	if err != nil {
		return fmt.Errorf("%w: %w", errNotExact, err)
	}
	text, err := io.ReadAll(entity.Body)
	if err != nil || string(text) != m.Text {
		return fmt.Errorf("%w: text", errNotExact)
	}
	h := mail.Header{Header: entity.Header}
	if subject, err := h.Subject(); err != nil || subject != m.Subject {
		return fmt.Errorf("%w: subject", errNotExact)
	}
	if h.Get("In-Reply-To") != m.Thread || h.Get("References") != m.Thread {
		return fmt.Errorf("%w: thread", errNotExact)
	}
	return nil
}

// checkLines proves what the count of octets before the final dot rests on.
func checkLines(l letter) error {
	body, ok := bytes.CutSuffix(l.octets, []byte("\r\n"))
	if !ok {
		return fmt.Errorf("%w: its last line has no end", errNotExact)
	}
	for line := range bytes.SplitSeq(body, []byte("\r\n")) {
		switch {
		case len(line) > maxLine:
			return fmt.Errorf("%w: a line is too long", errNotExact)
		case bytes.HasPrefix(line, []byte(".")) || bytes.ContainsAny(line, "\r\n\x00"):
			return fmt.Errorf("%w: a line has a dot in front or a control character", errNotExact)
		}
	}
	return nil
}
