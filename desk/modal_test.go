package desk_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"countersign/desk"
	"countersign/ledger"
	"countersign/notify"
	"countersign/tests/fakeslack"
)

// What is urgent or marked is approved in two steps, and the second names why.
func TestAMarkedDraftAsksOnceMore(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	f := filing("120 pumps\u200b.")
	f.Priority = "P0"
	filed := s.file(f)
	if len(filed.Markers) < 2 {
		t.Fatalf("%+v", filed)
	}
	s.serve(desk.ServeOptions{})
	s.click(s.card(filed.ObligationID, notify.ActionApprove), notify.ActionApprove, anna)
	view := s.modal(1)
	contains(t, strings.Join(fakeslack.DecodedViewTexts(view), "\n"), append(filed.Markers, "priority P0", filed.DraftSHA256[:8], "acme")...)
	s.untouched(filed)
	submitted := s.submit(view, nil, anna)
	s.status(filed.ObligationID, ledger.StatusApproved)
	if _, err := s.slack.Redeliver(s.ctx(), submitted); err != nil {
		t.Fatal(err)
	}
	s.must(s.stop())
	s.decidedOnce(filed.ObligationID)
	if n := len(s.slack.Ephemerals(anna.ID)); n != 0 {
		t.Errorf("a submission that came twice was refused: %q", s.slack.Ephemerals(anna.ID)[0].Text)
	}
}

func TestASubmissionAfterARefileIsSuperseded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	first := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{})
	m := s.card(first.ObligationID, notify.ActionApprove)
	for i, action := range []string{notify.ActionApprove, notify.ActionReject, notify.ActionChanges} {
		s.click(m, action, anna)
		s.modal(i + 1)
	}
	again := s.file(filing("121 pumps."))
	for i, words := range []map[string]string{nil, {"words": "no"}, {"words": "shorter"}} {
		s.submit(s.modal(i+1), words, anna)
		contains(t, s.said(anna, i+1), "superseded")
	}
	s.untouched(again)
	if steered := s.inbox("steered"); len(steered) != 0 {
		t.Errorf("the agent was told of another text: %q", steered)
	}
}

// Words of nothing but blanks are none, and an operator who opened no dialog submits none.
func TestRejectAndChangesNeedWordsOfTheirOpener(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{})
	m := s.card(filed.ObligationID, notify.ActionReject)
	for i, action := range []string{notify.ActionReject, notify.ActionChanges} {
		s.click(m, action, anna)
		s.submit(s.modal(i+1), map[string]string{"words": " \n"}, anna)
		contains(t, s.said(anna, i+1), "Try again", "is empty")
	}
	s.click(m, notify.ActionReject, anna)
	// The dialog of another person was refused without a word to whoever sent it.
	s.submit(s.modal(3), map[string]string{"words": "no"}, bert)
	contains(t, s.said(bert, 1), "You are not an operator here")
	s.untouched(filed)
}

func TestAnExpiredTriggerIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	filed := s.file(filing("120 pumps."))
	s.serve(desk.ServeOptions{})
	m := s.card(filed.ObligationID, notify.ActionApprove)
	late := s.slack.Click(m, notify.ActionApprove, anna)
	s.slack.ExpireTriggers()
	s.send(late)
	contains(t, s.said(anna, 1), "Try again")
	s.click(m, notify.ActionApprove, anna)
	s.submit(s.modal(1), nil, anna)
	s.status(filed.ObligationID, ledger.StatusApproved)
}

// The button that was aimed at may have been an earlier text's.
func TestAClickJustAfterAnEditDoesNotApprove(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	edited, err := strconv.ParseInt(strings.TrimSuffix(m.EditedTS, ".000000"), 10, 64)
	s.must(err)
	s.click(m, notify.ActionApprove, anna, fakeslack.At(strconv.FormatInt(edited+1, 10)+".499999"))
	contains(t, s.said(anna, 1), "Try again: the card changed just as you clicked")
	s.untouched(filed)
	s.click(m, notify.ActionApprove, anna, fakeslack.At(strconv.FormatInt(edited+1, 10)+".500000"))
	s.status(filed.ObligationID, ledger.StatusApproved)
}

