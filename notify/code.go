package notify

import "regexp"

var slackCode = regexp.MustCompile(`^[a-z][a-z_]{0,79}$`)

// IsSlackCode tells whether what Slack said has the form of its error codes: anything else may repeat what is secret, and is neither told
// nor logged.
func IsSlackCode(said string) bool { return slackCode.MatchString(said) }

// code is an error code as it may be told and logged.
func code(said string) string {
	if !IsSlackCode(said) {
		return "with a code that is none of Slack's"
	}
	return said
}
