package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"countersign/ledger"
)

// The buttons' action ids.
const (
	ActionApprove    = "approve"
	ActionChanges    = "request_changes"
	ActionReject     = "reject"
	ActionUndo       = "undo"
	ActionArrived    = "arrived"
	ActionNotArrived = "not_arrived"
)

// Ref is all that a button carries: what its card showed. It grants nothing; it is compared with the ledger.
type Ref struct {
	ID    int64  `json:"id"`
	Epoch int64  `json:"epoch"`
	SHA   string `json:"sha"` // the first 8 digits of the text's hash
}

// RefOf names what a card shows now.
func RefOf(s ledger.Subject) Ref {
	return Ref{ID: s.ObligationID, Epoch: s.Epoch, SHA: fmt.Sprintf("%.8s", s.DraftSHA256)}
}

// Encode is the button's value, far below Slack's 2,000 characters.
// Source: https://docs.slack.dev/reference/block-kit/block-elements/button-element
func (r Ref) Encode() string {
	out, err := json.Marshal(r)
	if err != nil {
		panic(err) // two numbers and a string always have a JSON form
	}
	return string(out)
}

// maxRef is far above any Ref, in bytes.
const maxRef = 200

var shortSHA = regexp.MustCompile(`^[0-9a-f]{8}$`)

// ParseRef reads a button's value, and nothing but one.
func ParseRef(value string) (Ref, error) {
	var r Ref
	if len(value) > maxRef {
		return r, fmt.Errorf("a button's value has %d bytes, none of ours has more than %d", len(value), maxRef)
	}
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return Ref{}, fmt.Errorf("a button's value: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Ref{}, errors.New("a button's value goes on after its end")
	}
	if r.ID < 1 || r.Epoch < 1 || !shortSHA.MatchString(r.SHA) {
		return Ref{}, errors.New("a button's value names no draft")
	}
	if r.Encode() != value { // a key twice, or spelled otherwise
		return Ref{}, errors.New("a button's value is not as it was written")
	}
	return r, nil
}
