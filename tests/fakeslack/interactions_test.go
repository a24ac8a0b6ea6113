package fakeslack

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	slackgo "github.com/slack-go/slack"
)

// modalWith is a modal that asks for a reason.
func modalWith(change func(*slackgo.ModalViewRequest)) slackgo.ModalViewRequest {
	words := func(text string) *slackgo.TextBlockObject {
		return slackgo.NewTextBlockObject(slackgo.PlainTextType, text, false, false)
	}
	reason := slackgo.NewPlainTextInputBlockElement(words("Why"), "why").WithMultiline(true).WithMinLength(2).WithMaxLength(10)
	v := slackgo.ModalViewRequest{
		Type: slackgo.VTModal, Title: words("Reject"), Submit: words("Reject"), Close: words("Cancel"), CallbackID: "decide", PrivateMetadata: "41:7",
		Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{
			slackgo.NewInputBlock("reason", words("Reason"), nil, reason),
			slackgo.NewInputBlock("more", words("More"), nil, slackgo.NewPlainTextInputBlockElement(nil, "more")).WithOptional(true),
		}},
	}
	if change != nil {
		change(&v)
	}
	return v
}

// clicked is a click on a card, whose trigger opens a modal.
func clicked(t *testing.T, s *Server, api *slackgo.Client) Interaction {
	t.Helper()
	m, ok := s.Message(room, post(t, api, blocksOf(t, card)))
	if !ok {
		t.Fatal("nothing was posted")
	}
	return s.Click(m, "approve", ann)
}

func TestTriggers(t *testing.T) {
	s, api := slack(t)
	in := clicked(t, s, api)
	opened, err := api.OpenViewContext(t.Context(), in.TriggerID, modalWith(nil))
	wantCode(t, err, "")
	v, ok := s.View(opened.ID)
	if !ok || v.User != ann.ID || v.Title != "Reject" || v.CallbackID != "decide" || v.PrivateMetadata != "41:7" || len(v.Blocks) != 2 {
		t.Fatalf("opened: %+v", v)
	}
	_, err = api.OpenViewContext(t.Context(), in.TriggerID, modalWith(nil))
	wantCode(t, err, "exchanged_trigger_id")
	_, err = api.OpenViewContext(t.Context(), "1.2.3", modalWith(nil))
	wantCode(t, err, "invalid_trigger_id")
	late := clicked(t, s, api)
	s.ExpireTriggers()
	_, err = api.OpenViewContext(t.Context(), late.TriggerID, modalWith(nil))
	wantCode(t, err, "expired_trigger_id")
	if got := len(s.Views()); got != 1 {
		t.Fatalf("%d modals were opened", got)
	}
}

