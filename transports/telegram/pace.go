package telegram

import (
	"time"

	"countersign/transports"
)

// The limits beyond which Telegram starts to answer 429. Source: https://core.telegram.org/bots/faq#my-bot-is-hitting-limits-how-do-i-avoid-this
const (
	everyOfBot   = time.Second / 30
	everyOfChat  = time.Second
	everyOfGroup = time.Minute / 20
)

// Pace returns the bot's and the chat's limit. A name may be a group's, so that it counts as one.
func (t *Transport) Pace(m transports.Message) []transports.Pace {
	every := everyOfGroup
	if to, err := parseChat(m.Channel); err == nil && to.id > 0 {
		every = everyOfChat
	}
	return []transports.Pace{{Scope: "bot", Every: everyOfBot}, {Scope: "chat " + m.Channel, Every: every}}
}

var _ transports.Pacer = (*Transport)(nil)
