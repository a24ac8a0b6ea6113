package slack

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"countersign/transports"
)

// posted is a yes to chat.postMessage: what makes it one.
type posted struct {
	Channel string `json:"channel"`
	TS      string `json:"ts"`
}

var anyTS = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

// read wants channel and ts. Without them the yes proves nothing.
func (p *posted) read(r *reply) error {
	if err := json.Unmarshal(r.body, p); err != nil {
		return errNoSense
	}
	if !channelID.MatchString(p.Channel) || !anyTS.MatchString(p.TS) {
		return fmt.Errorf("%w: ok is true, without channel and ts", errNoSense)
	}
	return nil
}

// receipt compares what Slack echoes with what was sent. A part that isn't there, or
// isn't what it should be, takes nothing from the yes.
func (p *posted) receipt(m transports.Message, r *reply, hide secrets) transports.Receipt {
	var more struct {
		Warning  json.RawMessage `json:"warning"`
		Metadata json.RawMessage `json:"response_metadata"`
		Message  json.RawMessage `json:"message"`
	}
	_ = json.Unmarshal(r.body, &more) // raw parts of what was an object above
	warnings, cut := warningsOf(more.Warning, more.Metadata)
	notes, differs := echoOf(more.Message).compare(m)
	if p.Channel != m.Channel {
		notes, differs = append(notes, "it went to channel "+p.Channel), true
	}
	return transports.Receipt{
		Coordinate: p.Channel + ":" + p.TS,
		Altered:    cut || differs,
		Detail:     hide.clean(strings.Join(append(warnings, notes...), "; ")),
	}
}

// warningsOf are the codes of both places in which Slack puts them, and if one of them
// says that the text was cut (message_truncated).
func warningsOf(warning, metadata json.RawMessage) (notes []string, cut bool) {
	var (
		joined string
		listed struct {
			Warnings []string `json:"warnings"`
		}
	)
	_ = json.Unmarshal(warning, &joined)
	_ = json.Unmarshal(metadata, &listed)
	codes := append(strings.Split(joined, ","), listed.Warnings...)
	for i, code := range codes {
		if code == "" || slices.Contains(codes[:i], code) {
			continue
		}
		cut = cut || strings.Contains(code, "truncat")
		notes = append(notes, "Slack warns: "+code)
	}
	return notes, cut
}

// An echo is what Slack says that it posted; a nil field wasn't said.
type echo struct {
	Text     *string `json:"text"`
	ThreadTS *string `json:"thread_ts"`
}

func echoOf(message json.RawMessage) (e *echo) {
	if json.Unmarshal(message, &e) != nil {
		return nil
	}
	return e
}

// compare notes what the echo has different.
func (e *echo) compare(m transports.Message) (notes []string, differs bool) {
	if e == nil || e.Text == nil {
		return []string{"the reply has no echo of the text"}, false
	}
	if m.Thread != "" && (e.ThreadTS == nil || *e.ThreadTS != m.Thread) {
		notes, differs = append(notes, "it is not in the thread"), true // whose parent may be gone
	}
	if plain := unescape(*e.Text); !Echoes(m.Text, *e.Text) {
		notes, differs = append(notes, fmt.Sprintf("the text came back different from character %d on, with %d %s of %d",
			common(plain, m.Text)+1, utf16Units(plain), units, utf16Units(m.Text))), true
	}
	return notes, differs
}

// Echoes tells whether what Slack says of a posted text is that text: its escapes and links undone, and any name taken for an emoji.
func Echoes(text, echoed string) bool {
	plain := unescape(echoed)
	return plain == text || sameButEmoji(text, plain)
}

// markup is what Slack wraps in angle brackets. Those of the text came back as entities.
var markup = regexp.MustCompile(`<([^<>|]*)(?:\|([^<>]*))?>`)

// entities are undone in one pass, so that &amp;lt; is &lt; again and no more.
var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// unescape undoes what Slack does to plain text: links in <...>, then the entities
// (https://docs.slack.dev/messaging/formatting-message-text).
func unescape(text string) string {
	return entities.Replace(markup.ReplaceAllStringFunc(text, unlink))
}

// linkPrefixes are what Slack puts before a text to make it a link.
var linkPrefixes = []string{"http://", "https://", "mailto:", "tel:"}

// unlink gives the text that became a link. Mentions, and links to elsewhere than their
// text says, stay as they are: they were not in the text.
func unlink(link string) string {
	parts := markup.FindStringSubmatch(link)
	target, label := parts[1], parts[2]
	isLink := slices.ContainsFunc(linkPrefixes, func(prefix string) bool { return strings.HasPrefix(target, prefix) })
	switch {
	case label == "" && (isLink || strings.Contains(target, "://")):
		return target
	case label == target:
		return label
	case isLink && slices.ContainsFunc(linkPrefixes, func(prefix string) bool { return prefix+label == target }):
		return label
	}
	return link
}

// emojiName is the "colon" form in which Slack keeps an emoji, with its skin tone.
var emojiName = regexp.MustCompile(`^:[a-z0-9_+'-]+:(:skin-tone-[2-6]:)?`)

// sameButEmoji compares, taking any name for an emoji: Slack says that it keeps emoji by
// name (https://docs.slack.dev/messaging/formatting-message-text, "Emoji"), and shows
// them as they were.
func sameButEmoji(text, echoed string) bool {
	clusters := graphemes.FromString(text)
	for clusters.Next() {
		if rest, same := strings.CutPrefix(echoed, clusters.Value()); same {
			echoed = rest
			continue
		}
		name := emojiName.FindString(echoed)
		if name == "" || !isPicture(clusters.Value()) {
			return false
		}
		echoed = echoed[len(name):]
	}
	return echoed == ""
}

// keycap makes a picture of the digit before it.
const keycap = '\u20e3'

// isPicture tells if a cluster could be an emoji: a symbol or mark beyond ASCII, but no
// sign of money, or a keycap.
func isPicture(cluster string) bool {
	return strings.ContainsFunc(cluster, func(r rune) bool {
		mark := unicode.IsSymbol(r) && !unicode.Is(unicode.Sc, r) || unicode.IsPunct(r) || r == 'ℹ'
		return r == keycap || r > unicode.MaxASCII && mark
	})
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
