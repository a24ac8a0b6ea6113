package config

import (
	"fmt"
	"time"
)

// UnmarshalTOML decodes the section. It is here for "", which means never, and which is no time.
func (n *Notify) UnmarshalTOML(section any) error {
	table, _ := section.(map[string]any)
	for key, wait := range map[string]*time.Duration{
		"remind_p0": &n.RemindP0, "remind_p1": &n.RemindP1, "remind_p2": &n.RemindP2, "remind_p3": &n.RemindP3,
	} {
		switch text, ok := table[key].(string); {
		case ok && text == "":
			*wait = 0
		case ok:
			parsed, err := time.ParseDuration(text)
			if err != nil {
				return fmt.Errorf("%s: must be a time with a unit", key)
			}
			*wait = parsed
		}
	}
	return nil
}
