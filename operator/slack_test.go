package operator_test

import (
	"errors"
	"strings"
	"testing"

	"countersign/operator"
)

func TestSlackUserSaysWho(t *testing.T) {
	_, hash := token(t)
	d, err := operator.NewDirectory([]operator.Entry{
		{ID: "ann", SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE1", TokenSHA256: hash},
		{ID: "terminal-only", TokenSHA256: operator.HashToken("x")},
		{ID: "ben", SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE2"},
		{ID: "ben-elsewhere", SlackTeam: "T0OTHER", SlackUser: "U0EXAMPLE2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, who := range []struct{ team, user, want string }{
		{"T0EXAMPLE", "U0EXAMPLE1", "ann"},
		{"T0EXAMPLE", "U0EXAMPLE2", "ben"},
		{"T0OTHER", "U0EXAMPLE2", "ben-elsewhere"},
	} {
		got, err := d.BySlack(who.team, who.user)
		if err != nil || got.ID() != who.want || got.SlackTeam() != who.team || got.SlackUser() != who.user {
			t.Errorf("%s in %s is %#v, %v", who.user, who.team, got, err)
		}
	}
	for name, who := range map[string][2]string{
		"the right user in another team":    {"T0OTHER", "U0EXAMPLE1"},
		"a name that is displayed":          {"T0EXAMPLE", "ann"},
		"the operator's id as the user":     {"T0EXAMPLE", "terminal-only"},
		"somebody else's id":                {"T0EXAMPLE", "U0EXAMPLE9"},
		"nobody":                            {"", ""},
		"no user":                           {"T0EXAMPLE", ""},
		"no team":                           {"", "U0EXAMPLE1"},
		"another case":                      {"T0EXAMPLE", "u0example1"},
		"a blank behind":                    {"T0EXAMPLE", "U0EXAMPLE1 "},
		"a beginning":                       {"T0EXAMPLE", "U0EXAMPLE"},
		"the ids the wrong way round":       {"U0EXAMPLE1", "T0EXAMPLE"},
		"the border between the two moved":  {"T0EXAMPLEU0EXAMPLE1", ""},
		"the border moved by one character": {"T0EXAMPL", "EU0EXAMPLE1"},
		"the separator within":              {"T0EXAMPLE\x00U0EXAMPLE1", "\x00"},
		"something long":                    {"T0EXAMPLE", strings.Repeat("U", 1<<16)},
	} {
		if got, err := d.BySlack(who[0], who[1]); !errors.Is(err, operator.ErrNotAuthorised) || got.Known() {
			t.Errorf("%s: %#v, %v", name, got, err)
		}
	}
}

// An operator without a Slack identity has two empty ids, and must not be whoever sends empty ones.
func TestNobodyOfSlackIsAnOperatorWithoutSlack(t *testing.T) {
	only, err := operator.NewDirectory([]operator.Entry{{ID: "ann"}})
	if err != nil {
		t.Fatal(err)
	}
	empty, err := operator.NewDirectory(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]*operator.Directory{"without Slack": only, "empty": empty, "nil": nil, "zero": {}} {
		for _, who := range [][2]string{{"", ""}, {"T0EXAMPLE", "U0EXAMPLE1"}, {"\x00", "\x00"}} {
			if got, err := d.BySlack(who[0], who[1]); !errors.Is(err, operator.ErrNotAuthorised) || got.Known() {
				t.Errorf("%s directory, %q: %v, %v", name, who, got, err)
			}
		}
	}
}
