package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"countersign/transports"
)

// https://docs.slack.dev/reference/methods/conversations.list: limit under 1,000, and
// some 20 calls a minute.
const (
	pageSize = 999
	maxPages = 20
	// maxName is what a channel's name may have (conversations.create).
	maxName = 80
)

var _ transports.Resolver = (*Transport)(nil)

// Resolve turns a #name into the id of the one channel, public or private, that the app
// sees under exactly that name and that isn't archived; an id is returned as it is. It is
// meant for the moment of filing, and only for that: names change hands.
//
// The error is a *transports.ValidationError where no channel, or more than one, has the
// name, and a *transports.PrepareError where Slack could not be asked.
func (t *Transport) Resolve(ctx context.Context, channel string) (string, error) {
	if channelID.MatchString(channel) {
		return channel, nil
	}
	name, is := strings.CutPrefix(channel, "#")
	if !is || !isName(name) {
		return "", refuse("channel", "is neither an id like C0123ABCD nor a name like #general")
	}
	s, f := t.session()
	if f != nil {
		return "", f.notPrepared()
	}
	ids, f := s.search(ctx, name)
	switch {
	case f != nil:
		return "", f.notPrepared()
	case len(ids) == 0:
		return "", refuse("channel", "is a name that no channel has which the app can see; invite the app, or give the id")
	case len(ids) > 1:
		return "", refuse("channel", "is the name of several channels; give the id of one: "+strings.Join(ids, ", "))
	}
	return ids[0], nil
}

func isName(name string) bool {
	odd := strings.ContainsFunc(name, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError })
	return name != "" && !odd && utf8.RuneCountInString(name) <= maxName
}

// search reads all pages: only the last tells that the name is there once.
func (s *session) search(ctx context.Context, name string) (ids []string, _ *fault) {
	cursor := ""
	for range maxPages {
		page, f := s.page(ctx, cursor)
		if f != nil {
			return nil, f
		}
		for _, c := range page.Channels {
			wanted := c.Name == name && !c.IsArchived && channelID.MatchString(c.ID)
			if wanted && !slices.Contains(ids, c.ID) { // pages may overlap
				ids = append(ids, c.ID)
			}
		}
		if page.Metadata.Cursor == "" {
			return ids, nil
		}
		cursor = page.Metadata.Cursor
	}
	return nil, localFault(conversationsList, fmt.Errorf("there are more than %d pages of channels; give the id", maxPages))
}

type channelPage struct {
	Channels []struct {
		ID         string `json:"id"`
		Name       string `json:"name"`
		IsArchived bool   `json:"is_archived"`
	} `json:"channels"`
	Metadata struct {
		Cursor string `json:"next_cursor"`
	} `json:"response_metadata"`
}

func (s *session) page(ctx context.Context, cursor string) (page channelPage, _ *fault) {
	ctx, cancel := context.WithTimeout(ctx, s.t.config.Timeout)
	defer cancel()
	r, f := s.ask(ctx, conversationsList, func(ctx context.Context, api *slackgo.Client) error {
		_, _, err := api.GetConversationsContext(ctx, &slackgo.GetConversationsParameters{
			Cursor: cursor, Limit: pageSize, ExcludeArchived: true, Types: []string{"public_channel", "private_channel"},
		})
		return err
	})
	if f != nil {
		return page, f
	}
	if err := json.Unmarshal(r.body, &page); err != nil {
		return page, &fault{stage: conversationsList, err: errNoSense}
	}
	return page, nil
}
