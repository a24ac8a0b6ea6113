package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"countersign/config"
	"countersign/operator"
)

var (
	hashA = operator.HashToken("a")
	hashB = operator.HashToken("b")
	hashC = operator.HashToken("c")
)

// desk is a configuration with everything around the operators that an edit could damage.
var desk = strings.ReplaceAll(`# Our desk. [[operators]] stand below.
[ledger]
path = "a [[operators]] # b.db"   # not a comment before this

# Who may decide.
[[operators]]
id = "ann"   # since May
token_sha256 = "HASH_A" # of the
# slack_team = "T1"

	[[ operators ]]
"id" = 'ben'
slack_team = "T0EXAMPLE"
slack_user = "U0EXAMPLE1"

# The server.
[followups]
command = [
	"/bin/tell", # [[operators]]
	'''
[[operators]]
id = "nobody"''',
	"""quotes \""" and " ""\\"""
]
`, "HASH_A", hashA)

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func ids(t *testing.T, path string) string {
	t.Helper()
	c, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range c.Operators {
		all = append(all, e.ID)
	}
	return strings.Join(all, " ")
}

// onlyAdded fails unless after is before with one piece put in.
func onlyAdded(t *testing.T, before, after, piece string) {
	t.Helper()
	at := strings.Index(after, piece)
	if at < 0 || after[:at]+after[at+len(piece):] != before {
		t.Errorf("%q is not all that was added:\n%s", piece, after)
	}
}

