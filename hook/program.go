package hook

import (
	"context"
	"errors"

	"countersign/command"
)

// Program is a command that gets each follow-up on its standard input, as one line of JSON. Exit code 0 says that it took it; what it
// prints is dropped.
type Program struct{ Command command.Command }

var _ Receiver = Program{}

// Ready tells whether the program may be run.
func (p Program) Ready() error { return p.Command.Check() }

// Hand runs the program once.
func (p Program) Hand(ctx context.Context, body []byte) error {
	_, err := p.Command.Run(ctx, append(body, '\n'))
	if errors.As(err, new(*command.TooMuchOutputError)) {
		return nil // it ended with 0
	}
	return err
}
