package sweep

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"countersign/ledger"
)

const spoolSchema = "countersign.spool/v1"

// spooled is a confirmed receipt that the ledger could not take. On the disk it is one line:
//
//	<hex SHA-256 of the JSON> <JSON>\n
//
// and the JSON has, beside these keys, mac: the HMAC-SHA256 of the object without it, in its RFC 8785 form, under the claim's
// token. The checksum tells a half-written line; the code tells a forged one. Integers are strings, since RFC 8785 numbers are
// doubles.
type spooled struct {
	Schema       string `json:"schema"`
	LedgerID     string `json:"ledger_id"`
	ObligationID int64  `json:"obligation_id,string"`
	DecisionID   int64  `json:"decision_id,string"`
	Platform     string `json:"platform"`
	Channel      string `json:"channel"`
	Worker       string `json:"worker"`
	Generation   int64  `json:"generation,string"`
	Coordinate   string `json:"coordinate"`
	Altered      bool   `json:"altered"`
	Detail       string `json:"detail"`
}

type sealed struct {
	spooled
	MAC string `json:"mac"`
}

// errTooLong says that a coordinate doesn't fit into a slot.
var errTooLong = errors.New("the coordinate is too long for the spool")

func (s spooled) receipt() ledger.Receipt {
	return ledger.Receipt{Coordinate: s.Coordinate, Altered: s.Altered, Detail: s.Detail, Worker: s.Worker}
}

func (s spooled) item() Item {
	return Item{ObligationID: s.ObligationID, DecisionID: s.DecisionID, Platform: s.Platform, Channel: s.Channel,
		Coordinate: s.Coordinate, Altered: s.Altered}
}

func canonical(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return jcs.Transform(raw)
}

// authenticate is the code of a receipt under a claim's token.
func (s spooled) authenticate(token string) ([]byte, error) {
	text, err := canonical(s)
	if err != nil {
		return nil, err
	}
	code := hmac.New(sha256.New, []byte(token))
	code.Write(text)
	return code.Sum(nil), nil
}

// line is the receipt as it is written. Of a detail that doesn't fit, which is for people only, the end is left out; a
// coordinate is never cut.
func (s spooled) line(token string) ([]byte, error) {
	s.Coordinate = strings.ToValidUTF8(s.Coordinate, string(utf8.RuneError)) // as JSON would do, but before the code is made
	s.Detail = strings.ToValidUTF8(s.Detail, string(utf8.RuneError))
	for {
		line, err := s.encode(token)
		if err != nil || len(line) <= slotSize {
			return line, err
		}
		if s.Detail == "" {
			return nil, errTooLong
		}
		s.Detail = strings.ToValidUTF8(s.Detail[:len(s.Detail)/2], "")
	}
}

func (s spooled) encode(token string) ([]byte, error) {
	code, err := s.authenticate(token)
	if err != nil {
		return nil, err
	}
	text, err := canonical(sealed{s, hex.EncodeToString(code)})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return fmt.Appendf(nil, "%s %s\n", hex.EncodeToString(sum[:]), text), nil
}

// decode reads a line. It proves that the line is whole, and nothing else: what it says is believed only after authentic.
func decode(line []byte) (sealed, error) {
	var out sealed
	text, ended := bytes.CutSuffix(line, []byte("\n"))
	sum, text, parted := bytes.Cut(text, []byte(" "))
	want := sha256.Sum256(text)
	if !ended || !parted || string(sum) != hex.EncodeToString(want[:]) {
		return out, &badSlotError{"it is damaged or half-written"}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return out, &badSlotError{"it is no receipt: " + err.Error()}
	}
	if out.Schema != spoolSchema {
		return out, &badSlotError{fmt.Sprintf("its schema is %q, not %q", out.Schema, spoolSchema)}
	}
	return out, nil
}

// authentic tells whether the receipt was written by somebody who had the claim's token.
func (s sealed) authentic(token string) bool {
	want, err := s.authenticate(token)
	have, bad := hex.DecodeString(s.MAC)
	return err == nil && bad == nil && token != "" && hmac.Equal(want, have)
}
