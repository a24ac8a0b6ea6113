package slack

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"countersign/transports"
)

// lists answers conversations.list with so many pages, of which page n has channels[n].
func lists(pages int, channels map[int]string) answer {
	return func(conn net.Conn, r request) {
		page, _ := strconv.Atoi(r.form.Get("cursor"))
		next := ""
		if page+1 < pages {
			next = strconv.Itoa(page + 1)
		}
		says(200, fmt.Sprintf(`{"ok":true,"channels":[{"id":"C0X%d","name":"other-%d"}%s],"response_metadata":{"next_cursor":%q}}`,
			page, page, channels[page], next))(conn, r)
	}
}

func TestResolve(t *testing.T) {
	general := `,{"id":"C0GENERAL","name":"general","is_member":false}`
	for name, c := range map[string]struct {
		channel string
		answer  answer
		want    string
		pages   int
	}{
		"on the first page":    {"#general", lists(1, map[int]string{0: general}), "C0GENERAL", 1},
		"on the last":          {"#general", lists(3, map[int]string{2: general}), "C0GENERAL", 3},
		"all pages are read":   {"#general", lists(3, map[int]string{0: general}), "C0GENERAL", 3},
		"the same one twice":   {"#general", lists(2, map[int]string{0: general, 1: general}), "C0GENERAL", 2},
		"beside an archived":   {"#general", lists(1, map[int]string{0: general + `,{"id":"C0OLD","name":"general","is_archived":true}`}), "C0GENERAL", 1},
		"private":              {"#general", lists(1, map[int]string{0: `,{"id":"G0GENERAL","name":"general","is_private":true}`}), "G0GENERAL", 1},
		"other letters":        {"#général-日本", lists(1, map[int]string{0: `,{"id":"C0G","name":"général-日本"}`}), "C0G", 1},
		"as many as there may": {"#general", lists(maxPages, map[int]string{maxPages - 1: general}), "C0GENERAL", maxPages},
		"an id":                {"C0ANYTHING", nil, "C0ANYTHING", 0},
		"a direct message":     {"D0ANYTHING", nil, "D0ANYTHING", 0},
	} {
		f := newFakeSlack(t)
		if c.answer != nil {
			f.on("conversations.list", c.answer)
		}
		got, err := f.transport().Resolve(t.Context(), c.channel)
		if got != c.want || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		seen := f.seen("conversations.list")
		if len(seen) != c.pages {
			t.Errorf("%s: %d pages were read, want %d", name, len(seen), c.pages)
		}
		for _, r := range seen {
			if r.form.Get("types") != "public_channel,private_channel" || r.form.Get("limit") != "999" || r.form.Get("exclude_archived") != "true" {
				t.Errorf("%s: asked %v", name, r.form)
			}
		}
		if len(f.requests) != c.pages {
			t.Errorf("%s: %d requests in all", name, len(f.requests))
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		channel, entries, reason string
	}{
		"unknown":          {"#general", "", "no channel has"},
		"another case":     {"#General", `,{"id":"C0G","name":"general"}`, "no channel has"},
		"a part of a name": {"#gen", `,{"id":"C0G","name":"general"}`, "no channel has"},
		"an old name":      {"#old", `,{"id":"C0G","name":"general","previous_names":["old"]}`, "no channel has"},
		"archived":         {"#general", `,{"id":"C0G","name":"general","is_archived":true}`, "no channel has"},
		"two":              {"#general", `,{"id":"C0G","name":"general"},{"id":"C0H","name":"general"}`, "C0G, C0H"},
		"no id":            {"#general", `,{"id":"` + token + `","name":"general"}`, "no channel has"},
		"no name":          {"#", "", "neither"},
		"a bare name":      {"general", "", "neither"},
		"a person":         {"@jo", "", "neither"},
		"with a blank":     {"#a b", "", "neither"},
		"with a newline":   {"#a\n", "", "neither"},
		"a long one":       {"#" + strings.Repeat("x", 81), "", "neither"},
		"bad UTF-8":        {"#\xff", "", "neither"},
		"empty":            {"", "", "neither"},
	} {
		f := newFakeSlack(t)
		f.on("conversations.list", lists(1, map[int]string{0: c.entries}))
		got, err := f.transport().Resolve(t.Context(), c.channel)
		var v *transports.ValidationError
		if got != "" || !errors.As(err, &v) || v.Field != "channel" || !strings.Contains(v.Reason, c.reason) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestResolveUnanswered(t *testing.T) {
	for name, c := range map[string]struct {
		answer    answer
		stage     string
		code      string
		permanent bool
		requests  int
	}{
		"too many pages": {lists(maxPages+1, nil), "conversations.list", "", true, maxPages},
		"no scope":       {says(200, `{"ok":false,"error":"missing_scope","needed":"groups:read"}`), "conversations.list", "missing_scope", true, 1},
		"rate limit":     {says(429, "", "Retry-After: 30"), "conversations.list", "429", false, 1},
		"ill":            {says(500, ""), "conversations.list", "500", false, 1},
		"no list":        {says(200, `{"ok":true,"channels":{}}`), "conversations.list", "", false, 1},
		"cut off":        {octets("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}"), "reply", "", false, 1},
	} {
		f := newFakeSlack(t)
		f.on("conversations.list", c.answer)
		got, err := f.transport().Resolve(t.Context(), "#general")
		p := wantPrepareError(t, err, c.stage, c.code, c.permanent)
		if c.code == "429" && p.RetryAfter != 30*time.Second {
			t.Errorf("%s: asks for %s", name, p.RetryAfter)
		}
		if got != "" || len(f.requests) != c.requests {
			t.Errorf("%s: %q after %d requests, want %d", name, got, len(f.requests), c.requests)
		}
	}
}
