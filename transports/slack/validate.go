package slack

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/slack-go/slack/slackutilsx"

	"countersign/transports"
)

// Limits of a text, in characters
// (https://docs.slack.dev/reference/methods/chat.postMessage, "Truncating content":
// best below 4,000; beyond 40,000 it is cut).
const (
	DefaultText = 4000
	MaxText     = 40_000
)

const units = "UTF-16 units"

var (
	channelID = regexp.MustCompile(`^[CGD][A-Z0-9]+$`)
	threadTS  = regexp.MustCompile(`^[0-9]{10}\.[0-9]{6}$`)
)

// Validate refuses what could not arrive exactly, as far as Slack's pages tell. What they
// don't tell shows in the echo.
func (t *Transport) Validate(m transports.Message) error {
	if err := transports.CheckMessage(m); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(m.Channel, "#"):
		return refuse("channel", "is a name; only an id like C0123ABCD can be posted to")
	case !channelID.MatchString(m.Channel):
		return refuse("channel", "is not the id of a channel or direct message, like C0123ABCD")
	case m.Thread != "" && !threadTS.MatchString(m.Thread):
		return refuse("thread", "is not the ts of a message, like 1234567890.123456")
	case m.Subject != "":
		return refuse("subject", "is set, and Slack has none; leave it out")
	}
	return t.checkText(m.Text)
}

func refuse(field, reason string) error {
	return &transports.ValidationError{Field: field, Reason: reason}
}

func (t *Transport) checkText(text string) error {
	if strings.ContainsFunc(text, isStrange) {
		return refuse("text", "has a control character")
	}
	if strings.TrimSpace(text) == "" { // error no_text
		return refuse("text", "is only white space")
	}
	if size := utf16Units(text); size > t.config.TextLimit {
		return &transports.ValidationError{Field: "text", Limit: t.config.TextLimit, Size: size, Unit: units, Reason: "is too long"}
	}
	// Whether the entities count is not told.
	if size := utf16Units(slackutilsx.EscapeMessage(text)); size > MaxText {
		return &transports.ValidationError{
			Field: "text", Limit: MaxText, Size: size, Unit: units, Reason: "is too long once &, < and > are escaped",
		}
	}
	return nil
}

// isStrange tells what no cleaned text has; what Slack makes of it isn't told.
func isStrange(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

func utf16Units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
