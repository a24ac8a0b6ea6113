package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// Envelope is what an operator really approves: destination, subject and the hash of the text. Empty Thread and Subject mean none.
type Envelope struct {
	Platform, Channel, Thread, Subject string
	TextSHA256                         string
}

// Canonical returns the RFC 8785 form that Hash covers. A field that is not UTF-8 is refused (*InputError): the JSON encoder would
// silently replace its bad bytes, and two envelopes would have one hash.
func (e Envelope) Canonical() ([]byte, error) {
	for _, field := range []struct{ name, value string }{
		{"platform", e.Platform}, {"channel", e.Channel}, {"thread", e.Thread}, {"subject", e.Subject}, {"text hash", e.TextSHA256},
	} {
		if !utf8.ValidString(field.value) {
			return nil, &InputError{Field: field.name, Reason: "is not valid UTF-8; send UTF-8"}
		}
	}
	raw, err := json.Marshal(map[string]any{
		"attachments": []string{},
		"channel":     e.Channel,
		"platform":    e.Platform,
		"schema":      "countersign.envelope/v1",
		"subject":     orNull(e.Subject),
		"text_sha256": e.TextSHA256,
		"thread":      orNull(e.Thread),
	})
	if err != nil {
		return nil, fmt.Errorf("envelope: %w", err)
	}
	return jcs.Transform(raw)
}

// Hash is the lower-case hex SHA-256 of the canonical form. The README has the recipe to recompute it without this program.
func (e Envelope) Hash() (string, error) {
	canonical, err := e.Canonical()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:]), nil
}

// HashText returns the lower-case hex SHA-256 of the text's bytes.
func HashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func isHash(s string) bool {
	if len(s) != sha256.Size*2 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
