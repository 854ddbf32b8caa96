package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/account"
)

// initPrefix names folders in which a cluster is being made. Only a finished one is renamed to data, so an interrupted
// start leaves nothing that would never start.
const initPrefix = "init-"

// initialize makes the cluster when the folder holds none.
func (c *Cluster) initialize(ctx context.Context) error {
	if err := removeUnfinished(c.dir); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(c.data(), "PG_VERSION")); err == nil {
		return nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return folderError(c.data(), err)
	}
	began := time.Now()
	dir, err := os.MkdirTemp(c.dir, initPrefix) // a name of its own: an orphaned initdb may still write to an older one
	if err != nil {
		return folderError(c.dir, err)
	}
	if err := c.initdb(ctx, dir); err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.Rename(dir, c.data()); err != nil {
		return folderError(c.data(), err)
	}
	c.log.Info("made a database cluster", "folder", c.dir, "postgres", c.binaries.Major, "took", time.Since(began))
	return nil
}

func (c *Cluster) initdb(ctx context.Context, dir string) error {
	if err := give(dir, c.account); err != nil {
		return err
	}
	locale := "C.UTF-8"
	if runtime.GOOS != "linux" { // others may lack it; the encoding is UTF8 all the same
		locale = "C"
	}
	// C.UTF-8 orders texts as C does, but PostgreSQL compares them by bytes only where the order is called C: each index of ids
	// gains.
	args := []string{"-D", dir, "-U", role, "-A", "peer", "-E", "UTF8", "--locale=" + locale, "--lc-collate=C", "--no-instructions"}
	if c.options.Throwaway {
		args = append(args, "--no-sync", "--wal-segsize=1") // tests copy clusters, with a segment of mostly zeros
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.binaries.Dir, "initdb"), args...)
	c.child(cmd)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with its own children
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stderr = &out // its standard output is only progress
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("make a database cluster in %s: interrupted: %w", c.dir, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("make a database cluster in %s: initdb: %w: %s%s", c.dir, err, tail(out.String()), hint(out.String()))
	}
	return nil
}

// child makes a process of PostgreSQL what it must be: under the server's account, out of reach of the terminal's
// Ctrl-C, and without our environment, which may hold secrets and PG… variables meant for others.
func (c *Cluster) child(cmd *exec.Cmd) {
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.account.Credential(), Setpgid: true}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	if path := os.Getenv("LD_LIBRARY_PATH"); path != "" {
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+path)
	}
}

// reachable proves that the server's account can enter the cluster's folder and run the programs, by doing so.
func (c *Cluster) reachable() error {
	if c.account == nil {
		return nil
	}
	program := filepath.Join(c.binaries.Dir, "postgres")
	cmd := exec.Command(program, "-V")
	c.child(cmd)
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("started as root, but this process may not change to account %s, which PostgreSQL needs: %w; "+
			"start rouse as an ordinary user, or give the container the SETUID and SETGID capabilities", c.account, err)
	}
	for _, path := range []string{c.dir, program} {
		if folder := blocker(path, c.account); folder != "" {
			return &UnreachableError{Path: path, Folder: folder, Account: c.account.String()}
		}
	}
	return fmt.Errorf("run %s as %s in %s: %w", program, c.account, c.dir, err)
}

// removeUnfinished clears away what interrupted starts left.
func removeUnfinished(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, initPrefix+"*"))
	if err != nil {
		return fmt.Errorf("cluster folder %s: %w", dir, err)
	}
	for _, path := range left {
		if err := os.RemoveAll(path); err != nil {
			return folderError(path, err)
		}
	}
	return nil
}

// majorOf is the version that made the data folder, 0 when there is none yet.
func majorOf(data string) (int, error) {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, folderError(data, err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s does not look like a PostgreSQL data folder: PG_VERSION holds %q; choose another "+
			"folder with --data-dir", data, tail(string(text)))
	}
	return major, nil
}

// give makes a the owner of a folder of ours; nothing for our own account.
func give(dir string, a *account.Account) error {
	if a == nil {
		return nil
	}
	if err := os.Lchown(dir, int(a.UID), int(a.GID)); err != nil {
		return fmt.Errorf("give %s to account %s: %w", dir, a, err)
	}
	return nil
}

// hint says what to do about trouble that PostgreSQL reports in its own words.
func hint(output string) string {
	switch {
	case strings.Contains(output, "No space left on device"), strings.Contains(output, "Check free disk space"):
		return "; the disk is full: free some space, or choose another folder with --data-dir"
	case strings.Contains(output, "Read-only file system"):
		return "; the file system is read-only: choose another folder with --data-dir"
	case strings.Contains(output, "could not look up effective user ID"):
		return "; PostgreSQL needs its account in the system's user list: add one for this number"
	}
	return ""
}

// tail is the end of a text, enough to see why a program failed.
func tail(s string) string {
	s = strings.TrimSpace(s)
	if n := 1200; len(s) > n {
		return "… " + s[len(s)-n:]
	}
	return s
}
