//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/git"
	"rouse.dev/rouse/internal/workcopy"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of what happens around an attempt in its working copy.
const (
	copyWait     = time.Minute     // for another attempt in the same one to end
	measureLimit = time.Minute     // to look at what an attempt left
	measureShort = 3 * time.Second // when the attempt was ended, because somebody waits
)

// workingCopy is one that an attempt works in. Nobody else does until it is released.
type workingCopy struct {
	c       *Command
	o       Options
	req     Request
	sink    *oneAtATime
	spec    *domain.CheckoutSpec
	folders copyFolders
	note    *copyNote
	git     git.Git
	release func()
}

// inWorkingCopy runs an attempt in a working copy of its task or run, and tells the sink what it found there and what it left.
func (c *Command) inWorkingCopy(ctx context.Context, req Request, sink Sink, attempt Executor) (Result, error) {
	none := Result{ExitCode: -1}
	if !c.enter() {
		return none, launchFailure(errClosed, "rouse is shutting down: the run will be launched after the next start")
	}
	defer c.live.Done()
	one := &oneAtATime{sink: sink}
	req.log = newLogBudget(req)
	w, failure := c.openCopy(ctx, req, one)
	if w != nil {
		defer w.release()
	}
	if failure != nil && ctx.Err() != nil {
		failure = endedFromOutside(ctx)
	}
	if failure != nil {
		failure.Local = true
		return none, req.tell(failure)
	}
	_ = one.WorkingCopy(w.found()) // whoever keeps it says when that fails, and the attempt goes on
	result, err := attempt.Run(ctx, req.in(w.path()), one)
	w.tellLeft(ctx)
	return result, err
}

// in is the request for an attempt in another folder.
func (r Request) in(folder string) Request {
	switch {
	case r.Spec.Command != nil:
		c := *r.Spec.Command
		c.WorkingDirectory, r.Spec.Command = folder, &c
	case r.Spec.ACP != nil:
		a := *r.Spec.ACP
		a.WorkingDirectory, r.Spec.ACP = folder, &a
	}
	return r
}

// openCopy finds or makes the working copy of a request's task or run. It is to be released also when there is a failure.
func (c *Command) openCopy(ctx context.Context, req Request, sink *oneAtATime) (*workingCopy, *Failure) {
	o, failure := c.options.of(req.WorkspaceID)
	if failure != nil {
		return nil, failure
	}
	spec := req.Spec.Checkout()
	w := &workingCopy{c: c, o: o, req: req, sink: sink, spec: spec, git: c.gitAs(o, req), folders: o.copyFolders(req.WorkspaceID)}
	repository, problem := workcopy.ParseRepository(spec.Repository)
	if problem == "" {
		problem = workcopy.CheckRef(spec.Ref)
	}
	if _, err := xid.Parse(req.WorkspaceID.String()); err != nil || o.WorkRoot == "" {
		problem = "cannot be used, because no folder for working copies is configured"
	}
	if problem != "" {
		return nil, permanentLaunch("the repository of the executor's checkout %s", problem)
	}
	owner := workcopy.Owner(spec.Per, req.TaskID, req.RunID)
	name := workcopy.Name(owner, spec.Repository)
	wait, cancel := context.WithTimeout(ctx, copyWait)
	defer cancel()
	var err error
	if w.release, err = c.copies.lock(wait, w.folders.tree(name)); err != nil {
		return nil, launchFailure(err, "another attempt works in the working copy %s: it is tried again by itself", w.folders.tree(name))
	}
	return w, w.ready(ctx, repository, owner, name)
}

