package fakeslack

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// An Interaction is what a person did, ready to be sent: by Send through the socket, or as a SignedRequest.
type Interaction struct {
	Payload     []byte // JSON
	EnvelopeID  string // in Socket Mode
	TriggerID   string
	ResponseURL string // of a button's
	ActionTS    string // of a button's
	ViewID      string // of a submission
}

// A Change makes an interaction other than it would be.
type Change func(payload map[string]any)

// At sets when a button was clicked.
func At(actionTS string) Change {
	return func(p map[string]any) {
		for _, a := range p["actions"].([]any) {
			a.(map[string]any)["action_ts"] = actionTS
		}
	}
}

// legacyToken is the payload's verification token, which proves nothing.
const legacyToken = "fakeslack-verification-token"

// Click is a person clicking a button of a message, as the message was when it was read: a message that was edited since still has its old
// buttons on the screen of whoever didn't look.
// Source: https://docs.slack.dev/reference/interaction-payloads/block_actions-payload
func (s *Server) Click(m Message, actionID string, by User, changes ...Change) Interaction {
	s.t.Helper()
	i := slices.IndexFunc(Buttons(m), func(b Button) bool { return b.ActionID == actionID })
	if i < 0 {
		s.t.Fatalf("fakeslack: message %s has no button %q; it has %v", m.TS, actionID, actionIDs(m))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	trigger, url, ts := s.newTrigger(by.ID), s.newResponseURL(m, by.ID), format(s.clock.read())
	p := s.interaction("block_actions", by, trigger)
	p["container"] = container(m)
	p["channel"] = map[string]any{"id": m.Channel, "name": s.channelName(m.Channel)}
	p["message"] = s.messageObject(m)
	p["state"] = map[string]any{"values": map[string]any{}}
	p["response_url"] = url
	p["actions"] = []any{Buttons(m)[i].action(ts)}
	return s.finish(p, changes)
}

func actionIDs(m Message) (ids []string) {
	for _, b := range Buttons(m) {
		ids = append(ids, b.ActionID)
	}
	return ids
}

// interaction has what all payloads have.
func (s *Server) interaction(kind string, by User, trigger string) map[string]any {
	team := by.TeamID
	if team == "" {
		team = s.team.ID
	}
	return map[string]any{
		"type": kind, "api_app_id": AppID, "token": legacyToken, "trigger_id": trigger,
		"team":       map[string]any{"id": s.team.ID, "domain": s.team.Domain},
		"user":       map[string]any{"id": by.ID, "username": by.Name, "name": by.Name, "team_id": team},
		"enterprise": nil, "is_enterprise_install": false,
	}
}

func container(m Message) map[string]any {
	c := map[string]any{"type": "message", "message_ts": m.TS, "channel_id": m.Channel, "is_ephemeral": m.To != ""}
	if m.ThreadTS != "" {
		c["thread_ts"] = m.ThreadTS
	}
	return c
}

func (s *Server) channelName(id string) string {
	for _, c := range s.channels {
		if c.ID == id {
			return c.Name
		}
	}
	return "directmessage"
}

// action is the button as an interaction names it.
func (b Button) action(ts string) map[string]any {
	a := map[string]any{"type": "button", "action_id": b.ActionID, "block_id": b.BlockID, "action_ts": ts}
	echoed := echoBlocks([]Block{{"elements": []any{b.raw}}})[0]["elements"].([]any)[0].(map[string]any)
	for _, name := range []string{"text", "value", "style", "confirm", "url"} {
		if echoed[name] != nil {
			a[name] = echoed[name]
		}
	}
	return a
}

// finish encodes a payload, and names it by what is in it after the changes.
func (s *Server) finish(p map[string]any, changes []Change) Interaction {
	for _, change := range changes {
		change(p)
	}
	in := Interaction{
		Payload: encode(p), EnvelopeID: envelopeID(s.newID("")), TriggerID: str(p["trigger_id"]), ResponseURL: str(p["response_url"]),
	}
	if actions, _ := p["actions"].([]any); len(actions) > 0 {
		in.ActionTS = str(actions[0].(map[string]any)["action_ts"])
	}
	if view, ok := p["view"].(map[string]any); ok {
		in.ViewID = str(view["id"])
	}
	return in
}

// envelopeID has the form of a UUID.
func envelopeID(id string) string {
	return strings.ToLower(fmt.Sprintf("%s-0000-4000-8000-%012s", id, id))
}

// Submit is a person sending a modal. values holds, by block id, what was typed, or the value of what was chosen. What Slack's client
// wouldn't send (a field missing, too short or too long) ends the test.
// Source: https://docs.slack.dev/reference/interaction-payloads/view-interactions-payload
func (s *Server) Submit(v View, values map[string]string, by User, changes ...Change) Interaction {
	s.t.Helper()
	state, err := stateOf(v, values)
	if err != nil {
		s.t.Fatalf("fakeslack: the modal %q can't be submitted: %v", v.Title, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.interaction("view_submission", by, s.newTrigger(by.ID))
	p["view"] = s.viewObject(v, state)
	p["response_urls"] = []any{}
	return s.finish(p, changes)
}

// stateOf is view.state.values.
func stateOf(v View, values map[string]string) (map[string]any, error) {
	state, known := map[string]any{}, map[string]bool{}
	for _, block := range v.Blocks {
		if block["type"] != "input" {
			continue
		}
		id, element := str(block["block_id"]), block["element"].(map[string]any)
		known[id] = true
		given, err := enter(element, values[id], block["optional"] == true)
		if err != nil {
			return nil, fmt.Errorf("block %q: %w", id, err)
		}
		state[id] = map[string]any{str(element["action_id"]): given}
	}
	for id := range values {
		if !known[id] {
			return nil, fmt.Errorf("there is no input block %q", id)
		}
	}
	return state, nil
}

// enter is what one input gives.
func enter(element map[string]any, value string, optional bool) (map[string]any, error) {
	kind := str(element["type"])
	if value == "" && !optional {
		return nil, fmt.Errorf("please complete this required field")
	}
	if kind != "plain_text_input" {
		return choose(element, kind, value)
	}
	if value == "" {
		return map[string]any{"type": kind, "value": nil}, nil
	}
	n := float64(utf8.RuneCountInString(value))
	if most, ok := element["max_length"].(float64); ok && n > most {
		return nil, fmt.Errorf("%v characters are more than max_length %v", n, most)
	}
	if least, ok := element["min_length"].(float64); ok && n < least {
		return nil, fmt.Errorf("%v characters are less than min_length %v", n, least)
	}
	return map[string]any{"type": kind, "value": value}, nil
}

// choose is one option, or none.
func choose(element map[string]any, kind, value string) (map[string]any, error) {
	var chosen any
	options, _ := element["options"].([]any)
	for _, o := range options {
		if o.(map[string]any)["value"] == value {
			chosen = o
		}
	}
	if chosen == nil && value != "" {
		return nil, fmt.Errorf("there is no option %q", value)
	}
	if kind != "checkboxes" {
		return map[string]any{"type": kind, "selected_option": chosen}, nil
	}
	all := []any{}
	if chosen != nil {
		all = append(all, chosen)
	}
	return map[string]any{"type": kind, "selected_options": all}, nil
}
