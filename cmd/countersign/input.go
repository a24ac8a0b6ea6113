package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/urfave/cli/v2"
)

// oneID is the positional ID of a command whose ArgsUsage is "ID": a positive decimal number.
func oneID(c *cli.Context) (int64, error) {
	word := c.Args().First()
	// ParseUint takes digits only: no sign, no underscore.
	id, err := strconv.ParseUint(word, 10, 63)
	if err != nil || id == 0 {
		return 0, usagef("%q is not an ID: a positive whole number is wanted", word).
			hinted("%s list shows the IDs of what waits", programName)
	}
	return int64(id), nil
}

const textFileFlag = "text-file"

// textFlag is the flag that readText reads.
func textFlag() cli.Flag {
	return &cli.StringFlag{Name: textFileFlag, Usage: "read the text from `FILE` (- or none: standard input)"}
}

// readText returns the text that the command is given in --text-file or on standard input, unchanged. At most
// maxBytes are taken: what is longer is an error, and is not read to its end.
func (a *app) readText(c *cli.Context, maxBytes int64) (string, error) {
	path := c.String(textFileFlag)
	if path == "" && c.IsSet(textFileFlag) {
		return "", usagef("--%s is empty", textFileFlag)
	}
	switch {
	case path != "" && path != "-":
		return readTextFile(c.Context, path, maxBytes)
	case a.env.StdinTTY:
		return "", usagef("no text: standard input is a terminal").
			hinted("pipe the text in, or name its file with --%s", textFileFlag)
	}
	return readLimited(c.Context, a.env.Stdin, "standard input", maxBytes)
}

// readTextFile takes pipes too, as shells make them for <(command). Opening one may wait for its writer as long as reading it does, and
// a signal ends both.
func readTextFile(ctx context.Context, path string, maxBytes int64) (string, error) {
	data, err := await(ctx, func() ([]byte, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, &exitError{code: exitUsage, kind: kindUsage, err: fmt.Errorf("text file: %w", err)}
		}
		defer file.Close()
		return readMost(file, maxBytes)
	})
	return checkText(data, err, path, maxBytes)
}

func readLimited(ctx context.Context, in io.Reader, name string, maxBytes int64) (string, error) {
	data, err := await(ctx, func() ([]byte, error) { return readMost(in, maxBytes) })
	return checkText(data, err, name, maxBytes)
}

// readMost reads a byte more than may be, by which checkText knows.
func readMost(in io.Reader, maxBytes int64) ([]byte, error) {
	return io.ReadAll(io.LimitReader(in, maxBytes+1))
}

func checkText(data []byte, err error, name string, maxBytes int64) (string, error) {
	if err != nil {
		return "", fmt.Errorf("read the text: %w", err)
	}
	if int64(len(data)) > maxBytes {
		return "", exitf(exitRefused, kindTooLarge, "the text is too long: %s holds more than %d bytes", name, maxBytes)
	}
	return string(data), nil
}
