package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"

	"countersign/inputfile"
)

const (
	tokenFileFlag    = "token-file"
	operatorTokenEnv = "COUNTERSIGN_OPERATOR_TOKEN"
)

// tokenFlag is the flag that operatorToken reads.
func tokenFlag() cli.Flag {
	return &cli.StringFlag{
		Name:   tokenFileFlag,
		Usage:  "read the token from `FILE` (else $" + operatorTokenEnv + ", else a prompt)",
		Action: notEmpty(tokenFileFlag),
	}
}

// operatorToken is the secret that tells who decides: from --token-file, else the environment, else asked for at the
// terminal. Never from a flag's value, which every user of the machine could read. Whose token it is, the desk finds.
func (a *app) operatorToken(c *cli.Context) (string, error) {
	if path := c.String(tokenFileFlag); path != "" {
		return readTokenFile(path)
	}
	if token := a.env.Getenv(operatorTokenEnv); token != "" {
		return token, nil
	}
	if !a.env.StdinTTY {
		return "", notAuthorised(errors.New("no operator token"))
	}
	token, err := a.env.ReadSecret(c.Context, "Operator token: ")
	if err != nil {
		return "", fmt.Errorf("read the operator token: %w", err)
	}
	if token == "" {
		return "", notAuthorised(errors.New("no operator token"))
	}
	return token, nil
}

// readTokenFile reads a token from a regular file that nobody else may read.
func readTokenFile(path string) (string, error) {
	const longest = 4096 // bytes; a token has far fewer
	data, info, err := inputfile.Read(path, longest)
	if err != nil {
		return "", notAuthorised(fmt.Errorf("token file: %w", err))
	}
	if err := checkPrivate(path, info); err != nil {
		return "", err
	}
	token := trimNewline(string(data))
	if token == "" {
		return "", notAuthorised(fmt.Errorf("token file %s holds no token", path))
	}
	return token, nil
}

func checkPrivate(path string, info fs.FileInfo) error {
	const others = 0o077
	if mode := info.Mode().Perm(); mode&others != 0 {
		return notAuthorised(fmt.Errorf("token file %s may be read by others (mode %04o)", path, mode)).
			hinted("chmod 600 %s, and have the token replaced if others may have read it", path)
	}
	return nil
}

// notAuthorised is err with the hint where a token may come from.
func notAuthorised(err error) *exitError {
	return &exitError{code: exitUnauthorised, kind: kindNotAuthorised, hint: tokenHint, err: err}
}

const tokenHint = "give the operator's token in --" + tokenFileFlag + " FILE or $" + operatorTokenEnv + ", or run it at a terminal"

// trimNewline takes one line end off, as editors and shells leave it.
func trimNewline(s string) string {
	if n := len(s); n > 0 && s[n-1] == '\n' {
		s = s[:n-1]
	}
	if n := len(s); n > 0 && s[n-1] == '\r' {
		s = s[:n-1]
	}
	return s
}
