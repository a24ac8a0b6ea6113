package notify

import "regexp"

// slackCode has the form of Slack's error codes: anything else may repeat what is secret.
var slackCode = regexp.MustCompile(`^[a-z][a-z_]{0,79}$`)

// code is an error code as it may be told and logged.
func code(said string) string {
	if !slackCode.MatchString(said) {
		return "with a code that is none of Slack's"
	}
	return said
}
