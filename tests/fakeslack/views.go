package fakeslack

import (
	"encoding/json"
	"slices"
)

// A View is a modal that was opened. It is a copy.
type View struct {
	ID, Hash        string
	User            string // who sees it
	Title           string // decoded
	CallbackID      string
	PrivateMetadata string
	ExternalID      string
	Raw             json.RawMessage // as sent
	Blocks          []Block         // with the ids that Slack adds where there are none
	Updates         int             // how often it was replaced
	Closed          bool            // by a submission
}

// Views are the modals opened so far, in order.
func (s *Server) Views() []View {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.views)
	for i := range all {
		all[i].Blocks = clone(all[i].Blocks)
	}
	return all
}

// View finds a modal by its id.
func (s *Server) View(id string) (View, bool) {
	for _, v := range s.Views() {
		if v.ID == id {
			return v, true
		}
	}
	return View{}, false
}

// DecodedViewTexts is DecodedTexts for a modal's blocks.
func DecodedViewTexts(v View) []string { return decodedTexts(v.Blocks) }

// trigger is a trigger_id: whose click made it, and what became of it.
type trigger struct {
	user          string
	expired, used bool
}

// ExpireTriggers lets all trigger ids given out so far expire, as Slack does after three seconds.
// Source: https://docs.slack.dev/interactivity/handling-user-interaction, "trigger_id"
func (s *Server) ExpireTriggers() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, t := range s.triggers {
		t.expired = true
		s.triggers[id] = t
	}
}

func (s *Server) newTrigger(user string) string {
	id := s.newID("1000.2000.")
	s.triggers[id] = trigger{user: user}
	return id
}

// exchange takes a trigger id for the one time that it is good for.
func (s *Server) exchange(id string) (user string, err error) {
	t, ok := s.triggers[id]
	switch {
	case !ok:
		return "", refuse("invalid_trigger_id")
	case t.expired:
		return "", refuse("expired_trigger_id")
	case t.used:
		return "", refuse("exchanged_trigger_id")
	}
	t.used = true
	s.triggers[id] = t
	return t.user, nil
}

// Source: https://docs.slack.dev/reference/methods/views.open
func (s *Server) viewsOpen(c *call) (reply, error) {
	v, err := s.readView([]byte(c.Params["view"]))
	if err != nil {
		return nil, err
	}
	if v.User, err = s.exchange(c.Params["trigger_id"]); err != nil {
		return nil, err
	}
	v.ID = s.newID("V")
	s.views = append(s.views, v)
	return reply{"view": s.viewObject(v, nil)}, nil
}

// Source: https://docs.slack.dev/reference/methods/views.update
func (s *Server) viewsUpdate(c *call) (reply, error) {
	i := slices.IndexFunc(s.views, func(v View) bool {
		byExternal := v.ExternalID != "" && v.ExternalID == c.Params["external_id"]
		return !v.Closed && (v.ID == c.Params["view_id"] || byExternal)
	})
	if i < 0 {
		return nil, refuse("not_found")
	}
	if hash := c.Params["hash"]; hash != "" && hash != s.views[i].Hash {
		return nil, refuse("hash_conflict")
	}
	if err := s.replaceView(i, []byte(c.Params["view"])); err != nil {
		return nil, err
	}
	return reply{"view": s.viewObject(s.views[i], nil)}, nil
}

// replaceView shows another modal in the place of one.
func (s *Server) replaceView(i int, raw json.RawMessage) error {
	v, err := s.readView(raw)
	if err != nil {
		return err
	}
	old := s.views[i]
	v.ID, v.User, v.Updates = old.ID, old.User, old.Updates+1
	s.views[i] = v
	return nil
}

// readView checks and decodes a modal.
func (s *Server) readView(raw json.RawMessage) (View, error) {
	if problems := CheckModal(raw); len(problems) > 0 {
		return View{}, refuse("invalid_arguments", problems...)
	}
	var v struct {
		Title           struct{ Text string }
		CallbackID      string `json:"callback_id"`
		PrivateMetadata string `json:"private_metadata"`
		ExternalID      string `json:"external_id"`
		Blocks          []Block
	}
	decode(raw, &v)
	s.complete(v.Blocks)
	return View{
		Hash: format(s.clock.next()) + "." + s.newID(""), Title: Decode(v.Title.Text), CallbackID: v.CallbackID,
		PrivateMetadata: v.PrivateMetadata, ExternalID: v.ExternalID, Raw: raw, Blocks: v.Blocks,
	}, nil
}

// viewObject is the modal as Slack tells of it.
// Source: https://docs.slack.dev/reference/views
func (s *Server) viewObject(v View, values map[string]any) map[string]any {
	var o map[string]any
	decode(v.Raw, &o)
	if values == nil {
		values = map[string]any{}
	}
	for _, name := range []string{"close", "submit"} {
		if o[name] == nil {
			o[name] = nil
		}
	}
	o["id"], o["hash"], o["team_id"], o["app_id"], o["bot_id"] = v.ID, v.Hash, s.team.ID, AppID, BotID
	o["blocks"], o["state"] = echoBlocks(v.Blocks), map[string]any{"values": values}
	o["root_view_id"], o["previous_view_id"], o["app_installed_team_id"] = v.ID, nil, s.team.ID
	o["private_metadata"], o["callback_id"], o["external_id"] = v.PrivateMetadata, v.CallbackID, v.ExternalID
	return o
}
