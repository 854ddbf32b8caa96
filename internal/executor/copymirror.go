//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"rouse.dev/rouse/internal/workcopy"
	"rouse.dev/rouse/internal/xid"
)

// sweepMirrors removes the mirrors of a workspace that nobody has used for long.
func (c *Command) sweepMirrors(ctx context.Context, workspace xid.ID, folders copyFolders, now time.Time) error {
	entries, err := os.ReadDir(folders.mirrors)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	problems := []error{err}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !entry.IsDir() {
			continue
		}
		if err := c.sweepMirror(ctx, workspace, folders, filepath.Join(folders.mirrors, entry.Name()), now); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", entry.Name(), err))
		}
	}
	return errors.Join(problems...)
}

// sweepMirror removes one, unless it is in use: whoever makes a working copy holds it until the copy is noted.
func (c *Command) sweepMirror(ctx context.Context, workspace xid.ID, folders copyFolders, path string, now time.Time) error {
	if !(workcopy.Mirror{UsedAt: fetchedAt(path)}).Goes(now) {
		return nil
	}
	unlock, busy := c.copies.tryLock(path)
	if busy != nil {
		return nil
	}
	defer unlock()
	if !c.enter() {
		return nil
	}
	defer c.live.Done()
	notes, err := folders.all()
	if err != nil {
		return err
	}
	mirror := workcopy.Mirror{UsedAt: fetchedAt(path)}
	for _, n := range notes {
		if n.Common == path || n.unknown { // of one whose note was lost it is not known
			mirror.Copies++
		}
	}
	if !mirror.Goes(now) {
		return nil
	}
	o, failure := c.options.of(workspace)
	if failure != nil {
		return failure
	}
	if mirror.Branches, err = c.gitAs(o, Request{WorkspaceID: workspace}).In(path).Trusting(path).HasBranches(ctx); err != nil || !mirror.Goes(now) {
		return err
	}
	return withRightsOf(o.Credential, func() error {
		openFolders(path)
		return os.RemoveAll(path)
	})
}

// fetchedAt is when a mirror was brought up to date, or made.
func fetchedAt(path string) (at time.Time) {
	for _, name := range []string{filepath.Join(path, "FETCH_HEAD"), path} {
		if info, err := os.Lstat(name); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}
