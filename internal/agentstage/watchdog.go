package agentstage

import (
	"bufio"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// WatchdogName is the first argument of the program when it is the watchdog. The watchdog knows the groups of agents.
// It ends all of them when its input ends, because the server is gone then. It ends one when the group's time is over,
// because the server hangs then. The lines of its input are
//
//	add GROUP CGROUP    a group to end, and its cgroup, which may be missing
//	until GROUP MS      its time is over in so many milliseconds, unless another such line comes
//	del GROUP           it has ended
const WatchdogName = "rouse-agent-watchdog"

// watched is one group.
type watched struct {
	cgroup string
	over   *time.Timer // nil: its time is not bounded
}

// watch is the watchdog from start to end.
func watch() {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	live := map[int]*watched{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		obey(live, lines.Text())
	}
	for group, w := range live {
		end(group, w.cgroup)
	}
	syscall.Exit(0) // at once: os.Exit waits for a second where the race detector is built in, and there is nothing to tell
}

// obey carries out one line. A line that the watchdog does not understand did not come from its server.
func obey(live map[int]*watched, line string) {
	verb, rest, _ := strings.Cut(line, " ")
	number, more, _ := strings.Cut(rest, " ")
	group, err := strconv.Atoi(number)
	if err != nil || group <= 1 {
		return
	}
	w := live[group]
	switch {
	case verb == "add":
		live[group] = &watched{cgroup: more}
	case w == nil:
	case verb == "del":
		w.stop()
		delete(live, group)
	case verb == "until":
		ms, err := strconv.ParseInt(more, 10, 64)
		if err != nil {
			return
		}
		w.stop()
		cgroup := w.cgroup
		w.over = time.AfterFunc(time.Duration(ms)*time.Millisecond, func() { end(group, cgroup) })
	}
}

func (w *watched) stop() {
	if w.over != nil {
		w.over.Stop()
	}
}

// end kills a group and what is in its cgroup. The server has not reaped the group's leader while the group is listed, so that the id is
// still its own.
func end(group int, cgroup string) {
	_ = syscall.Kill(-group, syscall.SIGKILL) // an error means that it has ended
	if cgroup != "" {
		_ = os.WriteFile(filepath.Join(cgroup, "cgroup.kill"), []byte("1"), 0) // as above
	}
}
