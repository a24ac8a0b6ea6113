package fakeslack

import (
	"encoding/json"
	"slices"
	"strings"
)

// A Block is one of Block Kit, as decoded JSON.
type Block = map[string]any

// A Message is one that was posted. It is a copy: what happens to the message later doesn't show in it.
type Message struct {
	Channel, TS string
	ThreadTS    string // the parent's TS in a reply, else ""
	User        string // BotUser for the app's own
	Version            // as it is now
	Edits       []Version
	Params      map[string]string // what chat.postMessage was given: unfurl_links, mrkdwn and so on
	To          string            // the only one who sees it, of an ephemeral message
	Deleted     bool
}

// A Version of a message is its content from TS of that edit on.
type Version struct {
	EditedTS  string // "" for the first one
	Text      string // as sent, escapes and all; cut where Slack cuts
	RawBlocks json.RawMessage
	Blocks    []Block // RawBlocks with the ids that Slack adds where there are none
}

// Messages are those of a channel, in order of their timestamps, without ephemeral and deleted ones.
func (s *Server) Messages(channel string) []Message {
	return s.find(func(m *Message) bool { return m.Channel == channel && m.To == "" && !m.Deleted })
}

// Deleted are the messages of a channel that were deleted.
func (s *Server) Deleted(channel string) []Message {
	return s.find(func(m *Message) bool { return m.Channel == channel && m.Deleted })
}

// Ephemerals are the messages that only this user sees.
func (s *Server) Ephemerals(user string) []Message {
	return s.find(func(m *Message) bool { return m.To == user && !m.Deleted })
}

// Message finds one by its coordinates; ok is false where there is none, or it was deleted.
func (s *Server) Message(channel, ts string) (m Message, ok bool) {
	found := s.find(func(m *Message) bool { return m.Channel == channel && m.TS == ts && !m.Deleted })
	if len(found) == 0 {
		return Message{}, false
	}
	return found[0], true
}

func (s *Server) find(wanted func(*Message) bool) (found []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.messages {
		if wanted(&s.messages[i]) {
			found = append(found, s.messages[i].copy())
		}
	}
	slices.SortStableFunc(found, func(a, b Message) int { return strings.Compare(a.TS, b.TS) })
	return found
}

func (m Message) copy() Message {
	m.Version = m.Version.copy()
	m.Edits = slices.Clone(m.Edits)
	for i := range m.Edits {
		m.Edits[i] = m.Edits[i].copy()
	}
	return m
}

func (v Version) copy() Version {
	v.Blocks = clone(v.Blocks)
	return v
}

// Say posts a message of somebody else's to a channel, so that it can be replied to.
func (s *Server) Say(channel, user, text string) Message { return s.SayAt("", channel, user, text) }

// SayAt is Say with a timestamp of the test's.
func (s *Server) SayAt(ts, channel, user, text string) Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	if ts == "" {
		ts = format(s.clock.next())
	}
	m := Message{Channel: channel, TS: ts, User: user, Version: Version{Text: text}}
	s.messages = append(s.messages, m)
	return m
}

// posted finds a message of a channel, ephemeral and deleted ones left out. s.mu is held.
func (s *Server) posted(channel, ts string) *Message {
	i := slices.IndexFunc(s.messages, func(m Message) bool { return m.Channel == channel && m.TS == ts && m.To == "" && !m.Deleted })
	if i < 0 {
		return nil
	}
	return &s.messages[i]
}

// change puts a new version in the place of the present one. s.mu is held.
func (m *Message) change(v Version, moment int64) {
	m.Edits = append(m.Edits, m.Version)
	v.EditedTS = format(moment / 1_000_000 * 1_000_000) // Slack gives whole seconds here
	m.Version = v
}

// messageObject is the message as Slack tells of it, in an answer or an interaction.
// Source: https://docs.slack.dev/reference/events/message
func (s *Server) messageObject(m Message) map[string]any {
	o := map[string]any{"type": "message", "user": m.User, "ts": m.TS, "text": echoMarkup(m.Text), "team": s.team.ID}
	if m.User == BotUser {
		bot, _ := s.user(BotUser)
		o["bot_id"], o["app_id"] = BotID, AppID
		o["bot_profile"] = map[string]any{"id": BotID, "app_id": AppID, "name": bot.Name, "deleted": false, "team_id": s.team.ID, "updated": 1_600_000_000}
	}
	if len(m.Blocks) > 0 {
		o["blocks"] = echoBlocks(m.Blocks)
	}
	if m.ThreadTS != "" {
		o["thread_ts"] = m.ThreadTS
	}
	if m.EditedTS != "" {
		o["edited"] = map[string]any{"user": m.User, "ts": m.EditedTS}
	}
	return o
}

// clone copies decoded JSON.
func clone[T any](v T) (same T) {
	decode(encode(v), &same)
	return same
}

// encode writes JSON, without the escapes that are for HTML.
func encode(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // only maps, slices, strings, numbers and booleans come here
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

func decode(raw []byte, v any) {
	if err := json.Unmarshal(raw, v); err != nil {
		panic(err) // it was encoded here, or found valid before
	}
}