// ready makes the working copy, or makes sure that the one which is there can be used.
func (w *workingCopy) ready(ctx context.Context, repository workcopy.Repository, owner xid.ID, name string) *Failure {
	if err := w.folders.make(w.o); err != nil {
		return launchFailure(err, "the folder of working copies cannot be made: %v: make %s writable for rouse", err, w.o.WorkRoot)
	}
	if failure := w.o.checkPassable(w.folders.trees); failure != nil {
		return failure
	}
	note, err := w.folders.read(name)
	if err != nil {
		return launchFailure(err, "what is known of the working copy cannot be read: %v: repair or remove that file", err)
	}
	_, absent := os.Lstat(w.folders.tree(name))
	w.note = note
	switch {
	case absent != nil && !errors.Is(absent, fs.ErrNotExist):
		return launchFailure(absent, "the working copy cannot be looked at: %v", absent)
	case absent == nil && note == nil: // its note was lost, or the folder was put there by hand
		w.note = &copyNote{Name: name, Owner: owner, Repository: w.spec.Repository, Branch: workcopy.Branch(owner), MadeAt: time.Now(), Made: true, Ready: true, unknown: true}
	case absent != nil || !note.Made:
		if failure := w.make(ctx, repository, owner, name); failure != nil {
			return failure
		}
	}
	if failure := w.begin(ctx); failure != nil {
		return failure
	}
	return w.setUp(ctx)
}

func (w *workingCopy) path() string { return w.folders.tree(w.note.Name) }

// tree is git in the working copy.
func (w *workingCopy) tree() git.Git { return w.git.In(w.path()) }

// begin notes where the run begins, and removes the locks that a git process which was killed left for this working copy alone: nobody
// else works in it.
func (w *workingCopy) begin(ctx context.Context) *Failure {
	own, err := w.tree().OwnDir(ctx)
	if err != nil {
		return w.damaged(ctx, err)
	}
	for _, lock := range []string{"index.lock", "HEAD.lock"} {
		err := withRightsOf(w.o.Credential, func() error { return os.Remove(filepath.Join(own, lock)) })
		if err == nil {
			w.say("a lock that an earlier git process left was removed: " + filepath.Join(own, lock))
		}
	}
	head, _, err := w.tree().Head(ctx)
	if err != nil {
		return w.damaged(ctx, err)
	}
	if w.note.unknown {
		if w.note.Common, err = w.tree().CommonDir(ctx); err != nil {
			return w.damaged(ctx, err)
		}
		w.note.Base, w.note.Own = head, filepath.Dir(w.note.Common) != w.folders.mirrors
	}
	if w.note.Run != w.req.RunID {
		w.note.Run, w.note.HeadBefore = w.req.RunID, head
	}
	w.note.Keep, w.note.Told, w.note.LookedAt = w.spec.Keep, false, time.Time{}
	return w.keep()
}

func (w *workingCopy) keep() *Failure {
	if err := w.folders.write(w.note); err != nil {
		return launchFailure(err, "what is known of the working copy cannot be noted: %v: see whether the disk of %s is full", err, w.folders.notes)
	}
	return nil
}

// damaged is for a working copy that is there, and in which git does not work. What is in it may be somebody's work, so it is not replaced.
func (w *workingCopy) damaged(ctx context.Context, err error) *Failure {
	if failure, ok := errors.AsType[*Failure](err); ok || ctx.Err() != nil {
		return failure
	}
	return launchFailure(err, "git does not work in the working copy %s, which an earlier run left: repair it, or save what is in it and remove the folder; then retry the run: %v", w.path(), err)
}

// setUp runs the checkout's setup until it has succeeded once.
func (w *workingCopy) setUp(ctx context.Context) *Failure {
	if w.note.Ready {
		return nil
	}
	if len(w.spec.Setup) > 0 {
		w.say("setting up the working copy: " + strings.Join(w.spec.Setup, " "))
		if failure := w.runSetup(ctx); failure != nil {
			return failure
		}
	}
	w.note.Ready = true
	return w.keep()
}

// runSetup runs the setup with the agent's environment, and its output in the run's log.
func (w *workingCopy) runSetup(ctx context.Context) *Failure {
	l, failure := w.o.prepare(w.req, w.spec.Setup, w.path())
	if failure != nil {
		failure.Message = "the setup of the executor's checkout cannot be started: " + failure.Message
		return failure
	}
	p, failure := w.c.start(l)
	if failure != nil {
		return failure
	}
	out := newOutput(w.req, w.sink)
	err := w.sink.Process(p.group)
	p.communicate("", out, func(r io.Reader) { out.copyLines(domain.LogStreamSystem, r) })
	end := ending{forced: true, stopped: true}
	if err == nil {
		end = p.supervise(ctx, w.limits(), nil)
	}
	p.end(w.c.options.Drain, out)
	var result Result
	state := w.c.reap(p, &result)
	switch {
	case err != nil:
		return launchFailure(err, "the setup of the working copy was ended at once because it could not be recorded: %v", err)
	case end.stopped:
		return endedFromOutside(ctx)
	case end.timedOut:
		return launchFailure(nil, "%s", w.explain(workcopy.StepSetup, fmt.Sprintf("it did not end within the executor's timeout of %s\n%s", w.limits().wait(), out.tailText())).Message)
	case state == nil || !state.Success():
		return launchFailure(nil, "%s", w.explain(workcopy.StepSetup, fmt.Sprintf("it ended with code %d\n%s", result.ExitCode, out.tailText())).Message)
	}
	return nil
}

