package executor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"rouse.dev/rouse/internal/proc"
)

// cgroupPrefix begins the names of cgroups of attempts. The rest is the installation, run, attempt and launch, and who
// made it: process, its start, and the namespace of process ids in which these count.
const cgroupPrefix = "rouse~"

// cgroupServer is the leaf to which the server itself moves when it may limit its agents, because a cgroup with
// processes of its own may not limit its children.
const cgroupServer = "rouse-server"

// cgroups is where attempts get a cgroup each (version 2). A process that is born in a cgroup cannot leave it, whatever
// it does to its group, session and environment. The kernel ends all processes of a cgroup at once.
type cgroups struct {
	dir    string // "": there are none
	why    string // of none
	limits bool   // the number of processes can be limited
}

// cgroup is one attempt's.
type cgroup struct{ dir string }

// openCgroups finds out, by making one, whether attempts can have cgroups.
func openCgroups() cgroups {
	dir, err := ownCgroup("/proc/self/mountinfo", "/proc/self/cgroup")
	if err != nil {
		return cgroups{why: err.Error()}
	}
	g := cgroups{dir: dir, limits: shareOut(dir)}
	probe, err := g.make("probe/"+strconv.Itoa(os.Getpid())+"/", 0)
	if err != nil {
		return cgroups{why: fmt.Sprintf("no cgroup can be made in %s: %v", dir, err)}
	}
	defer func() { _ = probe.remove() }() // an empty folder that stays does no harm
	if err := probe.try(); err != nil {
		return cgroups{why: fmt.Sprintf("a process cannot be started in a cgroup of %s: %v", dir, err)}
	}
	return g
}

// ownCgroup is the folder of this process's cgroup, as it is seen here.
func ownCgroup(mounts, own string) (string, error) {
	root, point, err := cgroupMount(mounts)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(own)
	if err != nil {
		return "", fmt.Errorf("which cgroup this is cannot be read: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::")
		if !ok {
			continue
		}
		rel, err := filepath.Rel(root, strings.TrimSuffix(path, "/"+cgroupServer))
		if path == "/" {
			rel, err = ".", nil
		}
		if err != nil || !filepath.IsLocal(rel) {
			return "", fmt.Errorf("the cgroup %s of this process is not to be seen here", path)
		}
		return filepath.Join(point, rel), nil
	}
	return "", errors.New("this process is in no cgroup of version 2")
}

// cgroupMount finds where cgroups of version 2 are mounted, and what of them.
func cgroupMount(mounts string) (root, point string, err error) {
	file, err := os.Open(mounts)
	if err != nil {
		return "", "", fmt.Errorf("the mounts cannot be read: %w", err)
	}
	defer file.Close() // it was only read
	for lines := bufio.NewScanner(file); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(before)
		if kind := strings.Fields(after); len(fields) > 4 && len(kind) > 0 && kind[0] == "cgroup2" {
			return unescape(fields[3]), unescape(fields[4]), nil
		}
	}
	return "", "", errors.New("no cgroups of version 2 are mounted")
}

// unescape reads a path as mountinfo writes it: with octal codes for spaces and the like.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// shareOut lets attempts' cgroups have a limit of processes, where this one was given to us to divide (Delegate= of systemd).
func shareOut(dir string) bool {
	if !isDelegated(dir) || !strings.Contains(" "+firstLineOf(filepath.Join(dir, "cgroup.controllers"))+" ", " pids ") {
		return false
	}
	leaf := filepath.Join(dir, cgroupServer)
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return false
	}
	for range 10 { // those that were born meanwhile, too
		pids := strings.Fields(textOf(filepath.Join(dir, "cgroup.procs")))
		if len(pids) == 0 {
			return os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+pids"), 0) == nil
		}
		for _, pid := range pids {
			_ = os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(pid), 0) // one that has ended cannot be moved
		}
	}
	return false
}

