package fakeslack

// Limits of elements and composition objects: https://docs.slack.dev/reference/block-kit/block-elements/<type>-element and
// https://docs.slack.dev/reference/block-kit/composition-objects/<name>-object.
const (
	maxTextObject = 3_000 // text-object

	maxActionID = 255 // every interactive element

	maxButtonText  = 75 // button-element
	maxButtonValue = 2_000
	maxButtonURL   = 3_000
	maxButtonLabel = 75 // accessibility_label

	maxConfirmTitle  = 100 // confirmation-dialog-object
	maxConfirmText   = 300
	maxConfirmButton = 30 // confirm and deny

	maxPlaceholder = 150   // plain-text-input-element and select-menu-element
	maxInputText   = 3_000 // plain-text-input-element: the largest max_length and min_length

	maxSelectOptions   = 100 // select-menu-element
	maxOverflowOptions = 5   // overflow-menu-element
	maxBoxOptions      = 10  // checkboxes-element, radio-button-group-element

	maxOptionText        = 75 // option-object
	maxOptionValue       = 150
	maxOptionDescription = 75
)

// plain is a text object that can only be plain_text.
func plain(least, most int) check {
	return object{fields: map[string]field{
		"type": must(oneOf("plain_text")), "text": must(chars(least, most)), "emoji": may(boolean),
	}}.check
}

// markdown is a text object that is marked up.
func markdown(least, most int) check {
	return object{fields: map[string]field{
		"type": must(oneOf("mrkdwn")), "text": must(chars(least, most)), "verbatim": may(boolean),
	}}.check
}

// text is a text object of either kind. emoji goes only with plain_text, verbatim only with mrkdwn.
func text(least, most int) check {
	return byType("text object", map[string]check{"plain_text": plain(least, most), "mrkdwn": markdown(least, most)})
}

// elements is one element, of these types.
func elements(types ...string) check {
	known := map[string]check{
		"plain_text": plain(1, maxTextObject),
		"mrkdwn":     markdown(1, maxTextObject),
		"image":      element("image", nil, map[string]field{"image_url": must(address(maxImageURL)), "alt_text": must(chars(1, maxImageAlt))}),
		"button":     button(),
		"overflow": action("overflow", map[string]field{
			"options": must(list(1, maxOverflowOptions, option(plain(1, maxOptionText)))), "confirm": may(confirm()),
		}, nil),
		"static_select": action("static_select", map[string]field{
			"options":        must(list(1, maxSelectOptions, option(plain(1, maxOptionText)))),
			"initial_option": may(option(plain(1, maxOptionText))),
			"placeholder":    may(plain(1, maxPlaceholder)),
			"confirm":        may(confirm()),
			"focus_on_load":  may(boolean),
		}, nil),
		"checkboxes":       boxes("checkboxes", "initial_options", list(1, maxBoxOptions, option(text(1, maxOptionText)))),
		"radio_buttons":    boxes("radio_buttons", "initial_option", option(text(1, maxOptionText))),
		"plain_text_input": input(),
	}
	allowed := map[string]check{}
	for _, name := range types {
		allowed[name] = known[name]
	}
	return byType("element", allowed)
}

func element(kind string, also func(*report, string, map[string]any), fields map[string]field) check {
	fields["type"] = must(oneOf(kind))
	return object{fields, also}.check
}

// action is an element that somebody acts on.
func action(kind string, fields map[string]field, also func(*report, string, map[string]any)) check {
	fields["action_id"] = may(chars(1, maxActionID))
	return element(kind, also, fields)
}

func button() check {
	return action("button", map[string]field{
		"text":                must(plain(1, maxButtonText)),
		"value":               may(chars(0, maxButtonValue)),
		"url":                 may(address(maxButtonURL)),
		"style":               may(oneOf("primary", "danger")),
		"confirm":             may(confirm()),
		"accessibility_label": may(chars(1, maxButtonLabel)),
	}, nil)
}

// confirm is the dialog that asks once more.
func confirm() check {
	return object{fields: map[string]field{
		"title":   must(plain(1, maxConfirmTitle)),
		"text":    must(plain(1, maxConfirmText)),
		"confirm": must(plain(1, maxConfirmButton)),
		"deny":    must(plain(1, maxConfirmButton)),
		"style":   may(oneOf("primary", "danger")),
	}}.check
}

func option(text check) check {
	return object{fields: map[string]field{
		"text": must(text), "value": must(chars(1, maxOptionValue)), "description": may(plain(1, maxOptionDescription)),
	}}.check
}

func boxes(kind, initial string, chosen check) check {
	return action(kind, map[string]field{
		"options":       must(list(1, maxBoxOptions, option(text(1, maxOptionText)))),
		initial:         may(chosen),
		"confirm":       may(confirm()),
		"focus_on_load": may(boolean),
	}, nil)
}

func input() check {
	return action("plain_text_input", map[string]field{
		"placeholder":   may(plain(1, maxPlaceholder)),
		"initial_value": may(chars(0, maxInputText)),
		"multiline":     may(boolean),
		"min_length":    may(integer(0, maxInputText)),
		"max_length":    may(integer(1, maxInputText)),
		"focus_on_load": may(boolean),
		"dispatch_action_config": may(object{fields: map[string]field{
			"trigger_actions_on": may(list(1, 2, oneOf("on_enter_pressed", "on_character_entered"))),
		}}.check),
	}, inputRange)
}

func inputRange(r *report, at string, m map[string]any) {
	least, hasLeast := m["min_length"].(float64)
	most, hasMost := m["max_length"].(float64)
	if hasLeast && hasMost && least > most {
		r.add(at, "min_length must not be more than max_length")
	}
}
