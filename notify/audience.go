package notify

import (
	"context"
	"errors"
	"fmt"

	slackgo "github.com/slack-go/slack"
)

// Internal is the one destination that may see internal metadata, once it has been verified.
type Internal struct {
	Team    string // the workspace's id
	Channel string // the channel's id
}

// UnverifiedError says why nothing is told: the channel is not, or can't be shown to be, read by our own people alone.
type UnverifiedError struct {
	Reason string
	Err    error // of asking; may be nil
}

func (e *UnverifiedError) Error() string {
	return "the internal channel is not verified, so nothing was told and the notices wait: " + e.Reason
}

// Unwrap returns why Slack could not be asked.
func (e *UnverifiedError) Unwrap() error { return e.Err }

// Verify asks Slack who we are and who reads the channel. Only the right workspace and the right channel, shared with nobody and no
// direct message, is an internal surface; whatever is not known for sure counts as not internal. The error is an *UnverifiedError.
// Source: https://docs.slack.dev/reference/objects/conversation-object
func (n *Notifier) Verify(ctx context.Context) error {
	if n.internal.Team == "" || n.internal.Channel == "" {
		return &UnverifiedError{Reason: "[internal] names no workspace, or no channel"}
	}
	who, err := n.api.AuthTestContext(ctx)
	if err != nil {
		return unasked("auth.test", err)
	}
	if who.TeamID != n.internal.Team {
		return &UnverifiedError{Reason: fmt.Sprintf("the token is for workspace %q, [internal] names %q", who.TeamID, n.internal.Team)}
	}
	c, err := n.api.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: n.internal.Channel})
	if err != nil {
		return unasked("conversations.info", err)
	}
	if why := n.foreign(c); why != "" {
		return &UnverifiedError{Reason: why}
	}
	return nil
}

// unasked names the method and Slack's own code. Other words of an error could hold what is secret, and so could what it wraps: only a
// rate limit is kept, since it says when to ask again.
func unasked(method string, err error) error {
	var said slackgo.SlackErrorResponse
	var limited *slackgo.RateLimitedError
	switch {
	case errors.As(err, &said):
		return &UnverifiedError{Reason: fmt.Sprintf("%s: %s", method, code(said.Err))}
	case errors.As(err, &limited):
		return &UnverifiedError{Reason: method + ": Slack's rate limit was met", Err: limited}
	case errors.Is(err, context.Canceled):
		return &UnverifiedError{Reason: method + " was broken off", Err: context.Canceled}
	}
	return &UnverifiedError{Reason: method + " was not answered"}
}

// foreign says why a channel is not ours alone, or "".
func (n *Notifier) foreign(c *slackgo.Channel) string {
	switch {
	case c.ID != n.internal.Channel:
		return fmt.Sprintf("Slack answers with channel %q", c.ID)
	case c.IsIM || c.IsMpIM || c.User != "":
		return "it is a direct message"
	case c.IsExtShared || c.IsPendingExtShared || len(c.PendingShared) > 0:
		return "it is shared with another organisation, or about to be"
	case c.IsOrgShared || c.IsShared || c.IsGlobalShared:
		return "it is shared with another workspace"
	case c.IsArchived:
		return "it is archived"
	case c.ContextTeamID != n.internal.Team:
		return fmt.Sprintf("it belongs to workspace %q", c.ContextTeamID)
	case n.others(c.ConnectedTeamIDs, c.SharedTeamIDs, c.InternalTeamIDs):
		return "other workspaces are connected to it"
	case !c.IsMember:
		return "the app is not in it; invite the app"
	}
	return ""
}

func (n *Notifier) others(lists ...[]string) bool {
	for _, teams := range lists {
		for _, team := range teams {
			if team != n.internal.Team {
				return true
			}
		}
	}
	return false
}
