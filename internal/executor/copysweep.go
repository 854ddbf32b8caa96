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

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/git"
	"rouse.dev/rouse/internal/workcopy"
	"rouse.dev/rouse/internal/xid"
)

// lookAgain is how long after a look at a working copy that was held, because of the work in it, the next one comes. A mirror is brought
// up to date before.
const lookAgain = time.Hour

// CopyKeeper knows of the tasks and runs that working copies were made for, and tells people of those that are held.
type CopyKeeper interface {
	CopyOwners(ctx context.Context, workspace xid.ID, owners []xid.ID) (map[xid.ID]domain.CopyOwner, error)
	CopyKept(ctx context.Context, workspace xid.ID, kept domain.KeptCopy) error
	CopyRemoved(ctx context.Context, workspace xid.ID, name string) error
}

// SweepCopies removes the working copies below the work root whose time is over and that have nobody's work in them, and tells of the
// others, once each. Mirrors that nobody has used for long go, too. What cannot be treated does not stop the rest.
func (c *Command) SweepCopies(ctx context.Context, keeper CopyKeeper, now time.Time) error {
	entries, err := os.ReadDir(filepath.Join(c.options.WorkRoot, "copies"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	problems := []error{err}
	for _, entry := range entries {
		workspace, err := xid.Parse(entry.Name())
		if err != nil || !entry.IsDir() {
			continue
		}
		if err := c.sweepWorkspace(ctx, keeper, workspace, now); err != nil {
			problems = append(problems, fmt.Errorf("sweep the working copies of %s: %w", workspace, err))
		}
	}
	return errors.Join(problems...)
}

func (c *Command) sweepWorkspace(ctx context.Context, keeper CopyKeeper, workspace xid.ID, now time.Time) error {
	folders := c.options.copyFolders(workspace)
	return errors.Join(c.sweepTrees(ctx, keeper, workspace, folders, now), c.sweepMirrors(ctx, workspace, folders, now))
}

func (c *Command) sweepTrees(ctx context.Context, keeper CopyKeeper, workspace xid.ID, folders copyFolders, now time.Time) error {
	notes, err := folders.all()
	if errors.Is(err, fs.ErrNotExist) || len(notes) == 0 {
		return nil
	}
	owners := make([]xid.ID, len(notes))
	for i, n := range notes {
		owners[i] = n.Owner
	}
	known, failed := keeper.CopyOwners(ctx, workspace, owners)
	if failed != nil {
		return errors.Join(err, failed)
	}
	problems := []error{err}
	for _, n := range notes {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s := &sweptCopy{c: c, keeper: keeper, workspace: workspace, folders: folders, note: n, now: now}
		if err := s.sweep(ctx, known[n.Owner]); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", n.Name, err))
		}
	}
	return errors.Join(problems...)
}

// sweptCopy is a working copy that a sweep looks at.
type sweptCopy struct {
	c         *Command
	keeper    CopyKeeper
	workspace xid.ID
	folders   copyFolders
	note      *copyNote
	now       time.Time
}

func (s *sweptCopy) sweep(ctx context.Context, owner domain.CopyOwner) error {
	facts := workcopy.Facts{Made: s.note.Made, MadeAt: s.note.MadeAt, Owner: owner, Keep: s.note.Keep}
	if workcopy.Decide(facts, s.now) == workcopy.Stay || s.note.Told && s.now.Before(s.note.LookedAt.Add(lookAgain)) {
		return nil
	}
	release, busy := s.c.copies.tryLock(s.path())
	if busy != nil {
		return nil
	}
	defer release()
	if !s.c.enter() {
		return nil
	}
	defer s.c.live.Done()
	if again, err := s.folders.read(s.note.Name); err != nil || !s.note.unknown && (again == nil || again.Run != s.note.Run || again.Made != s.note.Made) {
		return err // an attempt was at it meanwhile
	}
	o, failure := s.c.options.of(s.workspace)
	if failure != nil {
		return failure
	}
	g := s.c.gitAs(o, Request{RunID: s.note.Owner, WorkspaceID: s.workspace})
	if _, err := os.Lstat(s.path()); errors.Is(err, fs.ErrNotExist) { // somebody has removed it by hand
		return s.forget(ctx, o, g, false)
	}
	if s.note.unknown {
		s.learn(ctx, g)
	}
	if facts.Made {
		facts.Work = s.look(ctx, g)
	}
	switch workcopy.Decide(facts, s.now) {
	case workcopy.Hold:
		return s.hold(ctx, *facts.Work)
	case workcopy.Remove:
		return s.forget(ctx, o, g, true)
	}
	return nil
}

// key names it to the keeper, which hears of several machines.
func (s *sweptCopy) key() string {
	host, _ := here("") // which machine that is matters more than its installation
	return workcopy.Key(s.note.Name, host, s.folders.trees)
}

func (s *sweptCopy) path() string { return s.folders.tree(s.note.Name) }

// repository is git where the working copy's commits are.
func (s *sweptCopy) repository(g git.Git) git.Git {
	return g.In(s.note.Common).Trusting(s.note.Common).Trusting(filepath.Dir(s.note.Common))
}

// learn finds out what a lost note said.
func (s *sweptCopy) learn(ctx context.Context, g git.Git) {
	s.note.Common, _ = g.In(s.path()).CommonDir(ctx) // a look tells what is wrong
	s.note.Own = filepath.Dir(s.note.Common) != s.folders.mirrors
	s.note.Branch = workcopy.Branch(s.note.Owner)
}

// look sees what would be lost. What seems not to be pushed may have been from elsewhere, so the remote is asked before a person is.
func (s *sweptCopy) look(ctx context.Context, g git.Git) *workcopy.Work {
	w, err := s.work(ctx, g)
	if err == nil && w.Unpushed > 0 && !s.note.Own {
		if unlock, busy := s.c.copies.tryLock(s.note.Common); busy == nil {
			fetched := s.repository(g).Fetch(ctx)
			unlock()
			if fetched == nil { // else what is known here counts
				w, err = s.work(ctx, g)
			}
		}
	}
	if err != nil {
		w.Unreadable = err.Error()
	}
	return &w
}

func (s *sweptCopy) work(ctx context.Context, g git.Git) (w workcopy.Work, err error) {
	if w.Uncommitted, err = g.In(s.path()).Uncommitted(ctx); err != nil {
		return w, err
	}
	w.Unpushed, err = g.In(s.path()).Unpushed(ctx, s.note.Branch, s.note.Base, workcopy.BranchPrefix, s.note.Own)
	return w, err
}

// hold leaves it, and tells a person, once.
func (s *sweptCopy) hold(ctx context.Context, w workcopy.Work) error {
	if !s.note.Told {
		kept := domain.KeptCopy{Name: s.key(), Owner: s.note.Owner, Path: s.path(), Reason: w.Reason(s.path(), s.note.Branch)}
		if err := s.keeper.CopyKept(ctx, s.workspace, kept); err != nil {
			return err
		}
	}
	s.note.Told, s.note.LookedAt = true, s.now
	return s.folders.write(s.note)
}

// forget removes it with its branch, all of which is elsewhere, and its note. With tree false the folder is gone already, and its branch may
// have what was in it.
func (s *sweptCopy) forget(ctx context.Context, o Options, g git.Git, tree bool) error {
	unlock, err := s.c.copies.lock(ctx, s.note.Common)
	if err != nil {
		return err
	}
	defer unlock()
	repository := s.repository(g)
	if _, err := os.Stat(s.note.Common); s.note.Common != "" && err == nil {
		if err := s.c.removeTree(ctx, o, repository, s.path()); err != nil {
			return err
		}
		if tree && s.note.Made {
			if err := repository.DeleteBranch(ctx, s.note.Branch); err != nil {
				return err
			}
		}
	} else if err := withRightsOf(o.Credential, func() error { return os.RemoveAll(s.path()) }); err != nil {
		return err // its repository is gone
	}
	if err := s.keeper.CopyRemoved(ctx, s.workspace, s.key()); err != nil {
		return err
	}
	if err := os.Remove(s.folders.note(s.note.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
