package config

import (
	_ "embed"
	"strings"
)

// template is a whole configuration. A line that begins with "# " is a comment, one that begins with "#" alone is a setting
// that can be switched on.
//
//go:embed template.toml
var template string

// operators is the line of template that the first operator takes the place of.
const operators = "#operators-here\n"

// Template returns the commented configuration that `init` writes: the local transport is on, the others are explained and
// off. The first operator is the one given, or only explained where operatorID is "". tokenSHA256 is the hash of their
// terminal token (see operator.NewToken). Load accepts the result if NewDirectory accepts the operator.
func Template(operatorID, tokenSHA256 string) []byte {
	entry := "#[[operators]]\n#id = \"operator-a\"\n#token_sha256 = \"\"\n"
	if operatorID != "" {
		entry = "[[operators]]\nid = " + quote(operatorID) + "\ntoken_sha256 = " + quote(tokenSHA256) + "\n"
	}
	return []byte(strings.Replace(template, operators, entry, 1))
}

// quote makes a basic string of TOML, which is not Go's: it has no \a, \v or \x.
func quote(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString("\\" + string(r))
		case r < 0x20 || r == 0x7f:
			b.WriteString("\\u00" + string(hex[r>>4]) + string(hex[r&0xf]))
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}
