// Package operator answers one question: who is this person, and may they decide?
//
// A Directory is made of the operators that the configuration names, and is the only thing that can make a known
// Operator. Authority comes from the identity that a Directory has authenticated, never from a name that a caller passes
// on. An empty Directory admits nobody.
package operator

import (
	"log/slog"

	"countersign/plaintext"
)

// Operator is a person who has proved who they are. The zero value is nobody. It holds no credentials, so it can be
// kept, compared and printed.
type Operator struct {
	id        string
	slackTeam string
	slackUser string
}

// ID is the name under which decisions are recorded, "" for nobody.
func (o Operator) ID() string { return o.id }

// SlackTeam is the id of the operator's Slack workspace, "" if they have none.
func (o Operator) SlackTeam() string { return o.slackTeam }

// SlackUser is the operator's user id in SlackTeam, "" if they have none.
func (o Operator) SlackUser() string { return o.slackUser }

// Known tells whether this is anybody.
func (o Operator) Known() bool { return o.id != "" }

// Filed tells whether the draft is the operator's own: whether the agent that filed it or the user it originates from
// has the operator's id or Slack user id. Names that look alike count as the same, so that neither another case nor a
// letter of another script gets around the rule. Empty names are nobody's.
func (o Operator) Filed(agent, originUser string) bool {
	for _, own := range []string{o.id, o.slackUser} {
		for _, filer := range []string{agent, originUser} {
			if own != "" && filer != "" && plaintext.LooksAlike(own, filer) {
				return true
			}
		}
	}
	return false
}

// String is the id.
func (o Operator) String() string { return o.id }

// GoString is the id too: what prints an operator has no business with their Slack identity.
func (o Operator) GoString() string { return "operator.Operator(" + o.id + ")" }

// LogValue is the id.
func (o Operator) LogValue() slog.Value { return slog.StringValue(o.id) }

// MarshalText is the id, for JSON.
func (o Operator) MarshalText() ([]byte, error) { return []byte(o.id), nil }