func TestAddOperator(t *testing.T) {
	path := write(t, desk)
	before := read(t, path)
	if err := config.AddOperator(t.Context(), path, operator.Entry{ID: `"cy"`, SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE2", TokenSHA256: hashC}); err != nil {
		t.Fatal(err)
	}
	piece := "\n[[operators]]\nid = \"\\\"cy\\\"\"\nslack_team = \"T0EXAMPLE\"\nslack_user = \"U0EXAMPLE2\"\ntoken_sha256 = \"" + hashC + "\"\n"
	onlyAdded(t, before, read(t, path), piece)
	if !strings.Contains(read(t, path), "U0EXAMPLE1\"\n"+piece+"\n# The server.") {
		t.Errorf("it does not stand behind the others:\n%s", read(t, path))
	}
	if got := ids(t, path); got != `ann ben "cy"` {
		t.Error(got)
	}
	// Removed again, nothing is left of it.
	if err := config.RemoveOperator(t.Context(), path, `"cy"`); err != nil || read(t, path) != before {
		t.Errorf("%v\n%s", err, read(t, path))
	}
}

func TestAddOperatorWhereThereIsNone(t *testing.T) {
	entry := "[[operators]]\nid = \"ann\"\ntoken_sha256 = \"" + hashA + "\"\n"
	for _, test := range []struct{ before, after string }{
		{"", entry},
		{"[limits]\ntext = 9", "[limits]\ntext = 9\n\n" + entry},
		{"[limits]\ntext = 9\n", "[limits]\ntext = 9\n\n" + entry},
		{"#[[operators]]\n#id = \"ann\"\n", "#[[operators]]\n#id = \"ann\"\n\n" + entry},
		{"[limits]\r\ntext = 9\r\n", "[limits]\r\ntext = 9\r\n\r\n" + strings.ReplaceAll(entry, "\n", "\r\n")},
		{"\ufeff[limits]\ntext = 9\n", "\ufeff[limits]\ntext = 9\n\n" + entry},
	} {
		path := write(t, test.before)
		if err := config.AddOperator(t.Context(), path, operator.Entry{ID: "ann", TokenSHA256: hashA}); err != nil {
			t.Errorf("%q: %v", test.before, err)
		}
		if got := read(t, path); got != test.after {
			t.Errorf("%q became %q", test.before, got)
		}
		if err := config.RemoveOperator(t.Context(), path, "ann"); err != nil {
			t.Errorf("%q: %v", test.before, err)
		}
		if got := read(t, path); strings.TrimSpace(got) != strings.TrimSpace(test.before) {
			t.Errorf("%q was left of %q", got, test.before)
		}
	}
}

// The comments of the first operator in the file that init writes belong to it, and stay with it.
func TestAddOperatorToTheTemplate(t *testing.T) {
	before := string(config.Template("ann", hashA))
	path := write(t, before)
	if err := config.AddOperator(t.Context(), path, operator.Entry{ID: "ben", TokenSHA256: hashB}); err != nil {
		t.Fatal(err)
	}
	after := read(t, path)
	piece := "\n[[operators]]\nid = \"ben\"\ntoken_sha256 = \"" + hashB + "\"\n"
	onlyAdded(t, before, after, piece)
	if !strings.Contains(after, "#slack_user = \"U0EXAMPLE1\"\n"+piece) {
		t.Errorf("got\n%s", after)
	}
}

func TestSetToken(t *testing.T) {
	path := write(t, desk)
	before := read(t, path)
	if err := config.SetToken(t.Context(), path, "ann", hashB); err != nil {
		t.Fatal(err)
	}
	if got := read(t, path); got != strings.Replace(before, hashA, hashB, 1) {
		t.Errorf("got\n%s", got)
	}
	// Who had none gets one.
	before = read(t, path)
	if err := config.SetToken(t.Context(), path, "ben", hashC); err != nil {
		t.Fatal(err)
	}
	onlyAdded(t, before, read(t, path), "token_sha256 = \""+hashC+"\"\n")
	c, err := config.Load(path)
	if err != nil || c.Operators[0].TokenSHA256 != hashB || c.Operators[1].TokenSHA256 != hashC {
		t.Errorf("%#v, %v", c.Operators, err)
	}
}

func TestSetTokenAtTheEnd(t *testing.T) {
	for before, after := range map[string]string{
		"[[operators]]\nid = \"ann\"":                          "[[operators]]\nid = \"ann\"\ntoken_sha256 = \"" + hashA + "\"\n",
		"[[operators]]\nid = \"ann\"\ntoken_sha256='''\n'''":   "[[operators]]\nid = \"ann\"\ntoken_sha256=\"" + hashA + "\"",
		"[[operators]]\ntoken_sha256 = \"\" # x\nid = \"ann\"": "[[operators]]\ntoken_sha256 = \"" + hashA + "\" # x\nid = \"ann\"",
	} {
		path := write(t, before)
		if err := config.SetToken(t.Context(), path, "ann", hashA); err != nil || read(t, path) != after {
			t.Errorf("%q became %q, %v", before, read(t, path), err)
		}
	}
}

func TestRemoveOperator(t *testing.T) {
	path := write(t, desk)
	before := read(t, path)
	if err := config.RemoveOperator(t.Context(), path, "ann"); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(before, "[[operators]]\nid = \"ann\"   # since May\ntoken_sha256 = \""+hashA+"\" # of the\n", "", 1)
	if got := read(t, path); got != want {
		t.Errorf("got\n%s", got)
	}
	if err := config.RemoveOperator(t.Context(), path, "ben"); err != nil {
		t.Fatal(err)
	}
	want = strings.Replace(want, "\n\t[[ operators ]]\n\"id\" = 'ben'\nslack_team = \"T0EXAMPLE\"\nslack_user = \"U0EXAMPLE1\"\n", "", 1)
	if got := read(t, path); got != want || ids(t, path) != "" {
		t.Errorf("got\n%s", got)
	}
	var unknown *config.UnknownOperatorError
	if err := config.RemoveOperator(t.Context(), path, "ben"); !errors.As(err, &unknown) || unknown.ID != "ben" {
		t.Errorf("got %v", err)
	}
}

// Whatever can't be edited safely is left as it is, to the byte.
func TestRefusedEdits(t *testing.T) {
	add := func(e operator.Entry) func(string) error {
		return func(path string) error { return config.AddOperator(t.Context(), path, e) }
	}
	for name, test := range map[string]struct {
		text string
		edit func(string) error
		want string
	}{
		"an id that is taken":       {desk, add(operator.Entry{ID: "ann", TokenSHA256: hashC}), "is the same as that of operator 1"},
		"one that looks like it":    {desk, add(operator.Entry{ID: "Ann", TokenSHA256: hashC}), "looks like that of operator 1"},
		"a Slack user that is":      {desk, add(operator.Entry{ID: "cy", SlackTeam: "T0EXAMPLE", SlackUser: "U0EXAMPLE1"}), "slack_user: is the same"},
		"half a Slack identity":     {desk, add(operator.Entry{ID: "cy", SlackTeam: "T0EXAMPLE"}), "slack_user: is missing"},
		"a name of the system":      {desk, add(operator.Entry{ID: "auto-ttl"}), "one of the system's own names"},
		"a hidden line end":         {desk, add(operator.Entry{ID: "a\"\n[limits]\ntext = 1"}), "has control"},
		"a token of somebody else":  {desk, func(path string) error { return config.SetToken(t.Context(), path, "ben", hashA) }, "is the same as that of"},
		"no hash":                   {desk, func(path string) error { return config.SetToken(t.Context(), path, "ben", "x") }, "must be the SHA-256"},
		"nobody":                    {desk, func(path string) error { return config.SetToken(t.Context(), path, "cy", hashC) }, `no operator "cy"`},
		"a list in one value":       {"operators = [{id = \"ann\"}]\n", add(operator.Entry{ID: "ben"}), "don't stand under [[operators]]"},
		"an empty one":              {"operators = []\n", add(operator.Entry{ID: "ben"}), "don't stand under [[operators]]"},
		"no TOML":                   {"[ledger\n", add(operator.Entry{ID: "ben"}), "could not be read again"},
		"what was wrong before":     {"[ledger]\npth = \"x\"\n", add(operator.Entry{ID: "ben"}), "unknown key"},
		"a file without end in it ": {"[limits]\ntext = 9 # \x00", add(operator.Entry{ID: "ben"}), "could not be read again"},
	} {
		path := write(t, test.text)
		before := read(t, path)
		err := test.edit(path)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if read(t, path) != before || len(files(t, filepath.Dir(path))) != 1 {
			t.Errorf("%s: the folder was changed: %v", name, files(t, filepath.Dir(path)))
		}
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestEditKeepsTheMode(t *testing.T) {
	for _, mode := range []fs.FileMode{0o600, 0o640, 0o644, 0o400} {
		path := write(t, desk)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := config.AddOperator(t.Context(), path, operator.Entry{ID: "cy"}); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
			t.Errorf("%v became %v, %v", mode, info.Mode(), err)
		}
	}
}

// Replacing a link would leave the file behind it with the operator who was removed.
func TestEditFollowsNoLink(t *testing.T) {
	path := write(t, desk)
	link := filepath.Join(t.TempDir(), "link.toml")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	before := read(t, path)
	var refused *config.EditError
	for _, target := range []string{link, filepath.Dir(path)} {
		if err := config.RemoveOperator(t.Context(), target, "ann"); !errors.As(err, &refused) || refused.Path != target {
			t.Errorf("%s: %v", target, err)
		}
	}
	if err := config.RemoveOperator(t.Context(), path+"x", "ann"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if read(t, path) != before {
		t.Error("it was changed all the same")
	}
}

// Two who edited at once used to be one edit: the second wrote what it had read before the first.
func TestEditsAtOnce(t *testing.T) {
	path := write(t, desk)
	names := []string{"cy", "dora", "emil", "fritz", "gerda", "hans"}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() {
			if err := config.AddOperator(t.Context(), path, operator.Entry{ID: name}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got := strings.Fields(ids(t, path))
	slices.Sort(got)
	if want := append([]string{"ann", "ben"}, names...); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
