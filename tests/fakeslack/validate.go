package fakeslack

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of messages and modals. Lengths are Unicode characters of the string as it is sent, escapes counted as written.
const (
	maxText       = 40_000 // https://docs.slack.dev/reference/methods/chat.postMessage: a longer text is cut
	maxUpdateText = 4_000  // https://docs.slack.dev/reference/methods/chat.update, msg_too_long

	maxMessageBlocks = 50  // https://docs.slack.dev/reference/block-kit/blocks
	maxModalBlocks   = 100 // the same

	maxModalTitle      = 24    // https://docs.slack.dev/reference/views, for these and the next three
	maxModalButton     = 24    // submit and close
	maxPrivateMetadata = 3_000 //
	maxCallbackID      = 255   // external_id too
)

// CheckBlocks returns what Slack would have against the blocks of a message: one line each, with the JSON pointer to the place and the
// limit. raw is a JSON array.
func CheckBlocks(raw []byte) []string {
	return problems(raw, func(r *report, v any) { checkBlocks(r, "/blocks", v, maxMessageBlocks) })
}

// CheckModal returns what Slack would have against a modal. raw is a JSON object.
func CheckModal(raw []byte) []string {
	return problems(raw, func(r *report, v any) { modal().check(r, "/view", v) })
}

func problems(raw []byte, check func(*report, any)) []string {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return []string{"[ERROR] must be valid JSON [json-pointer:/]"}
	}
	r := &report{}
	check(r, v)
	return r.problems
}

// modal is https://docs.slack.dev/reference/views.
func modal() object {
	return object{also: submittable, fields: map[string]field{
		"type":             must(oneOf("modal")),
		"title":            must(plain(1, maxModalTitle)),
		"blocks":           must(func(r *report, at string, v any) { checkBlocks(r, at, v, maxModalBlocks) }),
		"close":            may(plain(1, maxModalButton)),
		"submit":           may(plain(1, maxModalButton)),
		"private_metadata": may(chars(0, maxPrivateMetadata)),
		"callback_id":      may(chars(0, maxCallbackID)),
		"external_id":      may(chars(0, maxCallbackID)),
		"clear_on_close":   may(boolean),
		"notify_on_close":  may(boolean),
		"submit_disabled":  may(boolean),
	}}
}

// submittable: "submit is required when an input block is within the blocks array".
func submittable(r *report, at string, m map[string]any) {
	blocks, _ := m["blocks"].([]any)
	isInput := func(block any) bool {
		b, ok := block.(map[string]any)
		return ok && b["type"] == "input"
	}
	if m["submit"] == nil && slices.ContainsFunc(blocks, isInput) {
		r.add(at, "missing required field: submit, which an input block needs")
	}
}

// report collects what is wrong.
type report struct{ problems []string }

func (r *report) add(at, format string, args ...any) {
	r.problems = append(r.problems, "[ERROR] "+fmt.Sprintf(format, args...)+" [json-pointer:"+at+"]")
}

// A check looks at one value.
type check func(r *report, at string, v any)

type field struct {
	check    check
	required bool
}

func must(c check) field { return field{c, true} }
func may(c check) field  { return field{c, false} }

// object is a JSON object with these fields and no others.
type object struct {
	fields map[string]field
	also   func(r *report, at string, m map[string]any) // what fields have to do with each other
}

func (o object) check(r *report, at string, v any) {
	m, ok := v.(map[string]any)
	if !ok {
		r.add(at, "must be an object")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		f, known := o.fields[name]
		if !known {
			r.add(at, "additional property: %s", name)
			continue
		}
		f.check(r, at+"/"+pointer(name), m[name])
	}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		if _, given := m[name]; o.fields[name].required && !given {
			r.add(at, "missing required field: %s", name)
		}
	}
	if o.also != nil {
		o.also(r, at, m)
	}
}

// pointer escapes a name for a JSON pointer (RFC 6901, section 3).
func pointer(name string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(name) }

func boolean(r *report, at string, v any) {
	if _, ok := v.(bool); !ok {
		r.add(at, "must be a boolean")
	}
}

// chars is a string of least to most characters.
func chars(least, most int) check {
	return func(r *report, at string, v any) {
		s, ok := v.(string)
		if !ok {
			r.add(at, "must be a string")
			return
		}
		if n := utf8.RuneCountInString(s); n > most {
			r.add(at, "must be less than %d characters, has %d", most+1, n)
		} else if n < least {
			r.add(at, "must be more than %d characters, has %d", least-1, n)
		}
	}
}

func oneOf(values ...string) check {
	return func(r *report, at string, v any) {
		if s, ok := v.(string); !ok || !slices.Contains(values, s) {
			r.add(at, "must be one of: %s", strings.Join(values, ", "))
		}
	}
}

func integer(least, most int) check {
	return func(r *report, at string, v any) {
		n, ok := v.(float64)
		if !ok || n != math.Trunc(n) || n < float64(least) || n > float64(most) {
			r.add(at, "must be an integer from %d to %d", least, most)
		}
	}
}

func list(least, most int, item check) check {
	return func(r *report, at string, v any) {
		items, ok := v.([]any)
		if !ok {
			r.add(at, "must be an array")
			return
		}
		if len(items) > most {
			r.add(at, "no more than %d items allowed, there are %d", most, len(items))
		} else if len(items) < least {
			r.add(at, "no less than %d items allowed, there are %d", least, len(items))
		}
		for i, v := range items {
			item(r, fmt.Sprintf("%s/%d", at, i), v)
		}
	}
}

// address is a link to a page or picture.
func address(most int) check {
	return func(r *report, at string, v any) {
		chars(1, most)(r, at, v)
		if s := str(v); !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
			r.add(at, "must be a valid URL")
		}
	}
}

// byType picks the check by the value's type.
func byType(kind string, checks map[string]check) check {
	return func(r *report, at string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			r.add(at, "must be an object")
			return
		}
		c, known := checks[str(m["type"])]
		if !known {
			r.add(at, "unsupported %s type: %q; expected one of: %s", kind, str(m["type"]), strings.Join(slices.Sorted(maps.Keys(checks)), ", "))
			return
		}
		c(r, at, v)
	}
}
