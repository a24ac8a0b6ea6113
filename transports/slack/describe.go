package slack

import (
	"context"
	"encoding/json"

	"countersign/transports"
)

var _ transports.Describer = (*Transport)(nil)

// Describe asks conversations.info for a channel's name, and whether people of other organisations are in it
// (https://docs.slack.dev/reference/objects/conversation-object). The error is a *transports.PrepareError.
func (t *Transport) Describe(ctx context.Context, channel string) (transports.Description, error) {
	s, f := t.session()
	if f != nil {
		return transports.Description{}, f.notPrepared()
	}
	ctx, cancel := context.WithTimeout(ctx, t.config.Timeout)
	defer cancel()
	r, f := s.info(ctx, channel)
	if f != nil {
		return transports.Description{}, f.notPrepared()
	}
	var answer struct {
		Channel struct {
			Name       string `json:"name"`
			User       string `json:"user"` // of a direct message, which has no name
			IsIM       bool   `json:"is_im"`
			IsExternal bool   `json:"is_ext_shared"`
			IsPending  bool   `json:"is_pending_ext_shared"`
			IsShared   bool   `json:"is_org_shared"`
		} `json:"channel"`
	}
	if err := json.Unmarshal(r.body, &answer); err != nil {
		return transports.Description{}, (&fault{stage: conversationsInfo, err: errNoSense}).notPrepared()
	}
	c := answer.Channel
	d := transports.Description{External: c.IsExternal || c.IsPending || c.IsShared}
	switch {
	case c.IsIM:
		d.Name = "direct message with " + s.hide.clean(c.User)
	case c.Name != "":
		d.Name = "#" + s.hide.clean(c.Name)
	}
	return d, nil
}