// limits are those of the executor's program.
func (w *workingCopy) limits() limits {
	if c := w.req.Spec.Command; c != nil {
		return limits{c.Timeout, c.Grace}
	}
	return limits{w.req.Spec.ACP.Timeout, acpGrace}
}

func (w *workingCopy) say(text string) { newOutput(w.req, w.sink).say(text) }

// explain says what a step's failure means.
func (w *workingCopy) explain(step workcopy.Step, said string) workcopy.Explanation {
	return workcopy.Explain(workcopy.Trouble{Step: step, Repository: w.spec.Repository, Ref: w.spec.Ref, Where: w.folders.trees, Who: w.o.who(), Shell: w.o.shellLine(w.req), Said: said})
}

// trouble is the failure of an attempt whose working copy could not be made.
func (w *workingCopy) trouble(step workcopy.Step, err error) *Failure {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure
	}
	said := err.Error()
	if failed, ok := errors.AsType[*git.Error](err); ok {
		said = failed.Said
	}
	x := w.explain(step, said)
	return &Failure{Code: x.Code, Permanent: x.Permanent, Message: "rouse " + x.Message, Cause: err}
}

// found is what an attempt finds in its working copy.
func (w *workingCopy) found() domain.WorkingCopy {
	return domain.WorkingCopy{Path: w.req.mask(w.path()), Repository: w.req.mask(w.spec.Repository), Branch: w.note.Branch, HeadBefore: w.note.HeadBefore}
}

// tellLeft tells the sink what an attempt left. One that was ended is waited for by somebody, so that little time is left.
func (w *workingCopy) tellLeft(ctx context.Context) {
	limit := measureLimit
	if ctx.Err() != nil {
		limit = measureShort
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	left, err := w.left(look)
	if err != nil {
		w.say("what the attempt left in its working copy could not be looked at: " + err.Error())
		return
	}
	_ = w.sink.WorkingCopy(left) // as above
}

func (w *workingCopy) left(ctx context.Context) (domain.WorkingCopy, error) {
	left, g := w.found(), w.tree()
	head, branch, err := g.Head(ctx)
	if err != nil {
		return left, err
	}
	commits, err := g.Commits(ctx, left.HeadBefore, head)
	if err != nil {
		return left, err
	}
	changed, err := g.Changed(ctx, left.HeadBefore)
	if err != nil {
		return left, err
	}
	uncommitted, err := g.Uncommitted(ctx)
	if err != nil {
		return left, err
	}
	diff, cut, err := g.Diff(ctx, left.HeadBefore, domain.MaxDiff+maskReach)
	left.Branch, left.HeadAfter, left.Commits, left.Uncommitted = w.req.mask(domain.StorableText(branch)), head, commits, uncommitted
	left.FilesChanged, left.Insertions, left.Deletions = changed.Files, changed.Insertions, changed.Deletions
	left.DiffCut = cut || len(diff) > domain.MaxDiff
	left.Diff = maskedText(diff, domain.MaxDiff, w.req.mask)
	return left, err
}

// shellLine is a command that opens a shell as the agents' account; "" when that is the server's own.
func (o Options) shellLine(req Request) string {
	switch {
	case o.account != nil:
		return "rouse agent-shell --workspace " + req.WorkspaceID.String()
	case o.Credential != nil:
		return fmt.Sprintf("rouse agent-shell --workspace %s --agent-user %s", req.WorkspaceID, o.User)
	}
	return ""
}
