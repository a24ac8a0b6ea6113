package fakeslack

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"
)

// x is n characters, of more than one octet each.
func x(n int) string { return strings.Repeat("é", n) }

// times joins n of them, numbered.
func times(n int, one string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = strings.ReplaceAll(one, "#", strconv.Itoa(i))
	}
	return strings.Join(all, ",")
}

func plainJSON(n int) string {
	return fmt.Sprintf(`{"type":"plain_text","text":"%s","emoji":false}`, x(n))
}

const (
	okText   = `{"type":"plain_text","text":"t"}`
	okButton = `{"type":"button","action_id":"a#","text":` + okText + `}`
	okOption = `{"text":` + okText + `,"value":"v#"}`
	okDialog = `"title":` + okText + `,"text":` + okText + `,"confirm":` + okText + `,"deny":` + okText
)

// button1 is an actions block with one button that has more members.
func button1(members string) string {
	return `[{"type":"actions","elements":[{"type":"button","text":` + okText + `,` + members + `}]}]`
}

// input1 is an input block whose element has more members.
func input1(members string) string {
	return `[{"type":"input","label":` + okText + `,"element":{"type":"plain_text_input"` + members + `}}]`
}

func dialog1(member string, n int) string {
	return button1(`"confirm":{` + strings.Replace(`{`+okDialog+`}`, `"`+member+`":`+okText, `"`+member+`":`+plainJSON(n), 1)[1:])
}

// edges are the documented limits of a message's blocks: what has n of it, and where the complaint points to.
var edges = []struct {
	name    string
	limit   int
	blocks  func(n int) string
	pointer string
}{
	{"blocks a message", 50, func(n int) string { return `[` + times(n, `{"type":"divider"}`) + `]` }, "/blocks]"},
	{"block_id", 255, func(n int) string { return `[{"type":"divider","block_id":"` + x(n) + `"}]` }, "/blocks/0/block_id]"},
	{"header", 150, func(n int) string { return `[{"type":"header","text":` + plainJSON(n) + `}]` }, "/blocks/0/text/text]"},
	{"section text", 3_000, func(n int) string { return `[{"type":"divider"},{"type":"section","text":` + plainJSON(n) + `}]` }, "/blocks/1/text/text]"},
	{"section markdown", 3_000, func(n int) string {
		return `[{"type":"section","text":{"type":"mrkdwn","text":"` + x(n) + `"}}]`
	}, "/blocks/0/text/text]"},
	{"section fields", 10, func(n int) string { return `[{"type":"section","fields":[` + times(n, okText) + `]}]` }, "/blocks/0/fields]"},
	{"section field", 2_000, func(n int) string { return `[{"type":"section","fields":[` + plainJSON(n) + `]}]` }, "/blocks/0/fields/0/text]"},
	{"context elements", 10, func(n int) string { return `[{"type":"context","elements":[` + times(n, okText) + `]}]` }, "/blocks/0/elements]"},
	{"context text", 3_000, func(n int) string { return `[{"type":"context","elements":[` + plainJSON(n) + `]}]` }, "/blocks/0/elements/0/text]"},
	{"actions elements", 25, func(n int) string { return `[{"type":"actions","elements":[` + times(n, okButton) + `]}]` }, "/blocks/0/elements]"},
	{"button text", 75, func(n int) string {
		return `[{"type":"section","text":` + okText + `,"accessory":{"type":"button","text":` + plainJSON(n) + `}}]`
	}, "/blocks/0/accessory/text/text]"},
	{"action_id", 255, func(n int) string { return button1(`"action_id":"` + x(n) + `"`) }, "/elements/0/action_id]"},
	{"button value", 2_000, func(n int) string { return button1(`"value":"` + x(n) + `"`) }, "/elements/0/value]"},
	{"button url", 3_000, func(n int) string { return button1(`"url":"https://` + x(n-8) + `"`) }, "/elements/0/url]"},
	{"confirm title", 100, func(n int) string { return dialog1("title", n) }, "/confirm/title/text]"},
	{"confirm text", 300, func(n int) string { return dialog1("text", n) }, "/confirm/text/text]"},
	{"confirm confirm", 30, func(n int) string { return dialog1("confirm", n) }, "/confirm/confirm/text]"},
	{"confirm deny", 30, func(n int) string { return dialog1("deny", n) }, "/confirm/deny/text]"},
	{"input label", 2_000, func(n int) string {
		return `[{"type":"input","label":` + plainJSON(n) + `,"element":{"type":"plain_text_input"}}]`
	}, "/label/text]"},
	{"input hint", 2_000, func(n int) string {
		return `[{"type":"input","label":` + okText + `,"hint":` + plainJSON(n) + `,"element":{"type":"plain_text_input"}}]`
	}, "/hint/text]"},
	{"placeholder", 150, func(n int) string { return input1(`,"placeholder":` + plainJSON(n)) }, "/placeholder/text]"},
	{"max_length", 3_000, func(n int) string { return input1(`,"max_length":` + strconv.Itoa(n)) }, "/max_length]"},
	{"min_length", 3_000, func(n int) string { return input1(`,"min_length":` + strconv.Itoa(n)) }, "/min_length]"},
	{"select options", 100, func(n int) string {
		return `[{"type":"actions","elements":[{"type":"static_select","options":[` + times(n, okOption) + `]}]}]`
	}, "/elements/0/options]"},
	{"overflow options", 5, func(n int) string {
		return `[{"type":"actions","elements":[{"type":"overflow","options":[` + times(n, okOption) + `]}]}]`
	}, "/elements/0/options]"},
	{"radio options", 10, func(n int) string {
		return `[{"type":"actions","elements":[{"type":"radio_buttons","options":[` + times(n, okOption) + `]}]}]`
	}, "/elements/0/options]"},
	{"option value", 150, func(n int) string {
		return `[{"type":"actions","elements":[{"type":"static_select","options":[{"text":` + okText + `,"value":"` + x(n) + `"}]}]}]`
	}, "/options/0/value]"},
	{"image url", 3_000, func(n int) string {
		return `[{"type":"image","alt_text":"a","image_url":"https://` + x(n-8) + `"}]`
	}, "/blocks/0/image_url]"},
	{"image alt_text", 2_000, func(n int) string {
		return `[{"type":"image","image_url":"https://example.com/a.png","alt_text":"` + x(n) + `"}]`
	}, "/blocks/0/alt_text]"},
}

