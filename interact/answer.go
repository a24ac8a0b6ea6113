package interact

import (
	"errors"
	"fmt"

	slackgo "github.com/slack-go/slack"

	"countersign/notify"
)

// unanswered is why a method of Slack's gave nothing: its code, or our own words. The library's words can hold a URL, or what Slack repeats.
func unanswered(method string, err error) error {
	var said slackgo.SlackErrorResponse
	var limited *slackgo.RateLimitedError
	var status slackgo.StatusCodeError
	switch {
	case errors.As(err, &said) && notify.IsSlackCode(said.Err):
		return fmt.Errorf("%s: %s", method, said.Err)
	case errors.As(err, &said):
		return fmt.Errorf("%s: a code that is none of Slack's", method)
	case errors.As(err, &limited):
		return fmt.Errorf("%s: Slack asks for %s", method, limited.RetryAfter)
	case errors.As(err, &status):
		return fmt.Errorf("%s: HTTP status %d", method, status.Code)
	}
	return fmt.Errorf("%s was not answered", method)
}
