package config_test

import (
	"fmt"
	"testing"
)

// slackSection is what [internal] can't do without.
const slackSection = "[transports.slack]\ntoken = \"env:TOKEN\"\n"

// The internal destination is wanted whole, and by its ids: what else looks like one could be anybody's.
func TestInternalDestination(t *testing.T) {
	expect(t, problems(t, "[internal]\n"+slackSection),
		`1: internal.platform: is missing: "slack"`,
		"1: internal.team: is missing: the workspace id, such as T0EXAMPLE",
		"1: internal.channel: is missing: the id of a channel, such as C0INTERNAL",
	)
	for _, bad := range []struct{ platform, team, channel, want string }{
		{"Slack", "T0EXAMPLE", "C0INTERNAL", `2: internal.platform: must be one of "slack", is "Slack"`},
		{"smtp", "T0EXAMPLE", "C0INTERNAL", `2: internal.platform: must be one of "slack", is "smtp"`},
		{"slack", "t0example", "C0INTERNAL", `3: internal.team: must be the workspace id, such as T0EXAMPLE, is "t0example"`},
		{"slack", "acme", "C0INTERNAL", `3: internal.team: must be the workspace id, such as T0EXAMPLE, is "acme"`},
		{"slack", "C0EXAMPLE", "C0INTERNAL", `3: internal.team: must be the workspace id, such as T0EXAMPLE, is "C0EXAMPLE"`},
		{"slack", "T0EXAMPLE", "#desk", `4: internal.channel: must be the id of a channel, such as C0INTERNAL, no name and no direct message; is "#desk"`},
		{"slack", "T0EXAMPLE", "D0DIRECT", `4: internal.channel: must be the id of a channel, such as C0INTERNAL, no name and no direct message; is "D0DIRECT"`},
		{"slack", "T0EXAMPLE", "C0INTERNAL ", `4: internal.channel: must be the id of a channel, such as C0INTERNAL, no name and no direct message; is "C0INTERNAL "`},
	} {
		file := fmt.Sprintf("[internal]\nplatform = %q\nteam = %q\nchannel = %q\n"+slackSection, bad.platform, bad.team, bad.channel)
		expect(t, problems(t, file), bad.want)
	}
	expect(t, problems(t, "[internal]\nplatform = \"slack\"\nteam = 7\nchanel = \"C0INTERNAL\"\n"+slackSection),
		"3: internal.team: must be a string, is an integer",
		"4: internal.chanel: unknown key; did you mean internal.channel?",
	)
}

// Notices for a destination that nothing can post to would wait without a word.
func TestInternalDestinationNeedsSlack(t *testing.T) {
	file := "[internal]\nplatform = \"slack\"\nteam = \"T0EXAMPLE\"\nchannel = \"C0INTERNAL\"\n"
	expect(t, problems(t, file), "1: internal: needs the section [transports.slack]")
	load(t, file+slackSection)
}
