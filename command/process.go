package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

const (
	// grace is how long a group has between SIGTERM and SIGKILL.
	grace = 500 * time.Millisecond
	// lingering is how long the output is still read after the program's end, when a process that left the group holds it open.
	lingering = time.Second
)

// process is one run of a program.
type process struct {
	command        Command
	cmd            *exec.Cmd
	stdout, stderr capped
	group          group
	started, ended chan error
}

// start starts the program. Its thread stays with it to its end: where the kernel ends children when their parent dies, it is the thread
// that started them whose death counts (prctl(2), PR_SET_PDEATHSIG), and Go ends threads as it likes.
func (c Command) start(stdin []byte) *process {
	limit := cmp.Or(c.MaxOutput, DefaultMaxOutput)
	p := &process{command: c, stdout: capped{limit: limit}, stderr: capped{limit: limit}, started: make(chan error, 1), ended: make(chan error, 1)}
	p.cmd = &exec.Cmd{Path: c.Path, Args: append([]string{c.Path}, c.Args...), Env: c.environment(), Dir: cmp.Or(c.Dir, "/"),
		Stdin: bytes.NewReader(stdin), Stdout: &p.stdout, Stderr: &p.stderr, SysProcAttr: attributes(), WaitDelay: lingering}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.begin()
		p.started <- err
		if err == nil {
			p.ended <- p.await()
		}
	}()
	return p
}

func (p *process) begin() error {
	if err := supported(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return withoutPath(err)
	}
	p.group.open(p.cmd.Process.Pid)
	return nil
}

// result waits for the end of the program, or brings it about.
func (p *process) result(ctx context.Context) (Result, error) {
	path := p.command.Path
	if err := <-p.started; err != nil {
		return Result{ExitCode: -1}, &NotStartedError{Path: path, Err: err}
	}
	stopped, err := p.wait(ctx)
	out := Result{Stdout: p.stdout.kept, Stderr: p.stderr.kept, Truncated: p.stdout.more || p.stderr.more, ExitCode: -1}
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case stopped && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return out, &TimeoutError{Path: path}
	case stopped:
		return out, fmt.Errorf("command %s was ended before it was done: %w", path, ctx.Err())
	case failed:
		out.ExitCode = exit.ExitCode()
		return out, &ExitError{Path: path, Code: out.ExitCode, Signal: signalOf(exit.ProcessState)}
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return out, fmt.Errorf("command %s: its input or output broke: %w", path, err)
	}
	out.ExitCode = 0
	if p.stdout.more {
		return out, &TooMuchOutputError{Path: path, Limit: p.stdout.limit}
	}
	return out, nil
}

// wait tells whether it had to stop the program. One that ended by itself at the last moment has done so in time.
func (p *process) wait(ctx context.Context) (stopped bool, err error) {
	select {
	case err = <-p.ended:
		return false, err
	case <-ctx.Done():
	}
	stopped = p.group.terminate()
	kill := time.AfterFunc(grace, p.group.kill)
	defer kill.Stop()
	return stopped, <-p.ended
}

// capped keeps the beginning of what is written to it. It takes the rest too, so that the program neither blocks nor dies of a broken
// pipe in the middle of its work.
type capped struct {
	limit int64
	kept  []byte
	more  bool
}

func (c *capped) Write(b []byte) (int, error) {
	room := int(min(c.limit-int64(len(c.kept)), int64(len(b))))
	c.kept = append(c.kept, b[:room]...)
	c.more = c.more || room < len(b)
	return len(b), nil
}
