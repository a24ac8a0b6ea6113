package main

import "strings"

// ink is how a terminal shows a piece of text: the parameters of SGR (ECMA-48 section 8.3.117), "" for as it is. Colour only repeats
// what the words say, so that nothing is lost without it.
type ink string

const (
	inkPlain  ink = ""
	inkDim    ink = "2"
	inkUrgent ink = "1;31"
	inkWarn   ink = "33"
	inkGood   ink = "32"
	inkBad    ink = "31"
	inkMarker ink = "1;35"
	inkBar    ink = "7" // the line of the panel that is ours
)

// wantsColour tells whether stdout is a terminal that shows colours, and nobody has asked for none (https://no-color.org).
func wantsColour(e env) bool {
	kind := e.Getenv("TERM")
	return e.Width > 0 && e.Getenv("NO_COLOR") == "" && kind != "" && kind != "dumb"
}

// in is a piece of text, which is plain already, in a colour.
func (p *page) in(i ink, text string) string {
	if !p.paint || i == inkPlain || text == "" {
		return text
	}
	return "\x1b[" + string(i) + "m" + text + "\x1b[0m"
}

// inkOf is the colour of a value by the label, or the column's title, that it stands under.
func inkOf(label, value string) ink {
	switch strings.ToLower(label) {
	case "pri", "priority":
		return priorityInk(value)
	case "status", "state", "decision", "outcome":
		return statusInk(value)
	case "marks", "markers":
		return markerInk(label, value)
	}
	return inkPlain
}

func priorityInk(priority string) ink {
	switch priority {
	case "P0":
		return inkUrgent
	case "P1":
		return inkWarn
	case "P3":
		return inkDim
	}
	return inkPlain
}

func statusInk(status string) ink {
	switch status {
	case "sent", "delivered", "confirmed":
		return inkGood
	case "rejected", "reject", "unknown", "ambiguous", "refused":
		return inkBad
	case "drafted", "dispatching", "claimed":
		return inkWarn
	case "closed", "cancelled":
		return inkDim
	}
	return inkPlain
}

// markerInk is for what the system has to say, and only for that.
func markerInk(_, value string) ink {
	if !strings.HasPrefix(value, "[") {
		return inkPlain
	}
	return inkMarker
}