func TestModalLimitsAtTheirEdges(t *testing.T) {
	s, api := slack(t)
	words := func(n int) *slackgo.TextBlockObject {
		return slackgo.NewTextBlockObject(slackgo.PlainTextType, x(n), false, false)
	}
	for name, c := range map[string]struct {
		limit   int
		pointer string
		set     func(v *slackgo.ModalViewRequest, n int)
	}{
		"title":            {24, "/view/title/text]", func(v *slackgo.ModalViewRequest, n int) { v.Title = words(n) }},
		"submit":           {24, "/view/submit/text]", func(v *slackgo.ModalViewRequest, n int) { v.Submit = words(n) }},
		"close":            {24, "/view/close/text]", func(v *slackgo.ModalViewRequest, n int) { v.Close = words(n) }},
		"private_metadata": {3_000, "/view/private_metadata]", func(v *slackgo.ModalViewRequest, n int) { v.PrivateMetadata = x(n) }},
		"callback_id":      {255, "/view/callback_id]", func(v *slackgo.ModalViewRequest, n int) { v.CallbackID = x(n) }},
		"blocks": {100, "/view/blocks]", func(v *slackgo.ModalViewRequest, n int) {
			v.Blocks.BlockSet = nil
			for range n {
				v.Blocks.BlockSet = append(v.Blocks.BlockSet, slackgo.NewDividerBlock())
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := clicked(t, s, api)
			_, err := api.OpenViewContext(t.Context(), in.TriggerID, modalWith(func(v *slackgo.ModalViewRequest) { c.set(v, c.limit+1) }))
			wantCode(t, err, "invalid_arguments")
			wantMessage(t, err, c.pointer, c.limit)
			_, err = api.OpenViewContext(t.Context(), in.TriggerID, modalWith(func(v *slackgo.ModalViewRequest) { c.set(v, c.limit) }))
			wantCode(t, err, "")
		})
	}
	_, err := api.OpenViewContext(t.Context(), clicked(t, s, api).TriggerID, modalWith(func(v *slackgo.ModalViewRequest) { v.Submit = nil }))
	wantCode(t, err, "invalid_arguments")
}

func TestViewsAreUpdated(t *testing.T) {
	s, api := slack(t)
	opened, err := api.OpenViewContext(t.Context(), clicked(t, s, api).TriggerID, modalWith(nil))
	wantCode(t, err, "")
	changed := modalWith(func(v *slackgo.ModalViewRequest) { v.CallbackID = "second" })
	_, err = api.UpdateViewContext(t.Context(), changed, "", "1.stale", opened.ID)
	wantCode(t, err, "hash_conflict")
	_, err = api.UpdateViewContext(t.Context(), changed, "", "", "V0NONE")
	wantCode(t, err, "not_found")
	updated, err := api.UpdateViewContext(t.Context(), changed, "", opened.Hash, opened.ID)
	wantCode(t, err, "")
	if v, _ := s.View(opened.ID); v.CallbackID != "second" || v.Updates != 1 || updated.Hash == opened.Hash || v.User != ann.ID {
		t.Fatalf("updated: %+v", v)
	}
}

func TestSubmissionThroughTheSocket(t *testing.T) {
	s, api := slack(t)
	answers := make(chan any, 3)
	got := make(chan slackgo.InteractionCallback, 3)
	app(t, s, func(call slackgo.InteractionCallback) (any, bool) { got <- call; return <-answers, true })
	wait(t, s.Connected)
	opened, err := api.OpenViewContext(t.Context(), clicked(t, s, api).TriggerID, modalWith(nil))
	wantCode(t, err, "")
	v, _ := s.View(opened.ID)
	submit := func(answer any) error {
		answers <- answer
		_, err := s.Send(t.Context(), s.Submit(v, map[string]string{"reason": "too <dear>"}, ann))
		return err
	}
	nowhere := slackgo.NewErrorsViewSubmissionResponse(map[string]string{"nowhere": "no"})
	if err := submit(nowhere); err == nil || !strings.Contains(err.Error(), "no input block") {
		t.Errorf("errors for a block that isn't there: %v", err)
	}
	if err := submit(slackgo.NewErrorsViewSubmissionResponse(map[string]string{"reason": "say more"})); err != nil {
		t.Errorf("errors: %v", err)
	}
	if v, _ := s.View(opened.ID); v.Closed {
		t.Error("errors closed the modal")
	}
	if err := submit(nil); err != nil {
		t.Errorf("no payload: %v", err)
	}
	if v, _ := s.View(opened.ID); !v.Closed {
		t.Error("the modal is still open")
	}
	call := <-got
	if call.Type != slackgo.InteractionTypeViewSubmission || call.View.ID != opened.ID || call.View.PrivateMetadata != "41:7" || call.User.ID != ann.ID {
		t.Errorf("submission: %+v", call)
	}
	if values := call.View.State.Values; values["reason"]["why"].Value != "too <dear>" || values["more"]["more"].Value != "" {
		t.Errorf("values: %+v", values)
	}
}

func TestWhatAnswersToASubmissionDo(t *testing.T) {
	s, api := slack(t)
	opened, err := api.OpenViewContext(t.Context(), clicked(t, s, api).TriggerID, modalWith(nil))
	wantCode(t, err, "")
	v, _ := s.View(opened.ID)
	in := s.Submit(v, map[string]string{"reason": "dear"}, ann)
	small := `"view":{"type":"modal","title":{"type":"plain_text","text":"T"},"blocks":[]}`
	for body, fails := range map[string]bool{
		`{"response_action":"push",` + small + `}`: false, `{"response_action":"update",` + small + `}`: false,
		`{"response_action":"update","view":{}}`: true, `{"response_action":"shut"}`: true, `{"response_action":"errors","errors":{}}`: true, `[`: true,
	} {
		if err := s.Answer(in, []byte(body)); (err != nil) != fails {
			t.Errorf("%s: %v", body, err)
		}
	}
	if views := s.Views(); len(views) != 2 || views[0].Updates != 1 || views[1].Title != "T" {
		t.Errorf("views: %+v", views)
	}
}

func TestWhatASlackClientWontSubmit(t *testing.T) {
	s, api := slack(t)
	opened, err := api.OpenViewContext(t.Context(), clicked(t, s, api).TriggerID, modalWith(nil))
	wantCode(t, err, "")
	v, _ := s.View(opened.ID)
	for want, values := range map[string]map[string]string{
		"required field": {"more": "x"}, "less than min_length": {"reason": "x"}, "more than max_length": {"reason": "12345678901"},
		`no input block "other"`: {"reason": "dear", "other": "x"},
	} {
		if _, err := stateOf(v, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", values, err, want)
		}
	}
}

func TestChoices(t *testing.T) {
	block := func(kind string) View {
		element := map[string]any{"type": kind, "action_id": "a", "options": []any{map[string]any{"value": "one"}, map[string]any{"value": "two"}}}
		return View{Blocks: []Block{{"type": "input", "block_id": "b", "element": element}}}
	}
	for kind, want := range map[string]string{
		"static_select": `{"b":{"a":{"selected_option":{"value":"two"},"type":"static_select"}}}`,
		"checkboxes":    `{"b":{"a":{"selected_options":[{"value":"two"}],"type":"checkboxes"}}}`,
	} {
		state, err := stateOf(block(kind), map[string]string{"b": "two"})
		if err != nil || string(encode(state)) != want {
			t.Errorf("%s: %s, %v", kind, encode(state), err)
		}
		if _, err := stateOf(block(kind), map[string]string{"b": "three"}); err == nil {
			t.Errorf("%s: a choice that isn't there was taken", kind)
		}
	}
}

func TestSignatures(t *testing.T) {
	s, api := slack(t, WithSecret("another-secret"))
	in := clicked(t, s, api)
	verify := func(at time.Time, secret string, change func(body []byte) []byte) error {
		r := s.SignedRequest("http://127.0.0.1/slack/interactions", in.Payload, at)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		v, err := slackgo.NewSecretsVerifier(r.Header, secret)
		if err != nil {
			return err
		}
		_, _ = v.Write(change(body))
		return v.Ensure()
	}
	same := func(b []byte) []byte { return b }
	if err := verify(time.Now(), "another-secret", same); err != nil {
		t.Errorf("a good signature: %v", err)
	}
	if err := verify(time.Now(), Secret, same); err == nil {
		t.Error("another secret's signature was accepted")
	}
	if err := verify(time.Now(), "another-secret", func(b []byte) []byte { return append(b, 'x') }); err == nil {
		t.Error("a signature of another body was accepted")
	}
	if err := verify(time.Now().Add(-6*time.Minute), "another-secret", same); err == nil {
		t.Error("an old signature was accepted")
	}
	call, err := slackgo.InteractionCallbackParse(s.SignedRequest("http://127.0.0.1/", in.Payload, time.Now()))
	if err != nil || call.TriggerID != in.TriggerID || call.ActionCallback.BlockActions[0].Value != "41:7" {
		t.Errorf("parsed %+v, %v", call, err)
	}
}

func TestResponseURLs(t *testing.T) {
	s, api := slack(t)
	in := clicked(t, s, api)
	respond := func(url string, options ...slackgo.MsgOption) error {
		_, _, err := api.PostMessageContext(t.Context(), room, append(options, slackgo.MsgOptionResponseURL(url, slackgo.ResponseTypeEphemeral))...)
		return err
	}
	for _, options := range [][]slackgo.MsgOption{
		{textOption("one")}, {textOption("two"), slackgo.MsgOptionReplaceOriginal(in.ResponseURL)},
		{textOption("three")}, {textOption("four")}, {textOption("five")},
	} {
		if err := respond(in.ResponseURL, options...); err != nil {
			t.Fatal(err)
		}
	}
	if err := respond(in.ResponseURL, textOption("six")); err == nil {
		t.Error("a sixth response was taken")
	}
	if bodies := s.Responses(in.ResponseURL); len(bodies) != 6 || !strings.Contains(string(bodies[0]), "one") {
		t.Errorf("%d bodies", len(bodies))
	}
	if m := s.Messages(room)[0]; m.Text != "two" || len(m.Edits) != 1 || len(s.Ephemerals(ann.ID)) != 4 {
		t.Errorf("replaced: %+v; ephemeral: %d", m, len(s.Ephemerals(ann.ID)))
	}
	late := clicked(t, s, api)
	s.ExpireResponseURLs()
	if err := respond(late.ResponseURL, textOption("late")); err == nil {
		t.Error("an expired response URL was taken")
	}
	last := clicked(t, s, api)
	if err := respond(last.ResponseURL, slackgo.MsgOptionDeleteOriginal(last.ResponseURL)); err != nil || len(s.Deleted(room)) != 1 {
		t.Errorf("delete: %v, %d", err, len(s.Deleted(room)))
	}
	r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, late.ResponseURL+"x", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	if got, err := http.DefaultClient.Do(r); err != nil || got.StatusCode != http.StatusNotFound || got.Body.Close() != nil {
		t.Errorf("a URL that was never given out: %v, %v", got, err)
	}
}

func TestChangedPayloads(t *testing.T) {
	s, api := slack(t)
	m, _ := s.Message(room, post(t, api, blocksOf(t, card)))
	foreign := User{ID: ann.ID, TeamID: "T0FOREIGN", Name: ann.Name}
	in := s.Click(m, "approve", foreign, func(p map[string]any) { p["api_app_id"] = "A0OTHER" })
	for _, want := range []string{`"team_id":"T0FOREIGN"`, `"team":{"domain":"example","id":"T0EXAMPLE"}`, `"api_app_id":"A0OTHER"`} {
		if !strings.Contains(string(in.Payload), want) {
			t.Errorf("%s isn't in %s", want, in.Payload)
		}
	}
}
