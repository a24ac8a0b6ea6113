package notify_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"countersign/ledger"
	"countersign/notify"
	"countersign/plaintext"
	"countersign/tests/fakeslack"
)

// longest is a subject with as much of everything as the ledger takes.
func longest(letter string) ledger.Subject {
	long := func(n int) string { return strings.Repeat(letter, n) }
	subject, thread, deadline := long(300), long(998), int64(1_800_000_000)
	s := ledger.Subject{OriginUser: long(120), Signal: &ledger.SignalShown{ObligationID: 1, Summary: long(200)},
		Previous: &ledger.Previous{ObligationID: 1, Epoch: 1, Subject: long(299), Text: long(40_000)},
		Remark:   &ledger.Remark{Kind: "steered", By: long(200), Note: long(4_000)}}
	s.ObligationID, s.Epoch, s.Status, s.Counterparty, s.Platform, s.Channel = 431, 1_800_000_000, ledger.StatusDrafted, long(120), "local", long(500)
	s.Thread, s.Subject, s.Priority, s.AutoSendAfter, s.Agent = &thread, &subject, "P0", &deadline, long(200)
	s.DraftText = long(39_999) + "."
	s.DraftSHA256 = ledger.HashText(s.DraftText)
	s.Summary, s.Context = long(200), long(4_000)
	s.Markers = []string{"[LOOKS LIKE " + long(120) + "]", "[BASELINE FACTS: " + long(4_000) + "]"}
	s.Filings = []ledger.FilingShown{{}, {}}
	for id := range int64(20) {
		s.Decisions = append(s.Decisions, ledger.DecisionShown{DecisionID: id, Decision: ledger.Approve, Operator: "anna", Reason: long(4_000),
			Voided: "revoked", VoidedBy: "anna", VoidedReason: long(4_000)})
	}
	return s
}

// A card whose parts are each within their limits used to be refused for what they are together.
func TestTheLongestSubjectFitsAndIsWhole(t *testing.T) {
	for name, letter := range map[string]string{"letters": "x", "ampersands": "&", "hidden": "\u200b", "lines": "y\n", "blanks": "z \u00a0"} {
		t.Run(name, func(t *testing.T) {
			s := longest(letter)
			r := notify.Card(s, notify.Destination{Name: strings.Repeat(letter, 3_000), Known: true, External: true}, "")
			messages := append([]notify.Message{r.Card}, r.Annex...)
			var raw, shown strings.Builder
			for _, p := range r.Text {
				messages = append(messages, *p.Message)
				raw.WriteString(p.Raw)
				for _, text := range textsOf(t, *p.Message)[1:] { // after its label
					shown.WriteString(text)
				}
			}
			for i, m := range messages {
				fits(t, fmt.Sprintf("message %d", i), m)
			}
			if raw.String() != s.DraftText || shown.String() != plaintext.Visible(s.DraftText) {
				t.Error("the parts are not the text, or do not show it")
			}
			for _, want := range []string{"#431 · epoch 1800000000", "countersign approve 431 --epoch 1800000000", "EXTERNAL", "in this card's thread"} {
				if !strings.Contains(strings.Join(textsOf(t, r.Card), "\n"), want) {
					t.Errorf("the card does not say %q", want)
				}
			}
		})
	}
}

func fits(t *testing.T, name string, m notify.Message) {
	t.Helper()
	raw, err := json.Marshal(m.Blocks)
	must(t, err)
	size := 0
	for _, text := range textsOf(t, m) {
		size += len([]rune(strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)))
	}
	if problems := fakeslack.CheckBlocks(raw); len(problems) > 0 || size > 12_000 || len([]rune(m.Fallback)) > 3_000 {
		t.Errorf("%s: %d characters, %d of fallback, %v", name, size, len([]rune(m.Fallback)), problems)
	}
}

func textsOf(t *testing.T, m notify.Message) []string {
	t.Helper()
	raw, err := json.Marshal(m.Blocks)
	must(t, err)
	var blocks []fakeslack.Block
	must(t, json.Unmarshal(raw, &blocks))
	return fakeslack.DecodedTexts(fakeslack.Message{Version: fakeslack.Version{Blocks: blocks}})
}
