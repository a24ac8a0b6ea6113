package slack

import (
	"time"

	"countersign/transports"
)

// everyOfChannel is the limit beyond which Slack starts to answer 429
// (https://docs.slack.dev/apis/web-api/rate-limits, "Posting messages"). What a workspace
// may post in all, "several hundred messages per minute", has no number to keep to.
const everyOfChannel = time.Second

var _ transports.Pacer = (*Transport)(nil)

// Pace returns the channel's limit; its threads share it.
func (t *Transport) Pace(m transports.Message) []transports.Pace {
	return []transports.Pace{{Scope: "channel " + m.Channel, Every: everyOfChannel}}
}
