package fakeslack

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

// content reads text and blocks of a call. s.mu is held.
//
// The error codes are those of https://docs.slack.dev/reference/methods/chat.postMessage; its response_metadata.messages name the place.
func (s *Server) content(c *call) (v Version, hasBlocks bool, err error) {
	if c.Params["attachments"] != "" {
		return v, false, refuse("invalid_attachments", "[ERROR] attachments are not among what this Slack knows [json-pointer:/attachments]")
	}
	v.Text = c.Params["text"]
	raw := strings.TrimSpace(c.Params["blocks"])
	if raw == "" || raw == "null" {
		return v, false, nil
	}
	v, err = s.withBlocks(v, []byte(raw))
	return v, true, err
}

// withBlocks checks blocks and completes them.
func (s *Server) withBlocks(v Version, raw json.RawMessage) (Version, error) {
	if json.Unmarshal(raw, &v.Blocks) != nil {
		return v, refuse("invalid_blocks_format")
	}
	if problems := CheckBlocks(raw); len(problems) > 0 {
		return v, refuse("invalid_blocks", problems...)
	}
	if s.config.blocksTotal > 0 && totalText(v.Blocks) > s.config.blocksTotal {
		return v, refuse("msg_blocks_too_long")
	}
	v.RawBlocks = raw
	s.complete(v.Blocks)
	return v, nil
}

func totalText(blocks []Block) (n int) {
	for _, block := range blocks {
		walk(block, func(o map[string]any) { n += utf8.RuneCountInString(str(o["text"])) })
	}
	return n
}

// complete gives ids to what has none.
func (s *Server) complete(blocks []Block) {
	for _, block := range blocks {
		if block["block_id"] == nil {
			block["block_id"] = s.newID("b")
		}
		elements, _ := block["elements"].([]any)
		for _, element := range append(elements[:len(elements):len(elements)], block["element"], block["accessory"]) {
			e, ok := element.(map[string]any)
			if ok && interactive[str(e["type"])] && e["action_id"] == nil {
				e["action_id"] = s.newID("a")
			}
		}
	}
}

var interactive = map[string]bool{
	"button": true, "overflow": true, "static_select": true, "checkboxes": true, "radio_buttons": true, "plain_text_input": true,
}

// cut cuts a text that is too long, and warns.
// Source: https://docs.slack.dev/reference/methods/chat.postMessage, "Truncating content"
func (c *call) cut(text string) string {
	limit := maxText
	if c.keep > 0 {
		limit = c.keep
	}
	short := firstRunes(text, limit)
	if len(short) < len(text) || c.keep > 0 {
		c.warnings = append(c.warnings, "message_truncated")
	}
	return short
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}

var timestamp = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{6}$`)

// thread is the parent of a reply. A reply to what is gone is posted outside of any thread, without a word.
func (s *Server) thread(c *call) (string, error) {
	ts := c.Params["thread_ts"]
	switch {
	case ts == "":
		return "", nil
	case !timestamp.MatchString(ts):
		return "", refuse("invalid_arguments", "[ERROR] thread_ts is no timestamp [json-pointer:/thread_ts]")
	}
	parent := s.posted(c.Params["channel"], ts)
	switch {
	case parent == nil:
		return "", nil
	case parent.ThreadTS != "":
		return parent.ThreadTS, nil // a reply's replies are its parent's
	}
	return ts, nil
}

// compose reads a new message, as far as both ways of posting are alike.
func (s *Server) compose(c *call) (m Message, err error) {
	channel, err := s.open(c.Params["channel"])
	if err != nil {
		return m, err
	}
	v, hasBlocks, err := s.content(c)
	if err != nil {
		return m, err
	}
	if strings.TrimSpace(v.Text) == "" && (!hasBlocks || len(v.Blocks) == 0) {
		return m, refuse("no_text")
	}
	thread, err := s.thread(c)
	return Message{Channel: channel.ID, ThreadTS: thread, User: BotUser, Version: v, Params: c.Params}, err
}

func (s *Server) postMessage(c *call) (reply, error) {
	m, err := s.compose(c)
	if err != nil {
		return nil, err
	}
	m.Text = c.cut(m.Text)
	m.TS = format(s.clock.next())
	s.messages = append(s.messages, m)
	return reply{"channel": m.Channel, "ts": m.TS, "message": s.messageObject(m)}, nil
}

// Source: https://docs.slack.dev/reference/methods/chat.postEphemeral
func (s *Server) postEphemeral(c *call) (reply, error) {
	m, err := s.compose(c)
	if err != nil {
		return nil, err
	}
	if utf8.RuneCountInString(m.Text) > maxText {
		return nil, refuse("msg_too_long")
	}
	if u, ok := s.user(c.Params["user"]); !ok || u.Deleted {
		return nil, refuse("user_not_in_channel")
	}
	m.TS, m.To = format(s.clock.next()), c.Params["user"]
	s.messages = append(s.messages, m)
	return reply{"message_ts": m.TS}, nil
}

// updateMessage edits in place. Blocks that are left out stay; an empty array takes them away.
// Source: https://docs.slack.dev/reference/methods/chat.update
func (s *Server) updateMessage(c *call) (reply, error) {
	channel, err := s.channel(c.Params["channel"])
	if err != nil {
		return nil, err
	}
	m := s.posted(channel.ID, c.Params["ts"])
	switch {
	case m == nil:
		return nil, refuse("message_not_found")
	case m.User != BotUser:
		return nil, refuse("cant_update_message")
	case channel.IsArchived:
		return nil, refuse("is_inactive")
	}
	v, hasBlocks, err := s.content(c)
	if err != nil {
		return nil, err
	}
	if !hasBlocks {
		v.RawBlocks, v.Blocks = m.RawBlocks, m.Blocks
	}
	switch {
	case utf8.RuneCountInString(v.Text) > maxUpdateText:
		return nil, refuse("msg_too_long")
	case strings.TrimSpace(v.Text) == "" && len(v.Blocks) == 0:
		return nil, refuse("no_text")
	}
	if c.keep > 0 {
		v.Text = c.cut(v.Text)
	}
	m.change(v, s.clock.next())
	return reply{"channel": m.Channel, "ts": m.TS, "text": echoMarkup(m.Text), "message": s.messageObject(*m)}, nil
}

// Source: https://docs.slack.dev/reference/methods/chat.delete
func (s *Server) deleteMessage(c *call) (reply, error) {
	channel, err := s.channel(c.Params["channel"])
	if err != nil {
		return nil, err
	}
	m := s.posted(channel.ID, c.Params["ts"])
	switch {
	case m == nil:
		return nil, refuse("message_not_found")
	case m.User != BotUser:
		return nil, refuse("cant_delete_message")
	}
	m.Deleted = true
	return reply{"channel": m.Channel, "ts": m.TS}, nil
}

// Source: https://docs.slack.dev/reference/methods/chat.getPermalink
func (s *Server) getPermalink(c *call) (reply, error) {
	channel, err := s.channel(c.Params["channel"])
	if err != nil {
		return nil, err
	}
	m := s.posted(channel.ID, c.Params["message_ts"])
	if m == nil {
		return nil, refuse("message_not_found")
	}
	link := s.site() + "archives/" + m.Channel + "/p" + strings.Replace(m.TS, ".", "", 1)
	if m.ThreadTS != "" {
		link += "?thread_ts=" + m.ThreadTS + "&cid=" + m.Channel
	}
	return reply{"channel": m.Channel, "permalink": link}, nil
}
