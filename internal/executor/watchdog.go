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

	"rouse.dev/rouse/internal/agentstage"
)

// watchdogWrite bounds a write to a watchdog that does not read.
const watchdogWrite = 5 * time.Second

var errClosed = errors.New("the executor is closed")

// watchdog is one small process, in a session of its own. It outlives the server just long enough to end the groups
// that the server left. While the server hangs, it ends the groups whose lease is over. The parent-death signal reaches
// leaders only; this reaches whole groups. It is started with the first group and started again should somebody kill
// it.
type watchdog struct {
	mu      sync.Mutex
	live    map[int]*underWatch
	process *os.Process
	pipe    *os.File
	closed  bool
}

// underWatch is one group.
type underWatch struct {
	cgroup string    // "": it has none
	until  time.Time // zero: not bounded
}

// add puts a group under watch, and its cgroup.
func (w *watchdog) add(group int, cgroup string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return errClosed
	}
	if strings.Contains(cgroup, "\n") { // it would be two lines
		cgroup = ""
	}
	if w.live == nil {
		w.live = map[int]*underWatch{}
	}
	w.live[group] = &underWatch{cgroup: cgroup}
	if err := w.tell(addLine(group, cgroup)); err != nil {
		delete(w.live, group)
		return err
	}
	return nil
}

// until tells when a group's time is over.
func (w *watchdog) until(group int, end time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.live[group]; one != nil && !w.closed {
		one.until = end
		_ = w.tell(untilLine(group, end)) // without a watchdog the server alone ends it, and the next group tells of it
	}
}

func addLine(group int, cgroup string) string { return fmt.Sprintf("add %d %s", group, cgroup) }

func untilLine(group int, end time.Time) string {
	return fmt.Sprintf("until %d %d", group, max(time.Until(end), 0).Milliseconds())
}

// del must be called before the leader is reaped, because afterwards the id may belong to another process.
func (w *watchdog) del(group int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.live, group)
	if w.closed {
		return nil
	}
	return w.tell(fmt.Sprintf("del %d", group))
}

// tell writes one line, to a new watchdog when the old one does not take it.
func (w *watchdog) tell(line string) error {
	if w.process != nil && w.write(line) == nil {
		return nil
	}
	w.discard()
	if err := w.start(); err != nil {
		return fmt.Errorf("start the watchdog, which ends agents should the server be killed: %w", err)
	}
	for group, its := range w.live {
		err := w.write(addLine(group, its.cgroup))
		if err == nil && !its.until.IsZero() {
			err = w.write(untilLine(group, its.until))
		}
		if err != nil {
			return fmt.Errorf("tell the watchdog: %w", err)
		}
	}
	return nil
}

func (w *watchdog) write(line string) error {
	if err := w.pipe.SetWriteDeadline(time.Now().Add(watchdogWrite)); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w.pipe, line)
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
	self, err := agentstage.Self()
	if err != nil {
		return errors.Join(err, write.Close())
	}
	process, err := children.start("", func() (*os.Process, error) {
		return os.StartProcess(self, []string{agentstage.WatchdogName}, &os.ProcAttr{
			Dir: "/", Env: []string{}, Files: []*os.File{read, null, null}, Sys: &syscall.SysProcAttr{Setsid: true},
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
