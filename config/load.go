package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"countersign/inputfile"
)

// maxFile is the most that a configuration may hold, in bytes.
const maxFile = 1 << 20

// Load reads the configuration at path. Its error is an *InvalidError for what is wrong in the file; a file that can't be
// read gives an error that wraps the operating system's.
func Load(path string) (*Config, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	data, info, err := inputfile.Read(abs, maxFile)
	if err != nil {
		return nil, unreadable(abs, err)
	}
	c, problems := parse(data)
	if len(problems) == 0 {
		problems = c.check(newLines(data))
	}
	if len(problems) > 0 {
		return nil, &InvalidError{Path: abs, Problems: inOrder(problems)}
	}
	c.Path = abs
	c.resolvePaths(filepath.Dir(abs))
	c.warnings = c.warn(isShared(info))
	return c, nil
}

func unreadable(path string, err error) error {
	hint := ""
	if errors.Is(err, fs.ErrNotExist) {
		hint = "; `countersign init` makes one"
	}
	return fmt.Errorf("configuration %s: %w%s", path, withoutPath(err), hint)
}

// parse decodes what has the right shape: known keys only, each with a value of its type.
func parse(data []byte) (*Config, []Problem) {
	var tree map[string]any
	md, err := toml.Decode(string(data), &tree)
	if err != nil {
		return nil, []Problem{syntaxProblem(err)}
	}
	if problems := checkShape(tree, newLines(data)); len(problems) > 0 {
		return nil, problems
	}
	c := Default()
	c.Transports = Transports{Local: defaultLocal(), SMTP: defaultSMTP(), Slack: defaultSlack(), Telegram: defaultTelegram()}
	if _, err := toml.Decode(string(data), c); err != nil {
		return nil, []Problem{syntaxProblem(err)}
	}
	if !md.IsDefined("transports", "local") {
		c.Transports.Local = nil
	}
	if !md.IsDefined("transports", "smtp") {
		c.Transports.SMTP = nil
	}
	if !md.IsDefined("transports", "slack") {
		c.Transports.Slack = nil
	}
	if !md.IsDefined("transports", "telegram") {
		c.Transports.Telegram = nil
	}
	return c, nil
}

// quoted is a piece of a value in one of the library's messages: a word in quotes, or a number too large for it.
var quoted = regexp.MustCompile(`["'][\w+\-.:]{2,}["']|\d[\d_]{4,}`)

// syntaxProblem keeps the place and the message, but no value: what stands unquoted in the file may be a password.
func syntaxProblem(err error) Problem {
	var at toml.ParseError
	if !errors.As(err, &at) {
		return Problem{Text: quoted.ReplaceAllString(err.Error(), "…")}
	}
	text := at.Message
	if !strings.HasPrefix(text, "Key ") { // these name a key
		text = quoted.ReplaceAllString(text, "…")
	}
	if strings.HasPrefix(text, "expected value") {
		text += " (a string needs quotes)"
	}
	return Problem{Line: at.Position.Line, Key: at.LastKey, Text: text}
}

// resolvePaths takes relative paths from the directory of the configuration, whatever the working directory is.
func (c *Config) resolvePaths(dir string) {
	paths := []*string{&c.Ledger.Path}
	if c.Transports.Local != nil {
		paths = append(paths, &c.Transports.Local.Dir)
	}
	if c.Transports.SMTP != nil {
		paths = append(paths, &c.Transports.SMTP.CAFile)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}
