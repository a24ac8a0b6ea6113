package fakeslack

import (
	"regexp"
	"slices"
	"strings"
)

var (
	special  = regexp.MustCompile(`&(?:amp|lt|gt);|[&<>]`)
	marked   = regexp.MustCompile(`<[^<>]+>|https?://[^\s<>"|]+|&(?:amp|lt|gt);|[&<>]`)
	entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")
)

// Decode undoes Slack's three escapes, once.
// Source: https://docs.slack.dev/messaging/formatting-message-text, "Escaping text"
func Decode(text string) string { return entities.Replace(text) }

// escape is the form in which Slack keeps a text: the three characters escaped, what was escaped left as it is.
func escape(text string) string {
	return special.ReplaceAllStringFunc(text, func(found string) string {
		switch found {
		case "&":
			return "&amp;"
		case "<":
			return "&lt;"
		case ">":
			return "&gt;"
		}
		return found
	})
}

// echoMarkup is the same for a text that can hold markup, which is left, and with links wrapped.
func echoMarkup(text string) string {
	return marked.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case len(found) > 1 && found[0] == '<':
			return found
		case strings.HasPrefix(found, "http"):
			return "<" + escape(found) + ">"
		}
		return escape(found)
	})
}

// echoBlocks are the blocks as Slack gives them back.
func echoBlocks(blocks []Block) []Block {
	echoed := clone(blocks)
	for _, block := range echoed {
		walk(block, func(o map[string]any) {
			if o["type"] == "mrkdwn" && o["verbatim"] != true {
				o["text"] = echoMarkup(str(o["text"]))
				return
			}
			o["text"] = escape(str(o["text"]))
		})
	}
	return echoed
}

// DecodedTexts are the texts of all text objects of a message's blocks, as one reads them, with escapes undone once: those of a block from
// its text on, through its fields and elements, to the words of its confirmation dialogs.
func DecodedTexts(m Message) []string { return decodedTexts(m.Blocks) }

func decodedTexts(blocks []Block) (texts []string) {
	for _, block := range blocks {
		walk(block, func(o map[string]any) { texts = append(texts, Decode(o["text"].(string))) })
	}
	return texts
}

// inOrder are the members that hold text objects, as they are read.
var inOrder = []string{
	"title", "label", "text", "description", "hint", "fields", "elements", "element", "accessory", "placeholder", "options",
	"initial_option", "initial_options", "confirm", "deny",
}

// walk visits the text objects in what a block is made of.
func walk(v any, visit func(textObject map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walk(item, visit)
		}
	case map[string]any:
		if _, ok := v["text"].(string); ok {
			visit(v)
			return
		}
		for _, name := range inOrder {
			walk(v[name], visit)
		}
	}
}

// A Button of a message.
type Button struct {
	ActionID, BlockID, Value string
	Text                     string // decoded
	Style, URL               string
	Confirms                 bool // it asks once more

	raw map[string]any
}

// Buttons are a message's, in order.
func Buttons(m Message) (buttons []Button) {
	for _, block := range m.Blocks {
		elements, _ := block["elements"].([]any)
		for _, element := range append(slices.Clone(elements), block["accessory"]) {
			if e, ok := element.(map[string]any); ok && e["type"] == "button" {
				buttons = append(buttons, newButton(e, block))
			}
		}
	}
	return buttons
}

func newButton(e map[string]any, block Block) Button {
	text, _ := e["text"].(map[string]any)
	_, confirms := e["confirm"]
	return Button{
		ActionID: str(e["action_id"]), BlockID: str(block["block_id"]), Value: str(e["value"]), Text: Decode(str(text["text"])),
		Style: str(e["style"]), URL: str(e["url"]), Confirms: confirms, raw: e,
	}
}

// str is a string member, or "".
func str(v any) string {
	s, _ := v.(string)
	return s
}
