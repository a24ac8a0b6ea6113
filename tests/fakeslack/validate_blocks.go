package fakeslack

import "fmt"

// Limits of blocks: https://docs.slack.dev/reference/block-kit/blocks/<type>-block.
const (
	maxBlockID = 255 // every block

	maxSectionText   = 3_000 // section-block
	maxSectionFields = 10
	maxSectionField  = 2_000

	maxHeader          = 150 // header-block
	maxContextElements = 10  // context-block
	maxActionsElements = 25  // actions-block

	maxInputLabel = 2_000 // input-block
	maxInputHint  = 2_000

	maxImageURL   = 3_000 // image-block
	maxImageAlt   = 2_000
	maxImageTitle = 2_000
)

// checkBlocks checks a list of blocks: each, and that no two have one id.
func checkBlocks(r *report, at string, v any, most int) {
	list(0, most, byType("block", blocks()))(r, at, v)
	items, _ := v.([]any)
	unique(r, at, items, "block_id")
}

// unique adds a problem for each item whose id another has.
func unique(r *report, at string, items []any, id string) {
	seen := map[string]bool{}
	for i, item := range items {
		m, _ := item.(map[string]any)
		name, given := m[id].(string)
		if given && seen[name] {
			r.add(fmt.Sprintf("%s/%d/%s", at, i, id), "%s must be unique, %q is there already", id, name)
		}
		seen[name] = true
	}
}

func blocks() map[string]check {
	return map[string]check{
		"header":  block("header", map[string]field{"text": must(plain(1, maxHeader))}, nil),
		"divider": block("divider", nil, nil),
		"section": block("section", map[string]field{
			"text":      may(text(1, maxSectionText)),
			"fields":    may(list(1, maxSectionFields, text(1, maxSectionField))),
			"accessory": may(elements("button", "overflow", "static_select", "checkboxes", "radio_buttons", "image")),
			"expand":    may(boolean),
		}, sectionHolds),
		"context": block("context", map[string]field{
			"elements": must(list(1, maxContextElements, elements("image", "plain_text", "mrkdwn"))),
		}, nil),
		"actions": block("actions", map[string]field{
			"elements": must(list(1, maxActionsElements, elements("button", "overflow", "static_select", "checkboxes", "radio_buttons"))),
		}, actionsDiffer),
		"input": block("input", map[string]field{
			"label":           must(plain(1, maxInputLabel)),
			"element":         must(elements("plain_text_input", "static_select", "checkboxes", "radio_buttons")),
			"hint":            may(plain(1, maxInputHint)),
			"optional":        may(boolean),
			"dispatch_action": may(boolean),
		}, nil),
		"image": block("image", map[string]field{
			"image_url": must(address(maxImageURL)),
			"alt_text":  must(chars(1, maxImageAlt)),
			"title":     may(plain(1, maxImageTitle)),
		}, nil),
	}
}

// block is an object with what every block has.
func block(kind string, fields map[string]field, also func(*report, string, map[string]any)) check {
	all := map[string]field{"type": must(oneOf(kind)), "block_id": may(chars(1, maxBlockID))}
	for name, f := range fields {
		all[name] = f
	}
	return object{all, also}.check
}

// sectionHolds: text "is required unless fields is".
func sectionHolds(r *report, at string, m map[string]any) {
	if m["text"] == nil && m["fields"] == nil {
		r.add(at, "missing required field: text or fields")
	}
}

// actionsDiffer: an action_id is "unique among all other action_ids in the containing block".
func actionsDiffer(r *report, at string, m map[string]any) {
	items, _ := m["elements"].([]any)
	unique(r, at+"/elements", items, "action_id")
}