func TestEachLimitAtItsEdge(t *testing.T) {
	s, api := slack(t)
	for _, e := range edges {
		t.Run(e.name, func(t *testing.T) {
			before := len(s.Messages(room))
			post(t, api, blocksOf(t, e.blocks(e.limit)))
			_, _, err := api.PostMessageContext(t.Context(), room, blocksOf(t, e.blocks(e.limit+1)))
			wantCode(t, err, "invalid_blocks")
			wantMessage(t, err, e.pointer, e.limit)
			if after := len(s.Messages(room)); after != before+1 {
				t.Fatalf("%d messages more, want only the one at the limit", after-before)
			}
		})
	}
}

// wantMessage: one line, that names the place and the limit.
func wantMessage(t *testing.T, err error, pointer string, limit int) {
	t.Helper()
	var said slackgo.SlackErrorResponse
	errors.As(err, &said)
	lines := said.ResponseMetadata.Messages
	if len(lines) != 1 || !strings.HasSuffix(lines[0], pointer) {
		t.Fatalf("messages %q, want one that ends in %q", lines, pointer)
	}
	says := []string{fmt.Sprintf("less than %d characters", limit+1), fmt.Sprintf("no more than %d items", limit), fmt.Sprintf(" to %d [", limit)}
	if !slices.ContainsFunc(says, func(words string) bool { return strings.Contains(lines[0], words) }) {
		t.Fatalf("message %q doesn't name %d", lines[0], limit)
	}
}

// Lengths once were taken of the text as it is read, so that a text of & only seemed five times as short as it is.
func TestEscapesCountAsWritten(t *testing.T) {
	section := func(text string) string {
		return `[{"type":"section","text":{"type":"plain_text","text":"` + text + `"}}]`
	}
	if problems := CheckBlocks([]byte(section(strings.Repeat("&amp;", 600)))); problems != nil {
		t.Errorf("3,000 characters: %q", problems)
	}
	if problems := CheckBlocks([]byte(section(strings.Repeat("&amp;", 601)))); len(problems) != 1 {
		t.Errorf("3,005 characters: %q", problems)
	}
}

