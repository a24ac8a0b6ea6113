// Package fakeslack is a Slack on loopback for the tests of everything that talks to Slack: Web API, Socket Mode, signed HTTP and
// response URLs. It checks each block's and field's documented limit itself, and refuses what Slack would refuse, so that a card that
// passes here can be posted there.
//
// A test sets up a workspace (AddChannel, AddUser), points the program at Server.URL with BotToken and AppToken, and then reads what was
// posted (Messages, Ephemerals, Views, Requests), acts as a person (Click, Submit), or as a failing Slack (Script, Disconnect, GoSilent,
// CutFrame, RefuseOpens). Nothing waits for a clock: timestamps come from a counter, trigger ids expire when the test says so, and Until
// returns as soon as its condition holds.
//
// What is checked is a subset of Slack: the blocks header, section, context, divider, actions, input and image with the elements that
// validate_elements.go lists. Anything else, also a field that isn't documented, is refused, so that a typing error shows. Sources are the
// pages of https://docs.slack.dev, named where a limit or an error code stands.
package fakeslack
