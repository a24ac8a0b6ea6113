//go:build unix && !linux

package command

import "syscall"

// attributes make the program the leader of a group of its own. There is no signal for it when this process dies: only Linux has one.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// await waits for the program, and then ends what it left in its group.
func (p *process) await() error {
	err := p.cmd.Wait()
	p.group.end()
	return err
}