// value makes the click carry another value than its button.
func value(ref notify.Ref) fakeslack.Change {
	return func(p map[string]any) {
		raw, _ := json.Marshal(ref)
		p["actions"].([]any)[0].(map[string]any)["value"] = string(raw)
	}
}

func at(field, channel, ts string) fakeslack.Change {
	return func(p map[string]any) {
		p[field].(map[string]any)["channel_id"], p[field].(map[string]any)["message_ts"] = channel, ts
	}
}

// What a button names is compared with the ledger, and grants nothing.
func TestForgedButtonsDecideNothing(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.usual()
	other := filing("Another text.")
	other.Channel = "service"
	first, second := s.file(filing("120 pumps.")), s.file(other)
	stray := s.slack.Say(internalChannel, fakeslack.BotUser, "no card")
	s.serve(desk.ServeOptions{})
	m := s.card(first.ObligationID, notify.ActionApprove)
	s.card(second.ObligationID, notify.ActionApprove)
	good := notify.Ref{ID: first.ObligationID, Epoch: first.Epoch, SHA: first.DraftSHA256[:8]}
	for i, c := range []struct {
		name   string
		change fakeslack.Change
		says   string
	}{
		{"another obligation", value(notify.Ref{ID: second.ObligationID, Epoch: second.Epoch, SHA: second.DraftSHA256[:8]}), "superseded"},
		{"another epoch", value(notify.Ref{ID: good.ID, Epoch: good.Epoch + 1, SHA: good.SHA}), "superseded"},
		{"another hash", value(notify.Ref{ID: good.ID, Epoch: good.Epoch, SHA: "00000000"}), "superseded"},
		{"no such obligation", value(notify.Ref{ID: 4711, Epoch: good.Epoch, SHA: good.SHA}), "superseded"},
		{"a message that is no card", at("container", internalChannel, stray.TS), "superseded"},
		{"no reference", func(p map[string]any) { p["actions"].([]any)[0].(map[string]any)["value"] = "approve #1" }, "Try again"},
		{"the unknown card's button", func(p map[string]any) { p["actions"].([]any)[0].(map[string]any)["action_id"] = notify.ActionArrived }, "superseded"},
	} {
		s.click(m, notify.ActionApprove, anna, c.change)
		if said := s.said(anna, i+1); !strings.Contains(said, c.says) {
			t.Errorf("%s: %q", c.name, said)
		}
	}
	s.untouched(first)
	s.untouched(second)
}

// A card that the ledger has, but of which it has no view, proves nothing of what it showed.
func TestACardWithoutAViewDoesNotApprove(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	bare := s.slack.Say(internalChannel, fakeslack.BotUser, "a crash came before the text")
	_, err := s.term.Ledger.RecordCard(t.Context(), ledger.Card{ObligationID: filed.ObligationID, Kind: ledger.CardDraft, Team: fakeslack.TeamID,
		CardRef: ledger.CardRef{Channel: internalChannel, TS: bare.TS}})
	s.must(err)
	s.click(m, notify.ActionApprove, anna, at("container", internalChannel, bare.TS))
	contains(t, s.said(anna, 1), "superseded")
	s.untouched(filed)
}

// In another channel there may be readers from outside: nothing is said there, and nothing decided.
func TestAClickInAnotherChannelIsQuiet(t *testing.T) {
	t.Parallel()
	s, filed, m := waiting(t)
	s.click(m, notify.ActionApprove, anna, at("container", partnerChannel, m.TS))
	s.click(m, notify.ActionApprove, carol, at("container", partnerChannel, m.TS))
	s.must(s.stop())
	s.untouched(filed)
	if len(s.slack.Messages(partnerChannel)) != 0 || len(s.slack.Ephemerals(anna.ID)) != 0 || len(s.slack.Ephemerals(carol.ID)) != 0 {
		t.Errorf("something was said: %v", s.slack.Messages(partnerChannel))
	}
}
