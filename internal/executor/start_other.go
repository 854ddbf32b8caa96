//go:build unix && !linux

package executor

import (
	"os"
	"syscall"
	"time"
)

// cgroup is of Linux alone.
type cgroup struct{}

// stageError is of Linux alone.
type stageError struct{}

// Error never has anything to say.
func (*stageError) Error() string { return "" }

// spawn starts the program in a session of its own.
func (c *launcher) spawn(l launch, files []*os.File) (p *os.Process, _ *cgroup, err error) {
	c.spawner.do(func() {
		p, err = children.start(l.mark, func() (*os.Process, error) {
			return os.StartProcess(l.program, l.argv, &os.ProcAttr{Dir: l.directory, Env: l.environment, Files: files,
				Sys: &syscall.SysProcAttr{Setsid: true, Credential: l.options.Credential}})
		})
	})
	return p, nil, err
}

func (p *process) endRest(launch, time.Time) error { return nil }

func (p *process) killAll() { _ = p.group.signal(syscall.SIGKILL) } // the leader is unreaped, so the group is there

func (p *process) cgroupPath() string { return "" }

// AccountsAreShown is about Linux alone.
func AccountsAreShown() error { return nil }

// Containment says that this system has no cgroups.
func (o Options) Containment() (cgroups, why string) { return "", "they are of Linux alone" }
