package slack

import "slices"

// refusals are the codes that Slack documents as a judgement on the request, made
// before anything was posted, with what to do about it
// (https://docs.slack.dev/reference/methods/chat.postMessage, and the pages of the other
// methods used here). Not among them: internal_error and fatal_error ("some aspect of
// the operation" may have succeeded), service_unavailable, request_timeout,
// team_added_to_org, and whatever Slack adds later.
var refusals = map[string]string{
	// the destination
	"cannot_reply_to_message":                  "the message can't be replied to",
	"channel_not_found":                        "there is no such channel, or the app can't see it; invite the app",
	"ekm_access_denied":                        "the workspace's administrators suspended posting",
	"external_channel_migrating":               "the shared channel is being migrated",
	"is_archived":                              "the channel is archived",
	"message_limit_exceeded":                   "the workspace posts too much",
	"messages_tab_disabled":                    "the app's messages are switched off; enable its Messages tab",
	"method_not_supported_for_channel_type":    "this kind of channel doesn't allow it",
	"not_in_channel":                           "the app is not in the channel; invite it",
	"restricted_action":                        "a preference of the workspace forbids it",
	"restricted_action_non_threadable_channel": "the channel has no threads",
	"restricted_action_read_only_channel":      "the channel is read-only",
	"restricted_action_thread_locked":          "the thread is locked",
	"restricted_action_thread_only_channel":    "the channel takes only replies",
	"slack_connect_file_link_sharing_blocked":  "the shared channel forbids the link",
	"user_is_bot":                              "the direct message is with another app",
	"user_is_restricted":                       "the direct message is with a user that may not receive it",

	// the text or the request
	"invalid_arg_name":    "Slack found the request invalid",
	"invalid_arguments":   "Slack found the request invalid",
	"invalid_array_arg":   "Slack found the request invalid",
	"invalid_charset":     "Slack found the request invalid",
	"invalid_cursor":      "Slack found the request invalid",
	"invalid_form_data":   "Slack found the request invalid",
	"invalid_limit":       "Slack found the request invalid",
	"invalid_post_type":   "Slack found the request invalid",
	"invalid_types":       "Slack found the request invalid",
	"missing_post_type":   "Slack found the request invalid",
	"missing_argument":    "Slack found the request invalid",
	"deprecated_endpoint": "Slack took the method back",
	"method_deprecated":   "Slack took the method back",
	"unknown_method":      "there is no such method; check api_url",
	"msg_too_long":        "the text is too long",
	"no_text":             "Slack found no text",
}

// accountRefusals are those that will meet every message of the app.
var accountRefusals = map[string]string{
	"access_denied":             "the app may not do it",
	"access_limited":            "Slack allows it only from other networks",
	"accesslimited":             "Slack allows it only from other networks",
	"account_inactive":          "the app was removed, or its workspace deleted",
	"as_user_not_supported":     "the app's kind of token may not do it",
	"enterprise_is_restricted":  "the organisation's token may not do it",
	"invalid_auth":              "the token is wrong, or Slack doesn't allow it from this address",
	"missing_scope":             "the token lacks a scope; add it and install the app again",
	"no_permission":             "the token lacks a permission",
	"not_allowed_token_type":    "the token is of the wrong kind; a bot token begins with xoxb-",
	"not_authed":                "Slack saw no token",
	"org_login_required":        "the organisation is being migrated",
	"team_access_not_granted":   "the app isn't installed in that workspace",
	"token_expired":             "the token has expired",
	"token_revoked":             "the token was revoked",
	"two_factor_setup_required": "the account must set up two-factor authentication",
}

// meansNotPosted tells if a code is a documented no, and what to do about it.
func meansNotPosted(code string) (hint string, known bool) {
	if hint, known = refusals[code]; !known {
		hint, known = accountRefusals[code]
	}
	return hint, known
}

// isAboutAccount tells if the same no will meet every message of the app.
func isAboutAccount(code string) bool {
	_, is := accountRefusals[code]
	return is
}

// isRateLimit: the pages of the methods have both spellings.
func isRateLimit(code string) bool {
	return slices.Contains([]string{"ratelimited", "rate_limited"}, code)
}
