//go:build unix

package executor

import (
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/proc"
	"rouse.dev/rouse/internal/xid"
)

// launchVariable marks every process of a launch in its environment. Process ids are reused, and processes leave their
// group. The mark distinguishes what this launch left from everything else.
const launchVariable = "ROUSE_LAUNCH"

// ProcessGroup identifies the processes of one launch, also for a later start of the server. It is stored as JSON.
type ProcessGroup struct {
	PGID      int    `json:"pgid"` // the leader's process id too
	Host      string `json:"host"`
	BootID    string `json:"boot_id"`    // changes with each boot, process-id namespace and installation
	StartTime uint64 `json:"start_time"` // of the leader, in clock ticks since boot; 0 where it cannot be known
	Launch    string `json:"launch"`     // value of ROUSE_LAUNCH in the environment of its processes, or LaunchesOf an attempt
}

// here is the host and boot of this process, for an installation.
func here(installation string) (host, boot string) {
	host, boot = machine()
	return host, BootOf(boot, installation)
}

var machine = sync.OnceValues(func() (host, boot string) {
	host, _ = os.Hostname()
	return host, proc.BootID()
})

// BootOf makes the id of a boot differ between installations, because rows that were copied into another database name
// processes of the first installation.
func BootOf(boot, installation string) string {
	if boot == "" || installation == "" {
		return boot
	}
	return boot + " " + installation
}

// newLaunchID marks one launch of an attempt.
func newLaunchID(installation string, run xid.ID, attempt int) string {
	return LaunchesOf(installation, run, attempt) + xid.New("lch").String()
}

// LaunchesOf is what the marks of all launches of an attempt begin with. As ProcessGroup.Launch it finds them without
// knowing which launch it was.
func LaunchesOf(installation string, run xid.ID, attempt int) string {
	return fmt.Sprintf("%s/%s/%d/", installation, run, attempt)
}

// identify describes the group that the process with this id leads. The process must not have been reaped.
func identify(pid int, launch, installation string) ProcessGroup {
	host, boot := here(installation)
	return ProcessGroup{PGID: pid, Host: host, BootID: boot, StartTime: proc.Started(pid), Launch: launch}
}

// signal sends to every process of the group. It is only safe while the leader has not been reaped.
func (g ProcessGroup) signal(sig syscall.Signal) error { return syscall.Kill(-g.PGID, sig) }

// EndLeftover ends what is left of a launch of an earlier server process of the installation on this machine, at once,
// and waits until it is gone. It reports whether there was anything to end. A group of another host, boot, container or
// installation is left alone. So is a process that merely got the same id since. The group is signalled only while its
// leader is the recorded process, and every other process must carry the launch's mark in its environment. Prompts in
// files that the launch left on this machine are removed, too.
func EndLeftover(installation string, g ProcessGroup) (ended bool, err error) {
	host, boot := here(installation)
	if g.Host == host {
		removeLaunchFiles(g.Launch)
	}
	if boot == "" || g.Host != host || g.BootID != boot {
		return false, nil
	}
	if g.PGID <= 1 { // the group was never recorded: the mark alone tells
		g.PGID, g.StartTime = 0, 0
	}
	return endLeftover(g, time.Now().Add(endLimit))
}
