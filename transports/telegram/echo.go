package telegram

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"countersign/transports"
)

// An echo is what the reply to sendMessage says of the message. It has only what is
// looked at, and what is not needed for a yes is taken as it comes: the library's type
// would turn a confirmed message into a doubtful one for a field that nobody reads.
type echo struct {
	MessageID int64 `json:"message_id"`
	Chat      struct {
		ID int64 `json:"id"`
	} `json:"chat"`
	Text    json.RawMessage `json:"text"`
	Topic   json.RawMessage `json:"message_thread_id"`
	ReplyTo json.RawMessage `json:"reply_to_message"`
}

// read wants the two ids. Without them the yes proves nothing.
func (e *echo) read(result json.RawMessage) error {
	if err := json.Unmarshal(result, e); err != nil {
		return err
	}
	if e.MessageID <= 0 || e.Chat.ID == 0 {
		return fmt.Errorf("%w: it names no message in a chat", errNoSense)
	}
	return nil
}

// receipt compares the echo with what was sent.
func (e *echo) receipt(to target, text, bot string) transports.Receipt {
	differs := e.differences(to, text)
	return transports.Receipt{
		Coordinate: fmt.Sprintf("%d:%d", e.Chat.ID, e.MessageID),
		Altered:    len(differs) > 0,
		Detail:     strings.Join(append([]string{"sent as " + bot}, differs...), "; "),
	}
}

func (e *echo) differences(to target, text string) (found []string) {
	if to.id != 0 && e.Chat.ID != to.id {
		found = append(found, fmt.Sprintf("it went to chat %d", e.Chat.ID))
	}
	if to.topic != 0 && number(e.Topic) != to.topic {
		found = append(found, "it is not in the topic")
	}
	var replied struct {
		MessageID json.RawMessage `json:"message_id"`
	}
	_ = json.Unmarshal(e.ReplyTo, &replied)
	if to.reply != 0 && number(replied.MessageID) != to.reply {
		found = append(found, "it is not a reply to the message")
	}
	var echoed string
	if err := json.Unmarshal(e.Text, &echoed); err != nil {
		return append(found, "the text did not come back")
	}
	if echoed != text {
		found = append(found, fmt.Sprintf("the text came back different from character %d on, with %d UTF-16 units of %d",
			common(echoed, text)+1, units(echoed), units(text)))
	}
	return found
}

// number reads an id, quoted or not; 0 is none.
func number(raw json.RawMessage) int64 {
	n, _ := strconv.ParseInt(strings.Trim(string(raw), `"`), 10, 64)
	return n
}

// common counts the characters that a and b begin with.
func common(a, b string) int {
	x, y := []rune(a), []rune(b)
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return n
}
