package telegram

import (
	"context"
	"encoding/json"
	"strings"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"countersign/transports"
)

var _ transports.Describer = (*Transport)(nil)

// Describe asks getChat for a chat's title, or a person's name (https://core.telegram.org/bots/api#chatfullinfo). Everybody there is
// outside of the organisation, as far as Telegram can say. The error is a *transports.PrepareError.
func (t *Transport) Describe(ctx context.Context, channel string) (transports.Description, error) {
	to, err := parseMessage(transports.Message{Platform: "telegram", Channel: channel, Text: "?"})
	if err != nil {
		return transports.Description{}, localFault(stageMessage, err).notPrepared()
	}
	opened, err := t.Connect(ctx)
	if err != nil {
		return transports.Description{}, err
	}
	defer opened.Close()
	s := opened.(*session)
	var chat struct {
		Title     string `json:"title"`
		FirstName string `json:"first_name"`
		LastName  string `json:"last_name"`
		UserName  string `json:"username"`
	}
	if f := s.call(ctx, getChat, tgbotapi.Params{"chat_id": to.chat}, func(result json.RawMessage) error {
		return json.Unmarshal(result, &chat)
	}); f != nil {
		return transports.Description{}, f.notPrepared()
	}
	name := strings.TrimSpace(chat.Title + " " + strings.TrimSpace(chat.FirstName+" "+chat.LastName))
	if chat.UserName != "" {
		name = strings.TrimSpace(name + " @" + chat.UserName)
	}
	if s.hide.In(name) {
		name = ""
	}
	return transports.Description{Name: name, External: true}, nil
}
