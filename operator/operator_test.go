package operator_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"countersign/operator"
)

// token returns a token and its hash.
func token(t *testing.T) (string, string) {
	t.Helper()
	tok, hash, err := operator.NewToken()
	if err != nil {
		t.Fatal(err)
	}
	return tok, hash
}

// login makes a directory of one operator and signs them in.
func login(t *testing.T, e operator.Entry) operator.Operator {
	t.Helper()
	tok, hash := token(t)
	e.TokenSHA256 = hash
	d, err := operator.NewDirectory([]operator.Entry{e})
	if err != nil {
		t.Fatal(err)
	}
	who, err := d.ByToken(tok)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

func TestTokenSaysWho(t *testing.T) {
	annToken, annHash := token(t)
	benToken, benHash := token(t)
	d, err := operator.NewDirectory([]operator.Entry{
		{ID: "ann", TokenSHA256: annHash, SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE1"},
		{ID: "only-slack", SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE2"},
		{ID: "ben", TokenSHA256: benHash},
	})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := d.ByToken(annToken)
	if err != nil || !ann.Known() || ann.ID() != "ann" || ann.SlackTeam() != "T0EXAMPLE" || ann.SlackUser() != "U0EXAMPLE1" {
		t.Errorf("Ann's token: %#v, %v", ann, err)
	}
	if ben, err := d.ByToken(benToken); err != nil || ben.ID() != "ben" {
		t.Errorf("Ben's token: %v, %v", ben, err)
	}
	for _, wrong := range []string{"", "ann", annHash, annToken + "\n", annToken[1:], strings.ToUpper(annToken), strings.Repeat("\x00", 32)} {
		if who, err := d.ByToken(wrong); !errors.Is(err, operator.ErrNotAuthorised) || who.Known() {
			t.Errorf("token %q: %v, %v", wrong, who, err)
		}
	}
}

func TestEmptyDirectoryAdmitsNobody(t *testing.T) {
	empty, err := operator.NewDirectory(nil)
	if err != nil {
		t.Fatal(err)
	}
	tok, _ := token(t)
	for name, d := range map[string]*operator.Directory{"empty": empty, "nil": nil, "zero": {}} {
		for _, given := range []string{"", tok} {
			if who, err := d.ByToken(given); !errors.Is(err, operator.ErrNotAuthorised) || who.Known() {
				t.Errorf("%s directory with %q: %v, %v", name, given, who, err)
			}
		}
	}
	if nobody := (operator.Operator{}); nobody.Known() || nobody.ID() != "" || nobody.Filed("", "") || nobody.Filed("a", "b") {
		t.Error("the zero operator is somebody")
	}
}

// An operator who was given no terminal token must not be reached by a token whose hash happens to be all zero, or empty.
func TestOperatorWithoutTokenHasNone(t *testing.T) {
	d, err := operator.NewDirectory([]operator.Entry{{ID: "ann"}})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := d.ByToken(""); err == nil {
		t.Errorf("an empty token is %v's", who)
	}
}

func TestBadEntries(t *testing.T) {
	_, hash := token(t)
	tests := []struct {
		name    string
		entries []operator.Entry
		want    []string
	}{
		{"no id", []operator.Entry{{TokenSHA256: hash}}, []string{`operator 1 (id ""): id: is missing`}},
		{"the system's names", []operator.Entry{{ID: "auto-ttl"}, {ID: "policy:auto"}, {ID: "reviewer:"}}, []string{
			`operator 1 (id "auto-ttl"): id: is one of the system's own names`,
			`operator 2 (id "policy:auto"): id: is one of the system's own names`,
			`operator 3 (id "reviewer:"): id: is one of the system's own names`,
		}},
		{"names that look like the system's", []operator.Entry{{ID: "Auto-TTL"}, {ID: "POLICY: auto"}, {ID: "rеviewer:x"}}, []string{
			`(id "Auto-TTL"): id: is one of`, `(id "POLICY: auto"): id: is one of`, `(id "rеviewer:x"): id: is one of`,
		}},
		{"a Cyrillic letter in one of them", []operator.Entry{{ID: "аuto-ttl"}}, []string{`(id "аuto-ttl"): id: is one of`}},
		{"loose and hidden characters", []operator.Entry{{ID: " ann"}, {ID: "b\tn"}, {ID: "c\u200bn"}, {ID: "d\u202en"}, {ID: "e\xff"}, {ID: "\u00a0"}}, []string{
			`(id " ann"): id: has control or hidden characters`, `(id "b\tn"): id: has control`, `(id "c\u200bn"): id: has control`,
			`(id "d\u202en"): id: has control`, `(id "e\xff"): id: not valid UTF-8`, `(id "\u00a0"): id: has no visible character`,
		}},
		{"twins", []operator.Entry{{ID: "ann"}, {ID: "ben"}, {ID: "ann"}}, []string{`operator 3 (id "ann"): id: is the same as that of operator 1 (id "ann")`}},
		{"look-alikes", []operator.Entry{{ID: "paul"}, {ID: "Paul"}, {ID: "раul"}, {ID: "pauI"}}, []string{
			`operator 2 (id "Paul"): id: looks like that of operator 1`, `operator 3 (id "раul"): id: looks like that of operator 1`,
			`operator 3 (id "раul"): id: looks like that of operator 2`, `operator 4 (id "pauI"): id: looks like that of operator 1`,
			`operator 4 (id "pauI"): id: looks like that of operator 2`, `operator 4 (id "pauI"): id: looks like that of operator 3`,
		}},
		{"shared token", []operator.Entry{{ID: "ann", TokenSHA256: hash}, {ID: "ben", TokenSHA256: hash}}, []string{`operator 2 (id "ben"): token_sha256: is the same as that of operator 1`}},
		{"shared Slack user", []operator.Entry{{ID: "ann", SlackTeam: "T1", SlackUser: "U1"}, {ID: "ben", SlackTeam: "T1", SlackUser: "U1"}}, []string{`operator 2 (id "ben"): slack_user: is the same`}},
		{"hashes", []operator.Entry{
			{ID: "a1", TokenSHA256: "…"}, {ID: "b2", TokenSHA256: hash[1:]}, {ID: "c3", TokenSHA256: strings.ToUpper("ab" + hash[2:])},
			{ID: "d4", TokenSHA256: hash + "\n"}, {ID: "e5", TokenSHA256: "cs_op_secret"}, {ID: "f6", TokenSHA256: operator.HashToken("")},
		}, []string{
			`(id "a1"): token_sha256: must be`, `(id "b2"): token_sha256: must be`, `(id "c3"): token_sha256: must be`,
			`(id "d4"): token_sha256: must be`, `(id "e5"): token_sha256: must be`, `(id "f6"): token_sha256: is the SHA-256 of an empty token`,
		}},
		{"half a Slack identity", []operator.Entry{{ID: "ann", SlackUser: "U1"}, {ID: "ben", SlackTeam: "T1"}}, []string{
			`(id "ann"): slack_team: is missing`, `(id "ben"): slack_user: is missing`,
		}},
		{"Slack names instead of ids", []operator.Entry{{ID: "ann", SlackTeam: "example", SlackUser: "U1"}, {ID: "ben", SlackTeam: "T1", SlackUser: "@ben"}}, []string{
			`(id "ann"): slack_team: must be a workspace id`, `(id "ben"): slack_user: must be a user id`,
		}},
		{"everything at once", []operator.Entry{{ID: "", SlackUser: "U1", TokenSHA256: "x"}}, []string{`id: is missing`, `token_sha256: must be`, `slack_team: is missing`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := operator.NewDirectory(tt.entries)
			if err == nil || d != nil {
				t.Fatalf("accepted: %v", d)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("problem %d is %q, want %q", i, lines[i], want)
				}
			}
			if strings.Contains(err.Error(), hash) || strings.Contains(err.Error(), "cs_op_secret") {
				t.Errorf("the error shows a token or its hash: %v", err)
			}
		})
	}
}

func TestSameSlackUserInAnotherTeamIsAnotherPerson(t *testing.T) {
	_, err := operator.NewDirectory([]operator.Entry{
		{ID: "ann", SlackTeam: "T1", SlackUser: "U1"},
		{ID: "ben", SlackTeam: "T2", SlackUser: "U1"},
	})
	if err != nil {
		t.Error(err)
	}
}

func TestFiled(t *testing.T) {
	paul := login(t, operator.Entry{ID: "paul", SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE1"})
	tests := []struct {
		agent, user string
		want        bool
	}{
		{"paul", "", true},
		{"agent-7", "paul", true},
		{"agent-7", "U0EXAMPLE1", true},
		{"U0EXAMPLE1", "", true},
		{"agent-7", "u0example1", true},
		{"PAUL", "", true},
		{"раul", "", true}, // Cyrillic р and а
		{"pauI", "", true}, // capital i
		{"pa\u200bul", "", true},
		{" paul ", "", true},
		{"agent-7", "ben", false},
		{"agent-7", "", false},
		{"", "", false},
		{"paula", "U0EXAMPLE2", false},
	}
	for _, tt := range tests {
		if got := paul.Filed(tt.agent, tt.user); got != tt.want {
			t.Errorf("Filed(%q, %q) = %v", tt.agent, tt.user, got)
		}
	}
}

func TestEmptySlackUserFilesNothing(t *testing.T) {
	if login(t, operator.Entry{ID: "ann"}).Filed("agent-7", "") {
		t.Error("an operator without Slack filed what has no origin user")
	}
}

func TestNothingPrintsATokensHash(t *testing.T) {
	tok, hash := token(t)
	entry := operator.Entry{ID: "ann", TokenSHA256: hash}
	d, err := operator.NewDirectory([]operator.Entry{entry})
	if err != nil {
		t.Fatal(err)
	}
	ann, err := d.ByToken(tok)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("x", "operator", ann, "entry", entry)
	asJSON, err := json.Marshal(ann)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{"slog": log.String(), "JSON": string(asJSON)}
	for _, verb := range []string{"%v", "%+v", "%s", "%#v", "%q"} {
		shown["operator "+verb] = fmt.Sprintf(verb, ann)
		shown["entry "+verb] = fmt.Sprintf(verb, entry)
		shown["within a struct "+verb] = fmt.Sprintf(verb, struct {
			Who   operator.Operator
			Entry operator.Entry
		}{ann, entry})
	}
	for how, out := range shown {
		if strings.Contains(out, hash) || strings.Contains(out, tok) {
			t.Errorf("%s shows the token or its hash: %s", how, out)
		}
	}
	if got := fmt.Sprintf("%v %+v %s %s", ann, ann, ann, asJSON); got != `ann ann ann "ann"` {
		t.Errorf("an operator prints as %q", got)
	}
}

func TestNewToken(t *testing.T) {
	form := regexp.MustCompile(`^cs_op_[A-Za-z0-9_-]{43}$`)
	seen := map[string]bool{}
	for range 50 {
		tok, hash := token(t)
		if !form.MatchString(tok) || hash != operator.HashToken(tok) || seen[tok] {
			t.Fatalf("token %q, hash %q", tok, hash)
		}
		seen[tok] = true
	}
	// The configuration can be made with nothing but sha256sum.
	if got := operator.HashToken("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("SHA-256 of abc is %s", got)
	}
}
