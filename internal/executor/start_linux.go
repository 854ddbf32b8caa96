package executor

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/agentstage"
)

// stageLimit bounds what happens between the start of a process and that of the agent's program in it.
const stageLimit = time.Minute

// containment finds out once for this process how agents are kept together: in cgroups, or by adoption.
var containment = sync.OnceValue(openCgroups)

// shown finds out once whether a process can be given a list of users of its own.
var shown = sync.OnceValue(func() error {
	c := newLauncher(Options{})
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer closeFiles(null)
	const line = "rouse-probe:x:65533:65533::/:/bin/sh"
	order := agentstage.Order{Program: "/bin/sh", Argv: []string{"sh", "-c", ":"}, Env: []string{}, Dir: "/", Passwd: line, Group: "rouse-probe:x:65533:"}
	p, err := c.stage("", order, &syscall.SysProcAttr{}, []*os.File{null, null, null})
	if err == nil {
		children.reap(p)
	}
	return errors.Join(err, c.Close())
})

// AccountsAreShown is nil when agents see their own account in their list of users, and why not when they do not.
func AccountsAreShown() error { return shown() }

// Containment says below which cgroup the agents of these options are kept together; "" and the reason when they are
// not in cgroups.
func (o Options) Containment() (cgroups, why string) {
	if o.NoCgroups {
		return "", "they are switched off (--agent-cgroups)"
	}
	g := containment()
	return g.dir, g.why
}

// means is how the agents of these options are kept together.
func (o Options) means() (cgroups, error) {
	if !o.NoCgroups {
		if g := containment(); g.dir != "" {
			return g, nil
		}
	}
	return cgroups{}, adopt()
}

// spawn starts the program in a session of its own, hence a process group of its own without a terminal, that dies with the thread
// which started it. Between the two stands the stage, which takes rights away.
func (c *launcher) spawn(l launch, files []*os.File) (*os.Process, *cgroup, error) {
	means, err := l.options.means()
	if err != nil {
		return nil, nil, err
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	var home *cgroup
	if means.dir != "" {
		if home, err = means.make(l.mark, uint64(l.options.Processes)); err != nil {
			return nil, nil, fmt.Errorf("make a cgroup: %w", err)
		}
		folder, err := home.open()
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open a cgroup: %w", err), home.remove())
		}
		defer folder.Close() // a handle only
		attr.UseCgroupFD, attr.CgroupFD = true, int(folder.Fd())
	}
	order := l.order(os.Getpid(), means)
	p, err := c.stage(l.mark, order, attr, files)
	if err != nil && home != nil {
		err = errors.Join(err, home.end(time.Now().Add(endLimit)))
	}
	return p, home, err
}

// stage starts the stage and waits until it is the agent's program.
func (c *launcher) stage(mark string, order agentstage.Order, attr *syscall.SysProcAttr, files []*os.File) (*os.Process, error) {
	orderRead, orderWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		closeFiles(orderRead, orderWrite)
		return nil, err
	}
	defer closeFiles(reportRead)
	self, err := agentstage.Self()
	if err != nil {
		closeFiles(orderRead, orderWrite, reportWrite)
		return nil, err
	}
	var started *os.Process
	c.spawner.do(func() {
		started, err = children.start(mark, func() (*os.Process, error) {
			return os.StartProcess(self, []string{agentstage.Name}, &os.ProcAttr{
				Dir: "/", Env: []string{}, Files: append(files, orderRead, reportWrite), Sys: attr,
			})
		})
	})
	closeFiles(orderRead, reportWrite)
	if err != nil {
		closeFiles(orderWrite)
		return nil, err
	}
	var told sync.WaitGroup
	told.Go(func() {
		_ = order.Encode(orderWrite) // a stage that has ended says why
		closeFiles(orderWrite)
	})
	err = await(reportRead)
	if err != nil {
		_ = started.Kill() // an error means that it has ended
		children.reap(started)
	}
	told.Wait()
	if err != nil {
		return nil, err
	}
	return started, nil
}

// await waits for the end of the stage's report; nil says that the program runs.
func await(from *os.File) error {
	if err := from.SetReadDeadline(time.Now().Add(stageLimit)); err != nil {
		return err
	}
	report, err := agentstage.ReadReport(from)
	switch {
	case err != nil:
		return fmt.Errorf("wait for the agent's program: %w", err)
	case report == nil:
		return nil
	case report.Step == "exec" || report.Step == "chdir":
		return report.Errno
	}
	return &stageError{report.Step, report.Errno}
}

// order is what the stage does for a launch.
func (l launch) order(parent int, means cgroups) agentstage.Order {
	o := l.options
	order := agentstage.Order{
		Program: l.program, Argv: l.argv, Env: l.environment, Dir: l.directory, Parent: parent, Subreaper: means.dir == "",
		NoNewPrivs: !o.NewPrivileges, OOMScore: o.OOMScore, ForegroundTTY: l.terminal,
	}
	if o.Credential != nil {
		order.Drop, order.UID, order.GID = true, o.Credential.Uid, o.Credential.Gid
	}
	if a := o.account; a != nil && AccountsAreShown() == nil {
		order.Passwd, order.Group = a.Passwd, a.Group
	}
	if o.Processes > 0 && !means.limits {
		order.Processes = uint64(o.Processes) + o.othersOfAccount()
	}
	return order
}

// othersOfAccount is what has to be added to a limit that counts all processes of an account: its processes that are
// not agents.
func (o Options) othersOfAccount() uint64 {
	if o.account != nil && o.account.Sweep != nil {
		return 0
	}
	uid := uint32(os.Geteuid())
	if o.Credential != nil {
		uid = o.Credential.Uid
	}
	return threadsOf(uid)
}

// stageError is what failed before the agent's program began.
type stageError struct {
	step  string
	errno syscall.Errno
}

// Error says what was being done.
func (e *stageError) Error() string { return e.step + ": " + e.errno.Error() }

// Unwrap is the system's error.
func (e *stageError) Unwrap() error { return e.errno }

// endRest ends what the group's end has left: in its cgroup, or adopted by this process.
func (p *process) endRest(l launch, deadline time.Time) error {
	if p.home != nil {
		return p.home.end(deadline)
	}
	return endOrphans(l.mark, deadline)
}

// killAll ends the group and, where there is one, the cgroup.
func (p *process) killAll() {
	_ = p.group.signal(syscall.SIGKILL) // the leader is unreaped, so the group is there
	if p.home != nil {
		_ = p.home.kill() // the end looks again
	}
}

// cgroupPath is where the watchdog ends what is left should the server be killed; "" without one.
func (p *process) cgroupPath() string {
	if p.home == nil {
		return ""
	}
	return p.home.dir
}
