package fakeslack

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Render draws messages, and modals below them, about as Slack shows them: one HTML page that needs nothing else. Replies stand below their
// parents. The same input gives the same page.
func Render(title string, messages []Message, views ...View) []byte {
	p := &page{}
	p.printf("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>%s</title>\n<style>\n%s</style>\n</head>\n<body>\n",
		html.EscapeString(title), style)
	p.printf("<h1>%s</h1>\n", html.EscapeString(title))
	for _, m := range threaded(messages) {
		p.message(m)
	}
	for _, v := range views {
		p.view(v)
	}
	p.printf("</body>\n</html>\n")
	return []byte(p.String())
}

// threaded puts replies after their parents. A reply whose parent isn't there stands where it is.
func threaded(messages []Message) (ordered []Message) {
	replies, parents := map[string][]Message{}, map[string]bool{}
	for _, m := range messages {
		parents[m.TS] = m.ThreadTS == ""
	}
	for _, m := range messages {
		if parents[m.ThreadTS] {
			replies[m.ThreadTS] = append(replies[m.ThreadTS], m)
		}
	}
	for _, m := range messages {
		if m.ThreadTS != "" && parents[m.ThreadTS] {
			continue
		}
		ordered = append(ordered, m)
		if m.ThreadTS == "" {
			ordered = append(ordered, replies[m.TS]...)
		}
	}
	return ordered
}

// page is the HTML so far.
type page struct{ strings.Builder }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *page) message(m Message) {
	class := "message"
	if m.ThreadTS != "" {
		class += " reply"
	}
	if m.Deleted {
		class += " deleted"
	}
	p.printf("<article class=\"%s\">\n<div class=\"who\">%s</div>\n", class, author(m))
	if m.To != "" {
		p.printf("<div class=\"only\">Only visible to %s</div>\n", html.EscapeString(m.To))
	}
	if len(m.Blocks) == 0 {
		p.printf("<div class=\"section\">%s</div>\n", mrkdwn(m.Text))
	}
	p.blocks(m.Blocks)
	p.printf("</article>\n")
}

func author(m Message) string {
	who := html.EscapeString(m.User)
	if m.User == BotUser {
		who = `Countersign <span class="app">APP</span>`
	}
	when := ""
	if seconds, _, ok := strings.Cut(m.TS, "."); ok {
		if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
			when = time.Unix(n, 0).UTC().Format("15:04")
		}
	}
	edited := ""
	if m.EditedTS != "" {
		edited = " (edited)"
	}
	return fmt.Sprintf(`<b>%s</b> <span class="dim">%s%s</span>`, who, when, edited)
}

func (p *page) view(v View) {
	var raw struct {
		Close, Submit *struct{ Text string }
	}
	decode(v.Raw, &raw)
	p.printf("<article class=\"modal\">\n<div class=\"head\">%s</div>\n", html.EscapeString(v.Title))
	p.blocks(v.Blocks)
	p.printf("<div class=\"foot\">")
	if raw.Close != nil {
		p.printf("<span class=\"button\">%s</span>", html.EscapeString(Decode(raw.Close.Text)))
	}
	if raw.Submit != nil {
		p.printf("<span class=\"button primary\">%s</span>", html.EscapeString(Decode(raw.Submit.Text)))
	}
	p.printf("</div>\n</article>\n")
}

func (p *page) blocks(blocks []Block) {
	for _, b := range blocks {
		switch b["type"] {
		case "divider":
			p.printf("<hr>\n")
		case "header":
			p.printf("<h2>%s</h2>\n", textHTML(b["text"]))
		case "section":
			p.section(b)
		case "context", "actions":
			p.printf("<div class=\"%s\">%s</div>\n", b["type"], elementsHTML(b["elements"]))
		case "input":
			p.input(b)
		case "image":
			p.printf("<div class=\"section\">%s%s</div>\n", textHTML(b["title"]), elementHTML(b))
		}
	}
}

func (p *page) section(b Block) {
	p.printf("<div class=\"section\">")
	if b["accessory"] != nil {
		p.printf("<span class=\"accessory\">%s</span>", elementHTML(b["accessory"]))
	}
	p.printf("%s", textHTML(b["text"]))
	if fields, ok := b["fields"].([]any); ok {
		p.printf("<div class=\"fields\">")
		for _, f := range fields {
			p.printf("<div>%s</div>", textHTML(f))
		}
		p.printf("</div>")
	}
	p.printf("</div>\n")
}

