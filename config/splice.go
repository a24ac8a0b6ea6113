package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"countersign/operator"
)

// formError says why it isn't sure what to edit in a text.
type formError string

func (e formError) Error() string { return string(e) }

const (
	noTables formError = "the operators don't stand under [[operators]], one after the other; edit it by hand"
	misread  formError = "the edited text could not be read again; edit it by hand"
	saysMore formError = "the edited text would say something else too; edit it by hand"
)

// operatorsKey is the only table that is edited.
const operatorsKey = "operators"

// entry is one [[operators]] of a text.
type entry struct {
	table  statement            // the header
	fields map[string]statement // by key
	end    int                  // of its last statement
}

// document is a text, and what stands where in it.
type document struct {
	text    string
	entries []entry
	decoded []map[string]any // what the library reads in them
}

// readDocument pairs the entries of the text with what the TOML library reads, which judges whether they were found.
func readDocument(text string) (document, error) {
	decoded, err := decodeOperators(text)
	if err != nil {
		return document{}, err
	}
	d := document{text: text, decoded: decoded}
	open := false
	for _, s := range statements(text) {
		switch {
		case s.header:
			if open = s.key == "[["+operatorsKey+"]]"; open {
				d.entries = append(d.entries, entry{table: s, fields: map[string]statement{}, end: s.next})
			}
		case open:
			last := &d.entries[len(d.entries)-1]
			last.fields[s.key], last.end = s, s.next
		}
	}
	if len(d.entries) != len(decoded) {
		return document{}, noTables
	}
	return d, nil
}

// decodeOperators reads the tables of the operators. A list in one value would be []any.
func decodeOperators(text string) ([]map[string]any, error) {
	var tree map[string]any
	if _, err := toml.Decode(text, &tree); err != nil {
		return nil, misread
	}
	list, ok := tree[operatorsKey].([]map[string]any)
	if !ok && tree[operatorsKey] != nil {
		return nil, noTables
	}
	return list, nil
}

func (d document) find(id string) (int, error) {
	i := slices.IndexFunc(d.decoded, func(e map[string]any) bool { return e["id"] == id })
	if i < 0 {
		return 0, &UnknownOperatorError{id}
	}
	return i, nil
}

// newline is the line end that the text uses.
func (d document) newline() string {
	if first, _, _ := strings.Cut(d.text, "\n"); strings.HasSuffix(first, "\r") {
		return "\r\n"
	}
	return "\n"
}

// addOperator adds an entry behind the last one, and behind the comments that hang on that.
func addOperator(text string, e operator.Entry) (string, error) {
	d, err := readDocument(text)
	if err != nil {
		return "", err
	}
	at := len(text)
	if n := len(d.entries); n > 0 {
		at = pastComments(text, d.entries[n-1].end)
	}
	lines := []string{"", "[[" + operatorsKey + "]]"}
	made := map[string]any{}
	for _, f := range []struct{ key, value string }{
		{"id", e.ID}, {"slack_team", e.SlackTeam}, {"slack_user", e.SlackUser}, {"token_sha256", e.TokenSHA256},
	} {
		if f.value != "" {
			lines = append(lines, f.key+" = "+quote(f.value))
			made[f.key] = f.value
		}
	}
	switch {
	case at == 0:
		lines = lines[1:]
	case text[at-1] != '\n':
		lines = append([]string{""}, lines...)
	}
	added := strings.Join(lines, d.newline()) + d.newline()
	return d.splice(at, at, added, append(slices.Clone(d.decoded), made))
}

// setToken changes the value alone, or adds the key below the others.
func setToken(text, id, tokenSHA256 string) (string, error) {
	d, err := readDocument(text)
	if err != nil {
		return "", err
	}
	i, err := d.find(id)
	if err != nil {
		return "", err
	}
	const key = "token_sha256"
	want := slices.Clone(d.decoded)
	want[i] = maps.Clone(want[i])
	want[i][key] = tokenSHA256
	if field, ok := d.entries[i].fields[key]; ok {
		return d.splice(field.value, field.end, quote(tokenSHA256), want)
	}
	at := d.entries[i].end
	line := key + " = " + quote(tokenSHA256) + d.newline()
	if text[at-1] != '\n' {
		line = d.newline() + line
	}
	return d.splice(at, at, line, want)
}

// removeOperator removes the lines from the entry's header to its last value, and one of two blank lines around it.
func removeOperator(text, id string) (string, error) {
	d, err := readDocument(text)
	if err != nil {
		return "", err
	}
	i, err := d.find(id)
	if err != nil {
		return "", err
	}
	from, to := d.entries[i].table.start, d.entries[i].end
	before, nl := strings.TrimSuffix(text[:from], d.newline()), d.newline()
	blankAbove := len(before) < from && (before == "" || strings.HasSuffix(before, "\n"))
	if blankAbove && (to == len(text) || strings.HasPrefix(text[to:], nl)) {
		from = len(before)
	}
	return d.splice(from, to, "", slices.Delete(slices.Clone(d.decoded), i, i+1))
}

// splice puts a piece in place of text[from:to]. The result must say what the text said, but for the operators, which are
// want: whatever was found in the wrong place, nothing else is changed by it.
func (d document) splice(from, to int, piece string, want []map[string]any) (string, error) {
	edited := d.text[:from] + piece + d.text[to:]
	var was, is map[string]any
	if _, err := toml.Decode(d.text, &was); err != nil {
		return "", misread
	}
	if _, err := toml.Decode(edited, &is); err != nil {
		return "", misread
	}
	delete(was, operatorsKey)
	if len(want) > 0 {
		was[operatorsKey] = want
	}
	if !reflect.DeepEqual(was, is) {
		return "", saysMore
	}
	return edited, nil
}
