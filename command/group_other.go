//go:build !unix

package command

import (
	"errors"
	"os"
	"syscall"
)

// Without process groups a program's children would outlive it.
func supported() error { return errors.New("commands need a system with process groups") }

type group struct{}

func (*group) open(int)        {}
func (*group) terminate() bool { return false }
func (*group) kill()           {}

func attributes() *syscall.SysProcAttr { return nil }

func (p *process) await() error { return p.cmd.Wait() }

func signalOf(*os.ProcessState) os.Signal { return nil }
