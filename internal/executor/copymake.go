//go:build unix

package executor

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/git"
	"rouse.dev/rouse/internal/workcopy"
	"rouse.dev/rouse/internal/xid"
)

// make makes the working copy, alone in its repository. What an earlier attempt at it left has been given to no agent, and goes first.
func (w *workingCopy) make(ctx context.Context, repository workcopy.Repository, owner xid.ID, name string) *Failure {
	former := w.note
	w.note = &copyNote{Name: name, Owner: owner, Repository: w.spec.Repository, Branch: workcopy.Branch(owner), Keep: w.spec.Keep, MadeAt: time.Now()}
	common, failure := w.findRepository(ctx, repository)
	if failure != nil {
		return failure
	}
	unlock, err := w.c.copies.lock(ctx, w.note.Common)
	if err != nil {
		return endedFromOutside(ctx)
	}
	defer unlock()
	if !w.note.Own {
		if failure := w.mirror(ctx, common, repository); failure != nil {
			return failure
		}
	}
	if former != nil {
		if failure := w.clear(ctx, common, former); failure != nil {
			return failure
		}
	}
	if failure := w.add(ctx, common); failure != nil {
		return failure
	}
	w.note.Made = true
	return w.keep()
}

// findRepository finds out where the working copy's commits are to be: in a person's repository, when the agents' account may write
// there, else in a mirror.
func (w *workingCopy) findRepository(ctx context.Context, repository workcopy.Repository) (git.Git, *Failure) {
	mirror := filepath.Join(w.folders.mirrors, workcopy.MirrorName(w.spec.Repository))
	if repository.Path != "" {
		common, failure := w.c.repositoryAt(ctx, w.o, w.git, repository.Path)
		if failure != nil {
			return w.git, failure
		}
		if w.o.mayWrite(common) && w.o.mayWrite(filepath.Join(common, "objects")) && w.o.mayWrite(filepath.Join(common, "refs")) {
			w.note.Common, w.note.Own = common, true
			return w.git.In(common).Trusting(common).Trusting(repository.Path), nil
		}
	}
	w.note.Common = mirror
	return w.git.In(mirror), nil
}

// repositoryAt is the folder of a repository on this machine that all its working copies share. It is looked at as a working folder is:
// with the rights of the agents' account.
func (c *launcher) repositoryAt(ctx context.Context, o Options, g git.Git, path string) (string, *Failure) {
	if _, failure := o.directory(path, ""); failure != nil {
		failure.Message = "the repository of the executor's checkout cannot be used: " + failure.Message
		failure.Permanent = errors.Is(failure, fs.ErrNotExist)
		return "", failure
	}
	common, err := g.In(path).Trusting(path).Trusting(filepath.Join(path, ".git")).CommonDir(ctx)
	if err == nil {
		return common, nil
	}
	if failed, ok := errors.AsType[*git.Error](err); ok {
		x := workcopy.Explain(workcopy.Trouble{Step: workcopy.StepFind, Repository: path, Where: path, Who: o.who(), Said: failed.Said})
		return "", &Failure{Code: x.Code, Permanent: x.Permanent, Message: "rouse " + x.Message, Cause: err}
	}
	failure, _ := errors.AsType[*Failure](err)
	return "", failure
}

