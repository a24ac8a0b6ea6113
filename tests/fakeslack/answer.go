package fakeslack

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Answer takes what the app answered to an interaction, in the acknowledgement or as the HTTP response's body, and does what Slack would
// do: a modal that was submitted closes, stays with errors, or shows another. The error tells what Slack would show as "We had some
// trouble connecting".
// Source: https://docs.slack.dev/surfaces/modals, "Updating views" and "Displaying errors in views"
func (s *Server) Answer(in Interaction, body []byte) error {
	if in.ViewID == "" {
		return nil
	}
	var a struct {
		Action string            `json:"response_action"`
		View   json.RawMessage   `json:"view"`
		Errors map[string]string `json:"errors"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &a); err != nil {
			return fmt.Errorf("the answer to a submission is no JSON object: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	i := slices.IndexFunc(s.views, func(v View) bool { return v.ID == in.ViewID })
	if i < 0 {
		return fmt.Errorf("there is no view %s", in.ViewID)
	}
	switch a.Action {
	case "", "clear":
		s.views[i].Closed = true
		return nil
	case "errors":
		return named(s.views[i], a.Errors)
	case "update":
		return s.replaceView(i, a.View)
	case "push":
		return s.push(i, a.View)
	}
	return fmt.Errorf("response_action %q is none that Slack knows", a.Action)
}

// named: the errors name input blocks, and at least one.
func named(v View, problems map[string]string) error {
	if len(problems) == 0 {
		return errors.New("response_action errors comes without errors")
	}
	for id := range problems {
		isIt := func(b Block) bool { return b["type"] == "input" && b["block_id"] == id }
		if !slices.ContainsFunc(v.Blocks, isIt) {
			return fmt.Errorf("an error is for %q, which is no input block", id)
		}
	}
	return nil
}

func (s *Server) push(below int, raw json.RawMessage) error {
	v, err := s.readView(raw)
	if err != nil {
		return err
	}
	v.ID, v.User = s.newID("V"), s.views[below].User
	s.views = append(s.views, v)
	return nil
}
