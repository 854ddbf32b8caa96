//go:build unix

package executor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// watchdogScript keeps the list of live groups and, when its input ends because the server is gone, kills them. It
// starts no program, so it needs no memory or process at a bad moment.
const watchdogScript = `trap '' HUP INT QUIT TERM
live=
while read -r verb group cgroup; do
	case $verb in
	add) live="$live $group:$cgroup" ;;
	del)
		rest=
		for g in $live; do [ "${g%%:*}" = "$group" ] || rest="$rest $g"; done
		live=$rest ;;
	esac
done
for g in $live; do
	kill -KILL "-${g%%:*}" 2>/dev/null
	[ -z "${g#*:}" ] || echo 1 >"${g#*:}/cgroup.kill"
done
`

// watchdogWrite bounds a write to a watchdog that does not read.
const watchdogWrite = 5 * time.Second

var errClosed = errors.New("the executor is closed")

// watchdog is one small process, in a session of its own, that outlives the server just long enough to end the groups the
// server left. The parent-death signal reaches leaders only; this reaches whole groups. It is started with the first
// group and started again should somebody kill it.
type watchdog struct {
	mu      sync.Mutex
	live    map[int]string // the cgroup of each group; "": it has none
	process *os.Process
	pipe    *os.File
	closed  bool
}

// add puts a group under watch, and its cgroup.
func (w *watchdog) add(group int, cgroup string) error {
	if strings.ContainsAny(cgroup, " \t\n*?[") { // the script would read it as two
		cgroup = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	if w.live == nil {
		w.live = map[int]string{}
	}
	w.live[group] = cgroup
	if err := w.tell("add", group, cgroup); err != nil {
		delete(w.live, group)
		return err
	}
	return nil
}

// del must be called before the leader is reaped: afterwards the id may belong to somebody else.
func (w *watchdog) del(group int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, group)
	if w.closed {
		return nil
	}
	return w.tell("del", group, "")
}

// tell writes one line, to a new watchdog when the old one does not take it.
func (w *watchdog) tell(verb string, group int, cgroup string) error {
	if w.process != nil && w.write(verb, group, cgroup) == nil {
		return nil
	}
	w.discard()
	if err := w.start(); err != nil {
		return fmt.Errorf("start the watchdog, which ends agents should the server be killed: %w", err)
	}
	for g, its := range w.live {
		if err := w.write("add", g, its); err != nil {
			return fmt.Errorf("tell the watchdog: %w", err)
		}
	}
	return nil
}

func (w *watchdog) write(verb string, group int, cgroup string) error {
	if err := w.pipe.SetWriteDeadline(time.Now().Add(watchdogWrite)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w.pipe, "%s %d %s\n", verb, group, cgroup)
	return err
}

func (w *watchdog) start() error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close() // the child holds its own
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return errors.Join(err, write.Close())
	}
	defer null.Close() // the child holds its own
	process, err := children.start("", func() (*os.Process, error) {
		return os.StartProcess("/bin/sh", []string{"rouse-watchdog", "-c", watchdogScript}, &os.ProcAttr{
			Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Files: []*os.File{read, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
		})
	})
	if err != nil {
		return errors.Join(err, write.Close())
	}
	w.process, w.pipe = process, write
	return nil
}

// discard ends a watchdog without letting it end the groups it knows: they live on.
func (w *watchdog) discard() {
	if w.process == nil {
		return
	}
	_ = w.process.Kill() // it may be dead already, which is why we are here
	children.reap(w.process)
	_ = w.pipe.Close()
	w.process, w.pipe = nil, nil
}

// close ends the watchdog, which ends the groups that are still listed.
func (w *watchdog) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.process == nil {
		return nil
	}
	err := w.pipe.Close()
	children.reap(w.process)
	w.process, w.pipe = nil, nil
	return err
}
