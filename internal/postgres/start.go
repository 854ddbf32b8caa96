package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lib/pq"
	"github.com/lib/pq/pqerror"
)

const (
	// pollInterval is how often a starting server is asked whether it answers.
	pollInterval = 4 * time.Millisecond
	// orphanInterval is how long to wait before the next try while processes of a crashed server still run.
	orphanInterval = 200 * time.Millisecond
	// logLimit is the size in bytes at which the server's log is put aside at a start.
	logLimit = 8 << 20
)

// errOrphans says that processes of a server that was killed still hold its memory; they end by themselves.
var errOrphans = errors.New("processes of a crashed server still run")

// start runs the server and returns when it answers and has the database.
func (c *Cluster) start(ctx context.Context) error {
	for {
		err := c.launch(ctx)
		if !errors.Is(err, errOrphans) {
			return err
		}
		c.log.Warn("waiting for processes of a crashed database server to end", "folder", c.dir)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; look for processes named postgres that use %s and end them", err, c.data())
		case <-time.After(orphanInterval):
		}
	}
}

func (c *Cluster) launch(ctx context.Context) error {
	file, err := openLog(filepath.Join(c.dir, "server.log"))
	if err != nil {
		return folderError(c.dir, err)
	}
	defer file.Close()
	began, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return folderError(c.dir, err)
	}
	if err := c.disownLockFiles(); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(c.binaries.Dir, "postgres"), c.settings()...)
	c.child(cmd)
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	c.pid, c.done, c.failure = cmd.Process.Pid, make(chan struct{}), nil
	go c.watch(cmd, began, c.done)
	return c.answer(ctx)
}

// watch waits for a server of ours to end and closes done.
func (c *Cluster) watch(cmd *exec.Cmd, began int64, done chan struct{}) {
	defer close(done)
	err := cmd.Wait()
	if err == nil {
		return
	}
	log := c.logFrom(began)
	if strings.Contains(log, "pre-existing shared memory block") {
		err = errOrphans
	}
	c.failure = fmt.Errorf("PostgreSQL ended: %w: %s%s; its log is %s", err, tail(log), hint(log), filepath.Join(c.dir, "server.log"))
}

// answer waits until the server answers, recovery included, and makes the database. When it does not come to that, the
// server is stopped again.
func (c *Cluster) answer(ctx context.Context) error {
	err := c.await(ctx)
	if err == nil {
		err = c.createDatabase(ctx)
	}
	if err == nil {
		return nil
	}
	select {
	case <-c.done:
		if c.failure != nil {
			return c.failure
		}
	default:
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killGrace)
	defer cancel()
	return errors.Join(fmt.Errorf("start PostgreSQL: %w; its log is %s", err, filepath.Join(c.dir, "server.log")), c.Stop(ctx))
}

// errEnded says that the server ended while it was being waited for.
var errEnded = errors.New("the server ended")

// await asks the server until it answers: a process of its own gives no other signal.
func (c *Cluster) await(ctx context.Context) error {
	db, err := sql.Open("postgres", c.URL("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	slow := time.NewTimer(2 * time.Second)
	defer slow.Stop()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return nil
		}
		if e := pq.As(err); e != nil && e.Code != pqerror.CannotConnectNow {
			return err
		}
		select {
		case <-c.done:
			return errEnded
		case <-ctx.Done():
			return fmt.Errorf("it did not answer in time (%w): %w", context.Cause(ctx), err)
		case <-slow.C:
			c.log.Info("waiting for the database server, it may be recovering from a crash", "folder", c.dir)
		case <-poll.C:
		}
	}
}

// createDatabase makes the database when it is missing. Two at once are fine.
func (c *Cluster) createDatabase(ctx context.Context) error {
	db, err := sql.Open("postgres", c.URL("postgres"))
	if err != nil {
		return err
	}
	defer db.Close()
	var exists bool
	query := "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"
	if err := db.QueryRowContext(ctx, query, c.options.Database).Scan(&exists); err != nil || exists {
		return err
	}
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+pq.QuoteIdentifier(c.options.Database))
	if pq.As(err, pqerror.DuplicateDatabase, pqerror.UniqueViolation) != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create database %s: %w", c.options.Database, err)
	}
	return nil
}

// openLog opens the server's log to append to. A log that has grown large is put aside first, and replaces the one that
// was put aside before. So both are bounded.
func openLog(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := giveAsFolder(file); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// giveAsFolder gives a file that root made to the owner of its folder: a command that root calls beside another account's
// server must leave nothing that this account cannot open.
func giveAsFolder(file *os.File) error {
	info, err := os.Stat(filepath.Dir(file.Name()))
	if err != nil || os.Geteuid() != 0 {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return file.Chown(int(stat.Uid), int(stat.Gid))
	}
	return nil
}

// logFrom is what the server wrote since a place in its log.
func (c *Cluster) logFrom(offset int64) string {
	file, err := os.Open(filepath.Join(c.dir, "server.log"))
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	text, err := io.ReadAll(io.NewSectionReader(file, offset, 1<<20))
	if err != nil {
		return err.Error()
	}
	return string(text)
}
