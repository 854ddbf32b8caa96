package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/postgres"
)

// The folder of the shared cluster, one for each user: two lock files and the cluster itself.
//
//	start.lock  held alone while the cluster is started or stopped
//	use.lock    held together by all who use it; who can hold it alone is the only one
//
// The kernel gives a dead process's locks back, so the next test program to come finds itself alone with a server that
// a killed run left, ends it and begins afresh.
const (
	startLock = "start.lock"
	useLock   = "use.lock"
)

// memoryNeeded is how many bytes must be free in /dev/shm to put the cluster there: in containers it is often 64 MB.
const memoryNeeded = 2 << 30

// patience is how long a cluster whose content nobody needs may take to stop before it is ended at once.
const patience = time.Second

// joinTries bounds how often a folder that was removed while it was being locked is tried again.
const joinTries = 100

func folderPath() string {
	base := os.TempDir()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(memory, &stat); err == nil && stat.Bavail*uint64(stat.Bsize) > memoryNeeded {
		base = memory
	}
	return filepath.Join(base, fmt.Sprintf("rouse-pgtest-%d", os.Geteuid()))
}

// joinCluster starts the shared cluster in dir, or joins the test programs that use it.
func joinCluster(dir string) (*server, error) {
	for range joinTries {
		start, err := openLock(dir, startLock)
		if err != nil {
			return nil, err
		}
		if err := lock(start, syscall.LOCK_EX); err != nil {
			return nil, errors.Join(err, start.Close())
		}
		if !current(start) { // the last one out removed it while we waited
			start.Close()
			continue
		}
		s, err := join(dir)
		return s, errors.Join(err, start.Close())
	}
	return nil, fmt.Errorf("the folder of the test cluster, %s, is removed again and again", dir)
}

// join is called by one test program at a time.
func join(dir string) (*server, error) {
	use, err := openLock(dir, useLock)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	err = lock(use, syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = sweep(ctx, dir)
	} else if errors.Is(err, syscall.EWOULDBLOCK) {
		err = nil
	}
	if err == nil {
		err = lock(use, syscall.LOCK_SH)
	}
	if err != nil {
		return nil, errors.Join(err, use.Close())
	}
	c, err := startCluster(ctx, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the test cluster: %w", err), use.Close())
	}
	return newServer(c.URL, func() error { return leaveCluster(dir, use, c) }), nil
}

func startCluster(ctx context.Context, dir string) (*postgres.Cluster, error) {
	return postgres.StartCluster(ctx, postgres.Options{
		Dir: filepath.Join(dir, "cluster"), Log: slog.New(slog.DiscardHandler), Throwaway: true,
	})
}

// sweep ends a server that a killed run left, and removes its folder.
func sweep(ctx context.Context, dir string) error {
	cluster := filepath.Join(dir, "cluster")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// That it was ended at once is no trouble here: all of it is removed next.
	if err := postgres.StopLeft(ctx, cluster); err != nil && ctx.Err() == nil {
		return err
	}
	if err := os.RemoveAll(cluster); err != nil {
		return fmt.Errorf("remove the left-over test cluster: %w", err)
	}
	return nil
}

// leaveCluster gives the cluster up; whoever is the last stops it and removes its folder.
func leaveCluster(dir string, use *os.File, c *postgres.Cluster) error {
	defer use.Close()
	start, err := openLock(dir, startLock)
	if err != nil {
		return err
	}
	defer start.Close()
	if err := lock(start, syscall.LOCK_EX); err != nil {
		return err
	}
	if err := lock(use, syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // others still test
	} else if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Stop(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the test cluster: %w", err)
	}
	return nil
}

// openLock opens a lock file in the shared folder, which is made when missing and must be ours alone to write to.
func openLock(dir, name string) (*os.File, error) {
	for range joinTries {
		if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("folder of the test cluster: %w", err)
		}
		info, err := os.Lstat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by the last one out, between two of our steps
		}
		if err != nil {
			return nil, fmt.Errorf("folder of the test cluster: %w", err)
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode()&0o022 != 0 {
			return nil, fmt.Errorf("%s is in the way of the test cluster: it belongs to another account or is open to "+
				"others; remove it", dir)
		}
		file, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("folder of the test cluster: %w", err)
		}
		return file, nil
	}
	return nil, fmt.Errorf("the folder of the test cluster, %s, is removed again and again", dir)
}

// lock waits for a lock through interrupted calls.
func lock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// current tells whether a locked file is still the one of its name.
func current(file *os.File) bool {
	mine, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(file.Name())
	return err == nil && os.SameFile(mine, named)
}
