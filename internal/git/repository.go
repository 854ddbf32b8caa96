package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// CommonDir is the folder of the repository that g.Dir is in, which all its working copies share.
func (g Git) CommonDir(ctx context.Context) (string, error) {
	dir, err := g.text(ctx, "rev-parse", "--git-common-dir")
	if err == nil && !strings.HasPrefix(dir, "/") {
		dir = strings.TrimSuffix(g.Dir+"/"+strings.TrimPrefix(dir, "./"), "/.")
	}
	return dir, err
}

// MakeMirror makes a bare repository in g.Dir, which must be there, whose remote is origin, or makes sure that it is whole.
// uploadPack is the program that the remote is read with; "" for the usual one.
func (g Git) MakeMirror(ctx context.Context, origin, uploadPack string) error {
	if err := g.do(ctx, "init", "--quiet", "--bare", "."); err != nil {
		return err
	}
	for _, kv := range [][2]string{{"remote.origin.url", origin}, {"remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"}, {"remote.origin.uploadpack", uploadPack}} {
		if kv[1] == "" {
			continue
		}
		if err := g.do(ctx, "config", kv[0], kv[1]); err != nil {
			return err
		}
	}
	return nil
}

// Fetch brings what the mirror's remote has. What the remote has lost stays, since a working copy may stand on it.
func (g Git) Fetch(ctx context.Context) error {
	_, err := g.call(ctx, slow, textMost, "fetch", "--quiet", "--tags", "--force", "origin")
	if failed, ok := errors.AsType[*Error](err); ok && strings.Contains(failed.Said, "git remote prune") { // a branch has the name of a folder of branches
		_, err = g.call(ctx, slow, textMost, "fetch", "--quiet", "--tags", "--force", "--prune", "origin")
	}
	if err != nil {
		return err
	}
	_ = g.do(ctx, "remote", "set-head", "origin", "--auto") // without it the default is not known, which is told when it is asked for
	return nil
}

// Reach asks a remote for a ref ("" for its default), and brings nothing. found says that the ref is there, or may be: of commits a
// remote does not tell.
func (g Git) Reach(ctx context.Context, address, ref string) (found bool, err error) {
	out, err := g.call(ctx, quick, textMost, "ls-remote", "--quiet", "--", address)
	if err != nil {
		return false, err
	}
	if ref == "" {
		ref = "HEAD"
	}
	for line := range strings.Lines(out.Stdout) {
		commit, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(commit, ref) && len(ref) >= 7 || name == ref || name == "refs/heads/"+ref || name == "refs/tags/"+ref || name == "refs/heads/"+strings.TrimPrefix(ref, "origin/") {
			return true, nil
		}
	}
	return out.Cut || isHash(ref), nil
}

func isHash(ref string) bool {
	return len(ref) >= 7 && strings.Trim(ref, "0123456789abcdef") == ""
}

// Resolve finds the commit of the first of the names that is there; "" and git's words for the last one when none is.
func (g Git) Resolve(ctx context.Context, names ...string) (commit string, err error) {
	for _, name := range names {
		if commit, err = g.text(ctx, "rev-parse", "--verify", name+"^{commit}"); err == nil {
			return commit, nil
		}
		if _, said := errors.AsType[*Error](err); !said {
			return "", err
		}
	}
	return "", err
}

// Has says whether a ref is there.
func (g Git) Has(ctx context.Context, ref string) (bool, error) {
	err := g.do(ctx, "show-ref", "--verify", "--quiet", ref)
	if failed, ok := errors.AsType[*Error](err); ok && failed.Code == 1 {
		return false, nil
	}
	return err == nil, err
}

// HasBranches says whether the repository has a branch of its own; those of its remote are none.
func (g Git) HasBranches(ctx context.Context) (bool, error) {
	found, err := g.text(ctx, "for-each-ref", "--count=1", "refs/heads")
	return found != "", err
}

// AddWorktree makes a working copy in a folder that is not there, on a branch. commit is what a new branch begins at; "" takes the
// branch as it is.
func (g Git) AddWorktree(ctx context.Context, folder, branch, commit string) error {
	args := []string{"worktree", "add", "--quiet"}
	if commit == "" {
		args = append(args, "--", folder, branch)
	} else {
		args = append(args, "--no-track", "-b", branch, "--", folder, commit)
	}
	_, err := g.call(ctx, slow, textMost, args...)
	return err
}

// RemoveWorktree removes a working copy, whatever is in it, and what the repository knows of it. One that is not there, or not whole,
// is no error.
func (g Git) RemoveWorktree(ctx context.Context, folder string) error {
	_, err := g.call(ctx, slow, textMost, "worktree", "remove", "--force", "--force", "--", folder)
	if failed, ok := errors.AsType[*Error](err); ok && strings.Contains(failed.Said, "is not a working tree") {
		err = nil
	}
	return errors.Join(err, g.do(ctx, "worktree", "prune"))
}

// DeleteBranch deletes a branch, whatever is on it. One that is not there is no error.
func (g Git) DeleteBranch(ctx context.Context, branch string) error {
	there, err := g.Has(ctx, "refs/heads/"+branch)
	if err != nil || !there {
		return err
	}
	return g.do(ctx, "branch", "--quiet", "-D", "--", branch)
}

// Submodules fetches a working copy's submodules, if it has any.
func (g Git) Submodules(ctx context.Context) error {
	out, err := g.text(ctx, "ls-files", "--", ".gitmodules")
	if err != nil || out == "" {
		return err
	}
	_, err = g.call(ctx, slow, textMost, "submodule", "--quiet", "update", "--init", "--recursive")
	return err
}

// Attributes are the .gitattributes files of a working copy, one after the other, at most 64 of them.
func (g Git) Attributes(ctx context.Context) (string, error) {
	names, err := g.text(ctx, "ls-files", "-z", "--", ".gitattributes", "*/.gitattributes")
	if err != nil || names == "" {
		return "", err
	}
	var all strings.Builder
	for i, name := range strings.Split(strings.TrimRight(names, "\x00"), "\x00") {
		if i == 64 {
			break
		}
		text, err := g.text(ctx, "show", "HEAD:"+name)
		if err != nil {
			return "", err
		}
		all.WriteString(text + "\n")
	}
	return all.String(), nil
}

// LFS says whether git is set up to fetch large files; "" when it is, else why not.
func (g Git) LFS(ctx context.Context) (why string, err error) {
	err = g.do(ctx, "lfs", "version")
	failed, ok := errors.AsType[*Error](err)
	switch {
	case ok:
		return failed.Said, nil
	case err != nil:
		return "", err
	}
	process, err := g.text(ctx, "config", "--get", "filter.lfs.process")
	if failed, ok := errors.AsType[*Error](err); ok && failed.Code == 1 || err == nil && process == "" {
		return "git-lfs is not found among git's filters", nil
	}
	return "", err
}

// numberOf reads a number that git printed.
func numberOf(text string) (int, error) {
	n := 0
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil {
		return 0, fmt.Errorf("git printed %q, which is no number", text)
	}
	return n, nil
}
