package command

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes make the program the leader of a group of its own, and end it when this process dies, however that comes about. What it
// started is told by nobody then: the kernel's signal reaches the program alone (prctl(2), PR_SET_PDEATHSIG).
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// await waits for the program and ends its group while the program is not reaped yet: until then the group's id can't become another's.
func (p *process) await() error {
	defer p.group.end()
	for {
		switch err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err {
		case unix.EINTR:
			continue
		case nil:
			p.group.end()
		}
		return p.cmd.Wait()
	}
}