func (p *page) input(b Block) {
	optional := ""
	if b["optional"] == true {
		optional = ` <span class="dim">(optional)</span>`
	}
	p.printf("<div class=\"input\"><label>%s%s</label>%s", textHTML(b["label"]), optional, elementHTML(b["element"]))
	if b["hint"] != nil {
		p.printf("<div class=\"dim\">%s</div>", textHTML(b["hint"]))
	}
	p.printf("</div>\n")
}

func elementsHTML(v any) string {
	var drawn []string
	items, _ := v.([]any)
	for _, item := range items {
		drawn = append(drawn, elementHTML(item))
	}
	return strings.Join(drawn, " ")
}

func elementHTML(v any) string {
	e, _ := v.(map[string]any)
	switch e["type"] {
	case "plain_text", "mrkdwn":
		return "<span>" + textHTML(e) + "</span>"
	case "button":
		return fmt.Sprintf(`<span class="button %s">%s</span>`, html.EscapeString(str(e["style"])), textHTML(e["text"]))
	case "image":
		return `<span class="picture">` + html.EscapeString(str(e["alt_text"])) + "</span>"
	case "plain_text_input":
		class := "field"
		if e["multiline"] == true {
			class += " tall"
		}
		return fmt.Sprintf(`<div class="%s">%s<span class="dim">%s</span></div>`, class, html.EscapeString(str(e["initial_value"])),
			textHTML(e["placeholder"]))
	case "static_select":
		return `<span class="button">` + textHTML(e["placeholder"]) + " ▾</span>"
	case "overflow":
		return `<span class="button">⋯</span>`
	}
	return optionsHTML(e)
}

// optionsHTML are boxes to tick.
func optionsHTML(e map[string]any) string {
	var drawn []string
	options, _ := e["options"].([]any)
	for _, o := range options {
		drawn = append(drawn, "<div>☐ "+textHTML(o.(map[string]any)["text"])+"</div>")
	}
	return strings.Join(drawn, "")
}

// textHTML is a text object: plain_text as it is, mrkdwn with what little markup a card has.
func textHTML(v any) string {
	o, _ := v.(map[string]any)
	if o["type"] == "mrkdwn" {
		return mrkdwn(str(o["text"]))
	}
	return html.EscapeString(Decode(str(o["text"])))
}

var (
	anchor  = regexp.MustCompile(`&lt;((?:https?|mailto):[^|<>]*?)(?:\|([^<>]*?))?&gt;`)
	strong  = regexp.MustCompile(`(^|[\s(])\*([^*\n]+)\*`)
	slanted = regexp.MustCompile(`(^|[\s(])_([^_\n]+)_`)
	struck  = regexp.MustCompile(`(^|[\s(])~([^~\n]+)~`)
	literal = regexp.MustCompile("`([^`\n]+)`")
	fence   = regexp.MustCompile("(?s)```\n?(.*?)```")
)

// guard stands for the escapes of the text itself, so that only what is markup is read as such. No text has its characters.
var (
	guard   = strings.NewReplacer("&lt;", "\x01", "&gt;", "\x02", "&amp;", "\x03")
	unguard = strings.NewReplacer("\x01", "&lt;", "\x02", "&gt;", "\x03", "&amp;")
)

func mrkdwn(text string) string {
	drawn := html.EscapeString(guard.Replace(text))
	drawn = anchor.ReplaceAllStringFunc(drawn, func(found string) string {
		parts := anchor.FindStringSubmatch(found)
		label := parts[2]
		if label == "" {
			label = parts[1]
		}
		return `<span class="link">` + label + "</span>"
	})
	drawn = fence.ReplaceAllString(drawn, "<pre>$1</pre>")
	drawn = literal.ReplaceAllString(drawn, "<code>$1</code>")
	drawn = strong.ReplaceAllString(drawn, "$1<b>$2</b>")
	drawn = slanted.ReplaceAllString(drawn, "$1<i>$2</i>")
	drawn = struck.ReplaceAllString(drawn, "$1<s>$2</s>")
	return unguard.Replace(drawn)
}
