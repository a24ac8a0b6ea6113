package command

import (
	"context"
	"fmt"
	"os"
)

// NotStartedError says that a program did not run at all, and why.
type NotStartedError struct {
	Path string
	Err  error
}

func (e *NotStartedError) Error() string {
	return fmt.Sprintf("command %s was not started: %v", e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *NotStartedError) Unwrap() error { return e.Err }

// TimeoutError says that a program was ended because its time was over. What it did until then is not known.
type TimeoutError struct{ Path string }

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("command %s took too long and was ended", e.Path)
}

// Unwrap returns context.DeadlineExceeded.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// ExitError says that a program ended with another code than 0.
type ExitError struct {
	Path   string
	Code   int       // -1 when a signal ended it
	Signal os.Signal // nil when it ended by itself
}

func (e *ExitError) Error() string {
	if e.Signal != nil {
		return fmt.Sprintf("command %s was ended by a signal: %v", e.Path, e.Signal)
	}
	return fmt.Sprintf("command %s ended with exit code %d", e.Path, e.Code)
}

// TooMuchOutputError says that a program succeeded, and that not all of what it wrote to stdout was kept.
type TooMuchOutputError struct {
	Path  string
	Limit int64 // bytes
}

func (e *TooMuchOutputError) Error() string {
	return fmt.Sprintf("command %s wrote more than %d bytes to stdout", e.Path, e.Limit)
}
