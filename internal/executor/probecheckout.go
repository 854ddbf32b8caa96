//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/git"
	"rouse.dev/rouse/internal/workcopy"
)

// checkout looks whether working copies can be made: git is there, the repository is reached, the ref is there, and the folder can be
// written. It makes and changes nothing.
func (p *probe) checkout(ctx context.Context, command *Command, o Options, spec *domain.CheckoutSpec) {
	g := command.gitAs(o, p.req)
	version, err := g.Version(ctx)
	if err != nil {
		p.fail("git", err.Error(), "install git (apt-get install git), where "+o.who()+" finds it")
		return
	}
	p.pass("git", version)
	repository, problem := workcopy.ParseRepository(spec.Repository)
	if problem != "" {
		p.fail("repository", spec.Repository+" "+problem, "correct repository of the checkout")
		return
	}
	if repository.Path != "" {
		p.repositoryHere(ctx, command, o, g, spec)
	} else {
		p.repositoryElsewhere(ctx, o, g, spec)
	}
	if !p.failed {
		p.copiesFolder(o)
	}
}

// repositoryHere looks at a repository on this machine.
func (p *probe) repositoryHere(ctx context.Context, command *Command, o Options, g git.Git, spec *domain.CheckoutSpec) {
	common, failure := command.repositoryAt(ctx, o, g, spec.Repository)
	if failure != nil {
		p.fail("repository", failure.Message, "correct repository of the checkout, or let "+o.who()+" read it")
		return
	}
	how := "worktrees of it"
	if !o.mayWrite(common) {
		how = "worktrees of a mirror of it, since " + o.who() + " may only read it"
	}
	p.pass("repository", spec.Repository+", working copies are "+how)
	ref := spec.Ref
	if ref == "" {
		ref = "HEAD"
	}
	commit, err := g.In(common).Trusting(common).Trusting(spec.Repository).Resolve(ctx, ref, "refs/remotes/origin/"+ref)
	if err != nil {
		p.trouble("ref", o, spec, workcopy.StepResolve, err)
		return
	}
	p.pass("ref", ref+" is "+commit)
}

// repositoryElsewhere asks a remote.
func (p *probe) repositoryElsewhere(ctx context.Context, o Options, g git.Git, spec *domain.CheckoutSpec) {
	found, err := g.Reach(ctx, spec.Repository, spec.Ref)
	if err != nil {
		p.trouble("repository", o, spec, workcopy.StepFind, err)
		return
	}
	p.pass("repository", spec.Repository+" answers "+o.who())
	if !found {
		p.fail("ref", spec.Ref+" is not there", "push it, or change ref of the checkout")
		return
	}
	p.pass("ref", "it is there, or is a commit, of which a remote does not tell")
}

// trouble is a check that failed by what git said.
func (p *probe) trouble(name string, o Options, spec *domain.CheckoutSpec, step workcopy.Step, err error) {
	failed, ok := errors.AsType[*git.Error](err)
	if !ok {
		p.fail(name, err.Error(), "try it by hand as "+o.who())
		return
	}
	x := workcopy.Explain(workcopy.Trouble{Step: step, Repository: spec.Repository, Ref: spec.Ref, Where: o.WorkRoot, Who: o.who(), Shell: o.shellLine(p.req), Said: failed.Said})
	hint := "it is tried again by itself when a run needs it"
	if x.Permanent {
		hint = "runs fail until this is mended"
	}
	p.fail(name, x.Message, hint)
}

// copiesFolder looks at the folder of working copies, which the first run makes.
func (p *probe) copiesFolder(o Options) {
	trees := o.copyFolders(p.req.WorkspaceID).trees
	if _, err := os.Lstat(trees); err != nil {
		if failure := o.checkPassable(nearest(trees)); failure != nil {
			p.fail("working copies", failure.Message, folderHint("", o))
			return
		}
		p.pass("working copies", trees+", which the first run will make")
		return
	}
	if !o.mayWrite(trees) {
		p.fail("working copies", fmt.Sprintf("%s belongs to %s, and %s may not write in it", trees, ownerOf(trees), o.who()), folderHint("", o))
		return
	}
	p.pass("working copies", trees)
}