func TestWhatSlackRefuses(t *testing.T) {
	for blocks, want := range map[string]string{
		`[{"type":"sektion","text":` + okText + `}]`:                                         `unsupported block type: "sektion"`,
		`[{"type":"section","txt":` + okText + `,"text":` + okText + `}]`:                    "additional property: txt",
		`[{"type":"section"}]`:                                                               "missing required field: text or fields",
		`[{"type":"section","text":` + plainJSON(0) + `}]`:                                   "must be more than 0 characters",
		`[{"type":"section","text":"words"}]`:                                                "must be an object",
		`[{"type":"section","text":{"type":"markdown","text":"x"}}]`:                         `unsupported text object type: "markdown"`,
		`[{"type":"section","text":{"type":"mrkdwn","text":"x","emoji":true}}]`:              "additional property: emoji",
		`[{"type":"section","text":{"type":"plain_text","text":"x","verbatim":true}}]`:       "additional property: verbatim",
		`[{"type":"section","text":{"type":"plain_text"}}]`:                                  "missing required field: text",
		`[{"type":"header","text":{"type":"mrkdwn","text":"x"}}]`:                            "must be one of: plain_text",
		`[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`:              `block_id must be unique, "a" is there already [json-pointer:/blocks/1/block_id]`,
		`[{"type":"actions","elements":[` + okButton + `,` + okButton + `]}]`:                `action_id must be unique, "a#" is there already [json-pointer:/blocks/0/elements/1/action_id]`,
		`[{"type":"actions","elements":[]}]`:                                                 "no less than 1 items",
		`[{"type":"actions","elements":[{"type":"plain_text_input"}]}]`:                      `unsupported element type: "plain_text_input"`,
		`[{"type":"context","elements":[` + okButton + `]}]`:                                 `unsupported element type: "button"`,
		button1(`"style":"default"`):                                                         "must be one of: primary, danger",
		button1(`"url":"ftp://example.com"`):                                                 "must be a valid URL",
		button1(`"confirm":{"title":` + okText + `}`):                                        "missing required field: deny",
		button1(`"value":7`):                                                                 "must be a string",
		input1(`,"min_length":5,"max_length":4`):                                             "min_length must not be more than max_length",
		input1(`,"max_length":1.5`):                                                          "must be an integer",
		input1(`,"multiline":"yes"`):                                                         "must be a boolean",
		`[{"type":"section","text":` + okText + `,"accessory":{"type":"plain_text_input"}}]`: `unsupported element type: "plain_text_input"`,
		`[7]`: "must be an object",
		`{}`:  "must be an array",
		`[`:   "must be valid JSON",
	} {
		problems := CheckBlocks([]byte(blocks))
		if len(problems) == 0 || !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%s\n got %q\nwant %q", blocks, problems, want)
		}
	}
}

func TestTheLibrarysBlocksPass(t *testing.T) {
	s, api := slack(t)
	off := false
	words := &slackgo.TextBlockObject{Type: slackgo.PlainTextType, Text: "words", Emoji: &off}
	button := slackgo.NewButtonBlockElement("go", "41", words).WithStyle(slackgo.StylePrimary).
		WithConfirm(slackgo.NewConfirmationBlockObject(words, words, words, words))
	post(t, api, slackgo.MsgOptionBlocks(
		slackgo.NewHeaderBlock(words), slackgo.NewSectionBlock(words, []*slackgo.TextBlockObject{words}, nil), slackgo.NewDividerBlock(),
		slackgo.NewContextBlock("", words, slackgo.NewTextBlockObject(slackgo.MarkdownType, "*b*", false, true)),
		slackgo.NewActionBlock("act", button),
	))
	m := s.Messages(room)[0]
	if texts := DecodedTexts(m); len(texts) != 10 || texts[4] != "*b*" {
		t.Errorf("texts: %q", texts)
	}
	buttons := Buttons(m)
	if len(buttons) != 1 || buttons[0].ActionID != "go" || buttons[0].BlockID != "act" || buttons[0].Value != "41" || !buttons[0].Confirms {
		t.Errorf("buttons: %+v", buttons)
	}
}

func TestTextIsCutAtItsLimit(t *testing.T) {
	s, api := slack(t)
	for _, n := range []int{maxText, maxText + 1} {
		_, ts, m, err := api.PostMessageWithResponseContext(t.Context(), room, textOption(x(n)))
		wantCode(t, err, "")
		kept, _ := s.Message(room, ts)
		if kept.Text != x(maxText) || m.Text != kept.Text {
			t.Errorf("of %d characters %d were kept", n, len(kept.Text)/2)
		}
	}
	_, err := api.PostEphemeralContext(t.Context(), room, ann.ID, textOption(x(maxText+1)))
	wantCode(t, err, "msg_too_long")
}

func TestBlocksInAll(t *testing.T) {
	_, api := slack(t, WithBlocksTotal(10))
	post(t, api, blocksOf(t, `[{"type":"section","text":`+plainJSON(4)+`},{"type":"section","text":`+plainJSON(6)+`}]`))
	_, _, err := api.PostMessageContext(t.Context(), room, blocksOf(t, `[{"type":"section","text":`+plainJSON(11)+`}]`))
	wantCode(t, err, "msg_blocks_too_long")
}
