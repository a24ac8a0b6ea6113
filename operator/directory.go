package operator

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"

	"countersign/plaintext"
)

// ErrNotAuthorised says that no operator has the given credentials. It doesn't say which part of them was wrong.
var ErrNotAuthorised = errors.New("not authorised: this is no operator")

// Entry is one operator as the configuration names them.
type Entry struct {
	ID          string `toml:"id"`
	SlackTeam   string `toml:"slack_team"`   // with SlackUser, or neither
	SlackUser   string `toml:"slack_user"`   // user id, not a display name
	TokenSHA256 string `toml:"token_sha256"` // 64 lower-case hex digits; "" is an operator without a terminal token
}

// String is the id: nothing that prints an entry prints its token's hash.
func (e Entry) String() string { return e.ID }

// GoString is the id too.
func (e Entry) GoString() string { return fmt.Sprintf("operator.Entry(%q)", e.ID) }

// LogValue is the id.
func (e Entry) LogValue() slog.Value { return slog.StringValue(e.ID) }

// EntryError says what is wrong with one entry.
type EntryError struct {
	Index  int    // of the entry, counted from 0
	ID     string // of the entry, as configured
	Field  string // the key: "id", "slack_team", "slack_user", "token_sha256"
	Reason string
}

func (e *EntryError) Error() string {
	return fmt.Sprintf("operator %d (id %q): %s: %s", e.Index+1, e.ID, e.Field, e.Reason)
}

// Directory knows the operators. It is made once and safe for concurrent use; a nil Directory admits nobody.
type Directory struct {
	members []member
}

type member struct {
	operator Operator
	hasToken bool
	token    [sha256.Size]byte // hash
}

