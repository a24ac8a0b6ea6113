package fakeslack

import (
	"slices"
	"strconv"
	"strings"
)

// authTest tells who the token is for.
// Source: https://docs.slack.dev/reference/methods/auth.test
func (s *Server) authTest(*call) (reply, error) {
	bot, _ := s.user(BotUser)
	return reply{
		"url": s.site(), "team": s.team.Name, "user": bot.Name, "team_id": s.team.ID, "user_id": BotUser, "bot_id": BotID,
		"is_enterprise_install": false,
	}, nil
}

func (s *Server) site() string { return "https://" + s.team.Domain + ".slack.com/" }

// Source: https://docs.slack.dev/reference/methods/conversations.info
func (s *Server) conversationsInfo(c *call) (reply, error) {
	found, err := s.channel(c.Params["channel"])
	if err != nil {
		return nil, err
	}
	return reply{"channel": s.object(found)}, nil
}

// maxPage is the largest limit of a page; defaultPage is one without a limit.
// Source: https://docs.slack.dev/reference/methods/conversations.list
const (
	maxPage     = 1_000
	defaultPage = 100
)

func (s *Server) conversationsList(c *call) (reply, error) {
	limit, start := defaultPage, 0
	if text := c.Params["limit"]; text != "" && text != "0" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxPage {
			return nil, refuse("invalid_limit")
		}
		limit = n
	}
	if cursor := c.Params["cursor"]; cursor != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(cursor, "next:"))
		if err != nil || n < 0 || n > len(s.channels) {
			return nil, refuse("invalid_cursor")
		}
		start = n
	}
	end := min(start+limit, len(s.channels))
	page, next := []any{}, ""
	for _, found := range s.channels[start:end] {
		if s.listed(found, c) {
			page = append(page, s.object(found))
		}
	}
	if end < len(s.channels) {
		next = "next:" + strconv.Itoa(end)
	}
	return reply{"channels": page, "response_metadata": map[string]any{"next_cursor": next}}, nil
}

// listed tells whether a channel is among those asked for. A page is filtered after it was cut, as Slack says that it does.
func (s *Server) listed(c Channel, asked *call) bool {
	kind := "public_channel"
	switch {
	case c.IsIM:
		kind = "im"
	case c.IsMpIM:
		kind = "mpim"
	case c.IsPrivate:
		kind = "private_channel"
	}
	kinds := []string{"public_channel"}
	if types := asked.Params["types"]; types != "" {
		kinds = strings.Split(types, ",")
	}
	archived := c.IsArchived && isTrue(asked.Params["exclude_archived"])
	return slices.Contains(kinds, kind) && !archived && (kind == "public_channel" || c.member())
}

func isTrue(text string) bool { return text == "true" || text == "1" }

// Source: https://docs.slack.dev/reference/methods/users.info
func (s *Server) usersInfo(c *call) (reply, error) {
	u, ok := s.user(c.Params["user"])
	if !ok {
		return nil, refuse("user_not_found")
	}
	return reply{"user": u.object()}, nil
}
