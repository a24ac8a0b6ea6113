// Package command answers one question: how is a foreign program run?
//
// By absolute path, without a shell, in an environment that holds the listed variables and nothing else, in a process group of its own
// that ends with it, for a limited time and with a limited output. What it prints is foreign: whoever shows it cleans it first.
package command

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// What a Command has where it names nothing else.
const (
	DefaultTimeout   = time.Minute
	DefaultMaxOutput = 1 << 20
)

// Command is a program with its arguments, as an operator configured it. It can be run any number of times, also at once.
type Command struct {
	Path      string        // absolute
	Args      []string      // without the program's name; nothing in them is expanded
	Env       []string      // names of variables that are passed on; one that isn't set is left out
	Dir       string        // absolute; "" is the root directory, which no program's files depend on
	Timeout   time.Duration // of the whole run; 0 is DefaultTimeout
	MaxOutput int64         // kept of stdout, and of stderr, in bytes; 0 is DefaultMaxOutput
}

// Result is what a program did, as far as it is known: it is filled beside an error too.
type Result struct {
	Stdout, Stderr []byte
	Truncated      bool // one of the two is longer than MaxOutput; the rest was read and dropped
	ExitCode       int  // -1: it didn't end by itself, or never ran
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var (
	errRelative   = errors.New("the path is not absolute")
	errNUL        = errors.New("path, arguments and directory must not contain a NUL")
	errVariable   = errors.New("the environment is a list of names such as PATH, without values")
	errNoFile     = errors.New("it is not a regular file")
	errNoProgram  = errors.New("it is not executable; chmod +x it")
	errWritable   = errors.New("others than its owner may change it; chmod go-w it")
	errUnlimited  = errors.New("time-out and output limit must not be negative")
	errRelativeAt = errors.New("the directory is not absolute")
)

// Check tells whether the program may be run: it is named by an absolute path, and is a regular, executable file, behind symbolic links
// or not, that nobody but its owner may change. The error is a *NotStartedError.
func (c Command) Check() error {
	err := c.checkWords()
	if err == nil {
		err = checkFile(c.Path)
	}
	if err != nil {
		return &NotStartedError{Path: c.Path, Err: err}
	}
	return nil
}

func (c Command) checkWords() error {
	switch {
	case !filepath.IsAbs(c.Path):
		return errRelative
	case c.Dir != "" && !filepath.IsAbs(c.Dir):
		return errRelativeAt
	case strings.ContainsRune(c.Path+c.Dir+strings.Join(c.Args, ""), 0):
		return errNUL
	case c.Timeout < 0 || c.MaxOutput < 0:
		return errUnlimited
	}
	for _, name := range c.Env {
		if !variable.MatchString(name) {
			return errVariable
		}
	}
	return nil
}

// checkFile looks behind links: what a link leads to is what runs.
func checkFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return withoutPath(err)
	case !info.Mode().IsRegular():
		return errNoFile
	case info.Mode().Perm()&0o111 == 0:
		return errNoProgram
	case info.Mode().Perm()&0o022 != 0:
		return errWritable
	}
	return nil
}

// withoutPath takes the path off an error of package os, for a message that names it already.
func withoutPath(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// environment is never nil: for os/exec that would mean all of ours.
func (c Command) environment() []string {
	env := []string{}
	for _, name := range c.Env {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// Run runs the program once, with stdin as its input, and returns when it and its process group have ended. A program that does not
// read its input is no error, and neither is one that leaves its output open to another that outlives it.
//
// The program is ended when the time-out, or ctx's deadline, is over (*TimeoutError), or ctx is cancelled (an error that wraps
// context.Canceled): the group gets SIGTERM, and soon after SIGKILL. The other errors are *NotStartedError: it did nothing; *ExitError:
// it ended with another code than 0, or by a signal; *TooMuchOutputError: it ended with 0, and said more on stdout than is kept. No error
// repeats arguments, environment or output.
func (c Command) Run(ctx context.Context, stdin []byte) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{ExitCode: -1}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	if err := ctx.Err(); err != nil {
		return Result{ExitCode: -1}, &NotStartedError{Path: c.Path, Err: err}
	}
	return c.start(stdin).result(ctx)
}
