//go:build unix

package command

import (
	"os"
	"sync"
	"syscall"
)

// group is the process group that a program leads. Its id is the program's, and belongs to nobody else until the program was waited for
// and no process is left in the group: from then on it may be a stranger's, and is signalled no more. A process that leaves the group
// (setsid) is out of reach.
type group struct {
	mu sync.Mutex
	id int // 0: there is none, or none any more
}

func (g *group) open(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id = id
}

// terminate asks the group to end, and tells whether the program was still there.
func (g *group) terminate() bool { return g.signal(syscall.SIGTERM) }

func (g *group) kill() { g.signal(syscall.SIGKILL) }

// end ends what is left of the group, for good.
func (g *group) end() {
	g.kill()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id = 0
}

func (g *group) signal(s syscall.Signal) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.id == 0 {
		return false
	}
	_ = syscall.Kill(-g.id, s) // it fails when the group has just ended, which is what is wanted
	return true
}

func supported() error { return nil }

// signalOf is the signal that ended a program, nil for none.
func signalOf(state *os.ProcessState) os.Signal {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal()
	}
	return nil
}
