package telegram

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	tgbotapi "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"countersign/transports"
)

// MaxText is the most UTF-16 units of a text. The documentation of sendMessage says
// 1 to 4096 characters; an emoji has two units, so counting these is safe under
// every reading of "character".
const MaxText = 4096

// A target is a destination as the API takes it.
type target struct {
	chat  string // id or @name
	id    int64  // of the chat, 0 for a name
	topic int64  // message_thread_id, 0 is none
	reply int64  // message_id, 0 is none
}

// params are those of sendMessage. The library's MessageConfig knows neither topics
// nor what replaced its reply_to_message_id and disable_web_page_preview in Bot API
// 7.0. A reply to a message that is gone fails, as without
// allow_sending_without_reply it does by default: it would land elsewhere.
func (to target) params(text string) (tgbotapi.Params, error) {
	p := tgbotapi.Params{"chat_id": to.chat, "text": text}
	p.AddNonZero64("message_thread_id", to.topic)
	if to.reply != 0 {
		if err := p.AddInterface("reply_parameters", map[string]int64{"message_id": to.reply}); err != nil {
			return nil, err
		}
	}
	err := p.AddInterface("link_preview_options", map[string]bool{"is_disabled": true})
	return p, err
}

// Validate refuses what Telegram wouldn't take or would change.
func (t *Transport) Validate(m transports.Message) error {
	_, err := parseMessage(m)
	return err
}

// parseMessage is Validate, and says where the message goes.
func parseMessage(m transports.Message) (target, error) {
	if err := transports.CheckMessage(m); err != nil {
		return target{}, err
	}
	if m.Subject != "" {
		return target{}, refuse("subject", "must be empty: Telegram messages have none")
	}
	to, err := parseChat(m.Channel)
	if err != nil {
		return target{}, err
	}
	if to.topic, to.reply, err = parseThread(m.Thread); err != nil {
		return target{}, err
	}
	return to, checkText(m.Text)
}

func refuse(field, reason string) error {
	return &transports.ValidationError{Field: field, Reason: reason}
}

// publicName is a name as Telegram gives them away, in one of its spellings, so that
// one chat is one destination.
var publicName = regexp.MustCompile(`^@[a-z][a-z0-9_]{3,31}$`)

func parseChat(channel string) (target, error) {
	if strings.HasPrefix(channel, "@") {
		if !publicName.MatchString(channel) {
			return target{}, refuse("channel", "is not a public name in lower case like @acme_support: "+
				"4 to 32 letters, digits and underscores")
		}
		return target{chat: channel}, nil
	}
	id, ok := canonical(channel, 64)
	if !ok || id == 0 {
		return target{}, refuse("channel", "is neither a chat id like -1001234567890 nor a public name like @acme_support")
	}
	return target{chat: channel, id: id}, nil
}

// threadForm has the forms of the package documentation.
var threadForm = regexp.MustCompile(`^(?:([0-9]+)|reply:([0-9]+)|([0-9]+)/reply:([0-9]+))$`)

func parseThread(thread string) (topic, reply int64, err error) {
	if thread == "" {
		return 0, 0, nil
	}
	part := threadForm.FindStringSubmatch(thread)
	if part == nil {
		part = make([]string, 5)
	}
	topic, isTopic := positive(part[1] + part[3])
	reply, isReply := positive(part[2] + part[4])
	if !isTopic || !isReply || topic+reply == 0 {
		return 0, 0, refuse("thread", "is none of 42 (a topic), reply:7 (a reply to message 7) and 42/reply:7")
	}
	return topic, reply, nil
}

// positive reads the id of a topic or message, which has 32 bits; "" is 0, none.
func positive(s string) (int64, bool) {
	if s == "" {
		return 0, true
	}
	n, ok := canonical(s, 32)
	return n, ok && n > 0
}

// canonical reads a decimal that is written in the one way it can be written.
func canonical(s string, bits int) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, bits)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// checkText refuses what the server would change. White space around the text is
// removed; a text of nothing else is "empty". The single characters are those of
// clean_input_string in TDLib (td/telegram/misc.cpp), on which the server is built.
func checkText(text string) error {
	if n := units(text); n > MaxText {
		return &transports.ValidationError{Field: "text", Limit: MaxText, Size: n, Unit: "UTF-16 units", Reason: "is too long"}
	}
	if strings.TrimFunc(text, blank) == "" {
		return refuse("text", "has nothing that can be seen, which Telegram takes for empty")
	}
	if strings.TrimSpace(text) != text {
		return refuse("text", "begins or ends with white space, which Telegram removes")
	}
	for _, r := range text {
		if reason := dropped(r); reason != "" {
			return refuse("text", reason)
		}
	}
	return nil
}

// units counts UTF-16 units.
func units(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// blank tells characters that show nothing.
func blank(r rune) bool {
	switch r {
	case '\u115f', '\u1160', '\u2800', '\u3164', '\uffa0': // fillers and the empty braille pattern
		return true
	}
	return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
}

// dropped says why a character would not arrive, or "".
func dropped(r rune) string {
	switch {
	case r < ' ' && r != '\n' && r != '\t':
		return "has a control character, which Telegram removes or replaces"
	case '\u2028' <= r && r <= '\u202e':
		return "has a line separator or bidirectional control (U+2028 to U+202E), which Telegram removes"
	case r == '\u030a' || r == '\u0333' || r == '\u033f':
		return "has a combining ring or double line (U+030A, U+0333, U+033F), which Telegram removes; å as one character is kept"
	}
	return ""
}