func isDelegated(dir string) bool {
	value := make([]byte, 8)
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

func textOf(file string) string { text, _ := os.ReadFile(file); return string(text) }

func firstLineOf(file string) string { return firstLine(textOf(file)) }

// make makes the cgroup of a launch; most bounds its processes and threads, where that can be bounded.
func (g cgroups) make(mark string, most uint64) (*cgroup, error) {
	made := &cgroup{filepath.Join(g.dir, cgroupName(mark)+cgroupOwner(os.Getpid(), proc.Started(os.Getpid())))}
	if err := os.Mkdir(made.dir, 0o755); err != nil {
		return nil, err
	}
	if g.limits && most > 0 {
		if err := os.WriteFile(filepath.Join(made.dir, "pids.max"), []byte(strconv.FormatUint(most, 10)), 0); err != nil {
			return nil, errors.Join(err, made.remove())
		}
	}
	return made, nil
}

// cgroupName is the beginning of the names of cgroups with a mark, or with marks that begin so.
func cgroupName(mark string) string {
	return cgroupPrefix + strings.ReplaceAll(strings.ReplaceAll(mark, "~", "-"), "/", "~")
}

func cgroupOwner(pid int, start uint64) string {
	namespace, _ := os.Readlink("/proc/self/ns/pid")
	return fmt.Sprintf("~%d~%d~%s", pid, start, strings.Trim(strings.TrimPrefix(namespace, "pid:"), "[]"))
}

// try starts something in the cgroup.
func (c *cgroup) try() error {
	if _, err := os.Stat(filepath.Join(c.dir, "cgroup.kill")); err != nil {
		return fmt.Errorf("the kernel is older than 5.14: %w", err)
	}
	folder, err := c.open()
	if err != nil {
		return err
	}
	defer folder.Close() // a handle only
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", ":"}, &os.ProcAttr{Env: []string{}, Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(folder.Fd())}})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// open is a handle by which a process is started in it.
func (c *cgroup) open() (*os.File, error) { return os.Open(c.dir) }

// kill ends all that is in it, at once.
func (c *cgroup) kill() error {
	err := os.WriteFile(filepath.Join(c.dir, "cgroup.kill"), []byte("1"), 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil // it is gone
	}
	return err
}

// end kills what is in it, waits until that is gone, and removes it.
func (c *cgroup) end(deadline time.Time) error {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if err := c.kill(); err != nil {
			return fmt.Errorf("end the cgroup %s: %w", c.dir, err)
		}
		if !strings.Contains(textOf(filepath.Join(c.dir, "cgroup.events")), "populated 1") {
			return c.remove()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the processes of the cgroup %s are still there %s after they were killed", c.dir, endLimit)
		}
		time.Sleep(pause) //nolint:forbidigo // a process that hangs in the kernel ends when it likes
	}
}

// remove removes it, with those that the agent made in it.
func (c *cgroup) remove() error {
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if entry.IsDir() {
			err = errors.Join(err, (&cgroup{filepath.Join(c.dir, entry.Name())}).remove())
		}
	}
	if gone := os.Remove(c.dir); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// endCgroups ends the cgroups, wherever they are, that wanted says.
func endCgroups(wanted func(name string) bool, deadline time.Time) (ended bool, err error) {
	_, point, mountErr := cgroupMount("/proc/self/mountinfo")
	if mountErr != nil {
		return false, nil
	}
	var found []string
	walkErr := filepath.WalkDir(point, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil: // one that is not ours to see, or gone meanwhile
			return nil
		case !entry.IsDir():
			return nil
		case strings.HasPrefix(entry.Name(), cgroupPrefix):
			if wanted(entry.Name()) {
				found = append(found, path)
			}
			return fs.SkipDir
		}
		return nil
	})
	for _, dir := range found {
		ended = ended || strings.Contains(textOf(filepath.Join(dir, "cgroup.events")), "populated 1")
		err = errors.Join(err, (&cgroup{dir}).end(deadline))
	}
	return ended, errors.Join(walkErr, err)
}

// endCgroupsOf ends those of a launch, or of all launches of an attempt.
func endCgroupsOf(launch string, deadline time.Time) (bool, error) {
	if launch == "" {
		return false, nil
	}
	return endCgroups(func(name string) bool { return strings.HasPrefix(name, cgroupName(launch)) }, deadline)
}

// EndOrphanedCgroups ends what processes of the installation that are dead left in cgroups, on this machine and among the processes
// that can be seen here.
func EndOrphanedCgroups(installation string) error {
	_, err := endCgroups(func(name string) bool {
		return strings.HasPrefix(name, cgroupName(installation+"/")) && !ownerLives(name)
	}, time.Now().Add(endLimit))
	return err
}

// ownerLives is true for a cgroup whose maker lives, or cannot be seen from here.
func ownerLives(name string) bool {
	parts := strings.Split(name, "~")
	if len(parts) < 4 {
		return true
	}
	own := parts[len(parts)-3:]
	pid, err1 := strconv.Atoi(own[0])
	start, err2 := strconv.ParseUint(own[1], 10, 64)
	if err1 != nil || err2 != nil || cgroupOwner(pid, start) != "~"+strings.Join(own, "~") {
		return true
	}
	return proc.Started(pid) == start
}