// NewDirectory makes a Directory of the configured entries, none included. Its error joins one *EntryError for each
// thing that is wrong, in the order of the entries.
func NewDirectory(entries []Entry) (*Directory, error) {
	var problems []error
	var d Directory
	for i, e := range entries {
		found := check(entries, i)
		for _, p := range found {
			problems = append(problems, p)
		}
		if len(found) == 0 {
			d.members = append(d.members, newMember(e))
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &d, nil
}

func newMember(e Entry) member {
	m := member{
		operator: Operator{id: e.ID, slackTeam: e.SlackTeam, slackUser: e.SlackUser},
		hasToken: e.TokenSHA256 != "",
	}
	hex.Decode(m.token[:], []byte(e.TokenSHA256)) // tokenHash has matched
	return m
}

// ByToken returns the operator whose terminal token this is, or ErrNotAuthorised. The token is taken as it is: who reads it
// from a file takes the line end off. The time it takes depends on neither the token nor who has it.
func (d *Directory) ByToken(token string) (Operator, error) {
	if d == nil || token == "" {
		return Operator{}, ErrNotAuthorised
	}
	hash := sha256.Sum256([]byte(token))
	var who Operator
	for _, m := range d.members {
		if subtle.ConstantTimeCompare(hash[:], m.token[:]) == 1 && m.hasToken {
			who = m.operator
		}
	}
	if !who.Known() {
		return Operator{}, ErrNotAuthorised
	}
	return who, nil
}

// BySlack returns the operator who is this user of this Slack workspace, or ErrNotAuthorised. Both ids must come from a request that
// Slack has proved to be its own; both are compared exactly, because ids of users are unique within a workspace only, and a name that is
// displayed is anybody's choice. As with ByToken, the time it takes tells nothing.
func (d *Directory) BySlack(team, user string) (Operator, error) {
	if d == nil || team == "" || user == "" {
		return Operator{}, ErrNotAuthorised
	}
	given := slackIdentity(team, user)
	var who Operator
	for _, m := range d.members {
		own := slackIdentity(m.operator.slackTeam, m.operator.slackUser)
		if subtle.ConstantTimeCompare(given[:], own[:]) == 1 && m.operator.slackUser != "" {
			who = m.operator
		}
	}
	if !who.Known() {
		return Operator{}, ErrNotAuthorised
	}
	return who, nil
}

// slackIdentity has one length for all. Configured ids hold no NUL, so that two pairs can't run together.
func slackIdentity(team, user string) [sha256.Size]byte {
	return sha256.Sum256([]byte(team + "\x00" + user))
}

var (
	tokenHash = regexp.MustCompile(`^[0-9a-f]{64}$`)
	slackTeam = regexp.MustCompile(`^[TE][A-Z0-9]+$`)
	slackUser = regexp.MustCompile(`^[UW][A-Z0-9]+$`)
)

// reserved are the actors that the system writes into decisions itself; what ends in a colon is the beginning of a name.
var reserved = []string{"auto-ttl", "policy:", "reviewer:"}

// check returns what is wrong with entries[i], by itself and beside those before it.
func check(entries []Entry, i int) []*EntryError {
	e := entries[i]
	var found []*EntryError
	report := func(field, reason string) {
		if reason != "" {
			found = append(found, &EntryError{Index: i, ID: e.ID, Field: field, Reason: reason})
		}
	}
	report("id", badID(e.ID))
	report("token_sha256", badTokenHash(e.TokenSHA256))
	report(badSlack(e))
	for j, other := range entries[:i] {
		report(taken(e, other, j))
	}
	return found
}

func badID(id string) string {
	clean, err := plaintext.Line(id)
	switch {
	case id == "":
		return "is missing"
	case err != nil:
		return err.Error()
	case clean != id || plaintext.Hidden(id).Any():
		return "has control or hidden characters, or loose white space"
	case plaintext.Skeleton(id) == "":
		return "has no visible character"
	}
	for _, name := range reserved {
		if isReserved(id, name) {
			return "is one of the system's own names (auto-ttl, policy:*, reviewer:*), or looks like one"
		}
	}
	return ""
}

// isReserved compares as an eye does: "Policy:x" or a Cyrillic а in "аuto-ttl" would read like the system in an audit log.
func isReserved(id, name string) bool {
	if strings.HasSuffix(name, ":") {
		return strings.HasPrefix(plaintext.Skeleton(id), plaintext.Skeleton(name)) ||
			strings.HasPrefix(plaintext.Folded(id), plaintext.Folded(name))
	}
	return plaintext.LooksAlike(id, name)
}

func badTokenHash(hash string) string {
	switch {
	case hash == "":
		return ""
	case !tokenHash.MatchString(hash):
		return "must be the SHA-256 of the token, as 64 lower-case hex digits"
	case hash == HashToken(""):
		return "is the SHA-256 of an empty token"
	}
	return ""
}

// IsSlackTeam tells whether id has the form of a Slack workspace's or organisation's id.
func IsSlackTeam(id string) bool { return slackTeam.MatchString(id) }

// badSlack returns the field and what is wrong with it. A user id means nothing without its workspace: another one may have
// the same.
func badSlack(e Entry) (field, reason string) {
	switch {
	case e.SlackTeam == "" && e.SlackUser == "":
		return "", ""
	case e.SlackTeam == "":
		return "slack_team", "is missing: slack_user says nothing without its workspace"
	case e.SlackUser == "":
		return "slack_user", "is missing: slack_team says nothing without a user"
	case !IsSlackTeam(e.SlackTeam):
		return "slack_team", fmt.Sprintf("must be a workspace id such as T0EXAMPLE, is %q", e.SlackTeam)
	case !slackUser.MatchString(e.SlackUser):
		return "slack_user", fmt.Sprintf("must be a user id such as U0EXAMPLE1, is %q", e.SlackUser)
	}
	return "", ""
}

// taken returns the first field in which e can't be told from an earlier entry. Ids that look alike are refused, because
// two people would share one name in every list and every audit.
func taken(e, earlier Entry, j int) (field, reason string) {
	as := fmt.Sprintf("operator %d (id %q)", j+1, earlier.ID)
	switch {
	case e.ID != "" && e.ID == earlier.ID:
		return "id", "is the same as that of " + as
	case e.ID != "" && earlier.ID != "" && plaintext.LooksAlike(e.ID, earlier.ID):
		return "id", "looks like that of " + as
	case e.TokenSHA256 != "" && e.TokenSHA256 == earlier.TokenSHA256:
		return "token_sha256", "is the same as that of " + as
	case e.SlackUser != "" && e.SlackTeam == earlier.SlackTeam && e.SlackUser == earlier.SlackUser:
		return "slack_user", "is the same as that of " + as
	}
	return "", ""
}
