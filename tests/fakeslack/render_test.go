package fakeslack

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestRender(t *testing.T) {
	s, api := slack(t)
	parent := post(t, api, blocksOf(t, `[{"type":"header","text":{"type":"plain_text","text":"P1 &lt;b&gt;acme&lt;/b&gt;"}},{"type":"divider"},
		{"type":"section","text":{"type":"plain_text","text":"*not bold* AT&amp;T"}},
		{"type":"section","text":{"type":"mrkdwn","text":"*bold* &lt;i&gt; <https://example.com|here>"},"fields":[{"type":"plain_text","text":"field"}]},
		{"type":"context","elements":[{"type":"mrkdwn","text":"`+"`"+`#431`+"`"+`"}]},
		{"type":"actions","elements":[{"type":"button","style":"danger","text":{"type":"plain_text","text":"Reject"}}]}]`))
	other := s.Say(room, ann.ID, "<script>alert(1)</script>")
	reply := s.SayAt("1800000000.000100", room, ann.ID, "a reply")
	reply.ThreadTS = parent
	opened, err := api.OpenViewContext(t.Context(), clicked(t, s, api).TriggerID, modalWith(nil))
	wantCode(t, err, "")
	v, _ := s.View(opened.ID)
	m, _ := s.Message(room, parent)
	page := Render("A <card>", []Message{m, other, reply}, v)

	for _, want := range []string{
		"<h1>A &lt;card&gt;</h1>", "<h2>P1 &lt;b&gt;acme&lt;/b&gt;</h2>", "*not bold* AT&amp;T", "<b>bold</b> &lt;i&gt;",
		`<span class="link">here</span>`, "<code>#431</code>", `<span class="button danger">Reject</span>`, "&lt;script&gt;alert(1)&lt;/script&gt;",
		`<article class="message reply">`, `<div class="head">Reject</div>`, `<label>Reason</label>`, `<div class="field tall">`,
	} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("the page hasn't %q", want)
		}
	}
	if bytes.Index(page, []byte("a reply")) > bytes.Index(page, []byte("alert(1)")) {
		t.Error("the reply doesn't stand below its parent")
	}
	if outside := regexp.MustCompile(`(?i)(src|href)=|url\(|@import|<script`).Find(page); outside != nil {
		t.Errorf("the page needs something else: %q", outside)
	}
	if !bytes.Equal(page, Render("A <card>", []Message{m, other, reply}, v)) {
		t.Error("the same input gave another page")
	}
}

func TestTimestamps(t *testing.T) {
	own := clock{last: firstTS}
	if first, second := format(own.next()), format(own.next()); first != "1700000000.000100" || second != "1700000001.000200" {
		t.Errorf("own: %s, %s", first, second)
	}
	own.pass(time.Hour)
	if got := format(own.next()); got != "1700003602.000300" {
		t.Errorf("an hour later: %s", got)
	}
	now := time.Unix(1_750_000_000, 0)
	given := clock{now: func() time.Time { return now }, last: firstTS}
	first, second := given.next(), given.next()
	now = now.Add(-time.Hour)
	if third := given.next(); !(first < second && second < third) || !strings.HasPrefix(format(third), "1750000000.") {
		t.Errorf("given: %s %s %s", format(first), format(second), format(third))
	}
}
