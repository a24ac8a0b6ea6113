package fakeslack

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// maxResponses is how often a response URL can be used.
// Source: https://docs.slack.dev/interactivity/handling-user-interaction, "Message responses"
const maxResponses = 5

// responseURL is one that was given out with a click.
type responseURL struct {
	channel, ts, thread, user string
	posts                     [][]byte
	expired                   bool
}

// newResponseURL makes one for a click. s.mu is held.
func (s *Server) newResponseURL(m Message, user string) string {
	id := s.newID("r")
	s.replies[id] = &responseURL{channel: m.Channel, ts: m.TS, thread: m.ThreadTS, user: user}
	return s.http.URL + "/actions/" + id
}

// Responses are the bodies that were posted to a response URL, in order, refused ones too.
func (s *Server) Responses(url string) [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.replies[url[strings.LastIndexByte(url, '/')+1:]]
	if !ok {
		return nil
	}
	return append([][]byte(nil), known.posts...)
}

// ExpireResponseURLs lets all response URLs given out so far expire, as Slack does after 30 minutes.
func (s *Server) ExpireResponseURLs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.replies {
		known.expired = true
	}
}

// serveResponseURL answers "ok" as text, or an error as JSON with 404 or 500, as Slack does.
func (s *Server) serveResponseURL(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	known, ok := s.replies[r.PathValue("id")]
	if !ok {
		writeJSON(w, http.StatusNotFound, encode(refuseReply("invalid_url")))
		return
	}
	known.posts = append(known.posts, body)
	if known.expired || len(known.posts) > maxResponses {
		writeJSON(w, http.StatusNotFound, encode(refuseReply("expired_url")))
		return
	}
	if err := s.respond(known, body); err != nil {
		writeJSON(w, http.StatusInternalServerError, encode(err.(*refusal).reply()))
		return
	}
	_, _ = io.WriteString(w, "ok")
}

func refuseReply(code string) reply { return reply{"ok": false, "error": code} }

// respond does what a message to a response URL asks for.
func (s *Server) respond(to *responseURL, body []byte) error {
	var asked struct {
		Text     string          `json:"text"`
		Blocks   json.RawMessage `json:"blocks"`
		Type     string          `json:"response_type"`
		ThreadTS string          `json:"thread_ts"`
		Replace  bool            `json:"replace_original"`
		Delete   bool            `json:"delete_original"`
	}
	if json.Unmarshal(body, &asked) != nil {
		return refuse("invalid_payload")
	}
	original := s.posted(to.channel, to.ts)
	if asked.Delete {
		if original != nil {
			original.Deleted = true
		}
		return nil
	}
	v := Version{Text: asked.Text}
	if blocks := string(asked.Blocks); blocks != "" && blocks != "null" {
		var err error
		if v, err = s.withBlocks(v, asked.Blocks); err != nil {
			return err
		}
	}
	switch {
	case strings.TrimSpace(v.Text) == "" && len(v.Blocks) == 0:
		return refuse("no_text")
	case utf8.RuneCountInString(v.Text) > maxText:
		return refuse("msg_too_long")
	case asked.Replace && original != nil:
		original.change(v, s.clock.next())
		return nil
	}
	m := Message{Channel: to.channel, TS: format(s.clock.next()), ThreadTS: asked.ThreadTS, User: BotUser, Version: v}
	if asked.Type != "in_channel" {
		m.To = to.user
	}
	s.messages = append(s.messages, m)
	return nil
}