// mirror makes the repository's mirror, or brings it up to date.
func (w *workingCopy) mirror(ctx context.Context, g git.Git, repository workcopy.Repository) *Failure {
	err := withRightsOf(w.o.Credential, func() error {
		if err := os.Mkdir(g.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return w.trouble(workcopy.StepFetch, err)
	}
	origin, uploadPack := repository.Address, ""
	if repository.Path != "" { // which may belong to somebody else
		origin, uploadPack = repository.Path, "git -c safe.directory="+quoted(repository.Path)+" -c safe.directory="+quoted(filepath.Join(repository.Path, ".git"))+" upload-pack"
	}
	if err := g.MakeMirror(ctx, origin, uploadPack); err != nil {
		return w.trouble(workcopy.StepFetch, err)
	}
	w.say("fetching " + w.spec.Repository)
	if err := g.Fetch(ctx); err != nil {
		return w.trouble(workcopy.StepFetch, err)
	}
	return nil
}

// clear removes what the making of a working copy left that was broken off, or what the repository still knows of one that is gone. A
// branch stays if anything is on it.
func (w *workingCopy) clear(ctx context.Context, g git.Git, former *copyNote) *Failure {
	if err := w.c.removeTree(ctx, w.o, g, w.path()); err != nil {
		return w.trouble(workcopy.StepAdd, err)
	}
	tip, err := g.Resolve(ctx, "refs/heads/"+former.Branch)
	if err == nil && tip == former.Base {
		err = g.DeleteBranch(ctx, former.Branch)
	} else if _, said := errors.AsType[*git.Error](err); said {
		err = nil // there is none
	}
	if err != nil {
		return w.trouble(workcopy.StepAdd, err)
	}
	return nil
}

// removeTree removes the folder of a working copy, with the rights of the agents' account, and what the repository knows of it.
func (c *launcher) removeTree(ctx context.Context, o Options, g git.Git, path string) error {
	err := g.RemoveWorktree(ctx, path)
	gone := withRightsOf(o.Credential, func() error {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		openFolders(path)
		return os.RemoveAll(path)
	})
	if gone != nil {
		return gone
	}
	if err == nil {
		return nil
	}
	return g.RemoveWorktree(ctx, path) // which forgets what is not there
}

// openFolders lets the owner of a tree remove what is in folders that were made unwritable, as package managers do.
func openFolders(path string) {
	_ = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			if info, err := entry.Info(); err == nil && info.Mode().Perm()&0o700 != 0o700 {
				_ = os.Chmod(at, 0o700) // what cannot be opened is not removed either, which is told then
				if err != nil {
					return nil
				}
			}
		}
		if err != nil {
			return fs.SkipDir
		}
		return nil
	})
}

// add makes the folder, on the branch of its task or run, with submodules and large files.
func (w *workingCopy) add(ctx context.Context, g git.Git) *Failure {
	branch, err := g.Has(ctx, "refs/heads/"+w.note.Branch)
	if err != nil {
		return w.trouble(workcopy.StepResolve, err)
	}
	pushed, err := g.Has(ctx, "refs/remotes/origin/"+w.note.Branch)
	if err != nil {
		return w.trouble(workcopy.StepResolve, err)
	}
	names := w.refs()
	begin := workcopy.Begin(workcopy.Beginnings{Branch: branch, Pushed: pushed})
	switch begin {
	case workcopy.AtBranch:
		names = []string{"refs/heads/" + w.note.Branch}
	case workcopy.AtPushed:
		names = []string{"refs/remotes/origin/" + w.note.Branch}
	}
	if w.note.Base, err = g.Resolve(ctx, names...); err != nil {
		return w.trouble(workcopy.StepResolve, err)
	}
	if failure := w.keep(); failure != nil { // before there is anything to know of
		return failure
	}
	commit := w.note.Base
	if begin == workcopy.AtBranch {
		commit = ""
	}
	if failure := w.checkOut(ctx, g, commit); failure != nil {
		if failure.Cause != nil && ctx.Err() == nil { // a full disk keeps less than a whole copy
			_ = w.c.removeTree(ctx, w.o, g, w.path()) // what stays goes with the next attempt
		}
		return failure
	}
	return nil
}

// refs are the names of the commit that a new working copy begins at, the first that is there counts.
func (w *workingCopy) refs() []string {
	ref := w.spec.Ref
	if w.note.Own {
		if ref == "" {
			return []string{"HEAD"}
		}
		return []string{ref, "refs/remotes/origin/" + ref}
	}
	if ref == "" {
		return []string{"refs/remotes/origin/HEAD"}
	}
	return []string{"refs/remotes/origin/" + ref, "refs/tags/" + ref, ref} // a branch of ours may have the same name
}

func (w *workingCopy) checkOut(ctx context.Context, g git.Git, commit string) *Failure {
	w.say("making a working copy of " + w.spec.Repository + " on the branch " + w.note.Branch)
	if err := g.AddWorktree(ctx, w.path(), w.note.Branch, commit); err != nil {
		return w.trouble(workcopy.StepAdd, err)
	}
	attributes, err := w.tree().Attributes(ctx)
	if err == nil && workcopy.NeedsLFS(attributes) {
		why := ""
		if why, err = w.tree().LFS(ctx); err == nil && why != "" {
			return &Failure{Code: domain.RunErrorCodeLaunch, Permanent: true, Message: "rouse " + w.explain(workcopy.StepLFS, "git: 'lfs' is not a git command\n"+why).Message, Cause: errors.New(why)}
		}
	}
	if err != nil {
		return w.trouble(workcopy.StepLFS, err)
	}
	if err := w.tree().Submodules(ctx); err != nil {
		return w.trouble(workcopy.StepSubmodules, err)
	}
	return nil
}
