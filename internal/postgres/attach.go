package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// watchInterval is how often a server we did not start is looked at; the kernel tells only the parent of its end.
const watchInterval = 200 * time.Millisecond

// postmaster is what a running server writes about itself in its folder.
type postmaster struct {
	pid    int
	socket string // "" while it starts
}

// parsePostmaster reads postmaster.pid: process id, data folder, start time, port, socket folder, one a line.
func parsePostmaster(text string) (postmaster, error) {
	lines := strings.Split(text, "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return postmaster{}, fmt.Errorf("postmaster.pid begins with %q, which is no process id", tail(lines[0]))
	}
	p := postmaster{pid: pid}
	if len(lines) > 4 {
		p.socket = strings.TrimSpace(lines[4])
	}
	return p, nil
}

// left is the server that still runs on data, if one does.
func left(data string) (postmaster, bool) {
	text, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return postmaster{}, false
	}
	p, err := parsePostmaster(string(text))
	return p, err == nil && serves(p.pid, data)
}

// serves says whether a living process is the server of data: a server works in its data folder. Where the system does
// not show that (no /proc), a process of that name counts, and connecting decides.
func serves(pid int, data string) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		name, err := exec.Command("ps", "-o", "comm=", "-p", strconv.Itoa(pid)).Output()
		return err == nil && strings.Contains(string(name), "postgres")
	}
	cwd, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "cwd"))
	if err != nil { // ended meanwhile, a zombie, or another account's
		return false
	}
	real, err := filepath.EvalSymlinks(data)
	return err == nil && cwd == real
}

// attach takes over a server that a rouse which died left behind, once it answers. It waits for a server that is just
// shutting down, and then finds none.
func (c *Cluster) attach(ctx context.Context) (bool, error) {
	for {
		p, ok := left(c.data())
		if !ok {
			return false, nil
		}
		if p.socket != "" {
			return c.takeOver(ctx, p)
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("take over the database server (process %d): it does not start: %w", p.pid, context.Cause(ctx))
		case <-time.After(pollInterval):
		}
	}
}

func (c *Cluster) takeOver(ctx context.Context, p postmaster) (bool, error) {
	c.pid, c.socket.path = p.pid, p.socket
	given := make(chan struct{})
	go c.watchLeft(c.done, given)
	err := c.await(ctx)
	if errors.Is(err, errEnded) {
		c.done = make(chan struct{})
		c.socket, err = makeSocketFolder(c.dir, c.account)
		return false, err
	}
	if err == nil {
		err = c.createDatabase(ctx)
	}
	if err != nil {
		close(given)
		return false, fmt.Errorf("take over the database server (process %d): %w; its log is %s", p.pid, err,
			filepath.Join(c.dir, "server.log"))
	}
	c.log.Info("took over a database server that was left running", "pid", p.pid, "folder", c.dir)
	return true, nil
}

// StopLeft ends the server that still runs on a cluster's folder after the process that started it has died. It does
// nothing when no server runs. Like (*Cluster).Stop it is patient until ctx is done, and it does not wait for an
// answer.
func StopLeft(ctx context.Context, dir string) error {
	c, err := newCluster(Options{Dir: dir})
	if err != nil {
		return err
	}
	p, ok := left(c.data())
	if !ok {
		return nil
	}
	c.pid = p.pid
	go c.watchLeft(c.done, nil)
	return c.Stop(ctx)
}

// watchLeft closes done when a server we did not start has ended. It ends without that when given up.
func (c *Cluster) watchLeft(done chan<- struct{}, given <-chan struct{}) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for serves(c.pid, c.data()) {
		select {
		case <-tick.C:
		case <-given:
			return
		}
	}
	close(done)
}

// disownLockFiles does so for both files that name the server by its number: the one in its folder, and the one beside its socket.
func (c *Cluster) disownLockFiles() error {
	for _, path := range []string{filepath.Join(c.data(), "postmaster.pid"), filepath.Join(c.socket.path, socketFile+".lock")} {
		if err := disownLockFile(path, c.data()); err != nil {
			return err
		}
	}
	return nil
}

// disownLockFile repairs an empty lock file, and a stale one whose number a living process has: another one got it, as happens after a
// restart of a container, where numbers are small, or the killed server waits for a parent that is slow to reap it. PostgreSQL would refuse
// to start then. It knows to ignore its parent's number, so ours is written in its place; its other check, for left-over shared memory,
// stays in force.
func disownLockFile(path, data string) error {
	file, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return folderError(path, err)
	}
	defer file.Close()
	text := make([]byte, 4096)
	n, err := file.Read(text)
	if errors.Is(err, io.EOF) { // a crash of the machine cut it short; PostgreSQL would refuse it
		return os.Remove(path)
	}
	if err != nil {
		return folderError(path, err)
	}
	p, err := parsePostmaster(string(text[:n]))
	if err != nil || errors.Is(syscall.Kill(p.pid, 0), syscall.ESRCH) || serves(p.pid, data) {
		return nil // PostgreSQL itself deals with these
	}
	_, rest, _ := strings.Cut(string(text[:n]), "\n")
	if err := file.Truncate(0); err != nil {
		return folderError(path, err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"+rest), 0); err != nil {
		return folderError(path, err)
	}
	return nil
}
