package git

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Head is the commit that a working copy is on, and its branch, "" when it is on none.
func (g Git) Head(ctx context.Context) (commit, branch string, err error) {
	commit, err = g.text(ctx, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", "", err
	}
	branch, err = g.text(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if failed, ok := errors.AsType[*Error](err); ok && failed.Code == 1 {
		return commit, "", nil
	}
	return commit, branch, err
}

// OwnDir is the folder that git keeps for one working copy alone.
func (g Git) OwnDir(ctx context.Context) (string, error) {
	return g.text(ctx, "rev-parse", "--absolute-git-dir")
}

// Uncommitted counts files with changes that are not committed, new files included; a folder of new files is one.
func (g Git) Uncommitted(ctx context.Context) (int, error) {
	out, err := g.call(ctx, quick, textMost, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--no-renames")
	return strings.Count(out.Stdout, "\x00"), err
}

// Unpushed counts commits that would be lost to others with a working copy: those of HEAD, and of the branch that it began on, that are on
// no remote and not in what it began at. With own the repository is a person's, whose other branches and tags have them too; branches
// that begin with ours are of other working copies.
func (g Git) Unpushed(ctx context.Context, branch, base, ours string, own bool) (int, error) {
	args := []string{"rev-list", "--count", "HEAD"}
	there, err := g.Has(ctx, "refs/heads/"+branch)
	if err != nil {
		return 0, err
	}
	if there {
		args = append(args, "refs/heads/"+branch)
	}
	args = append(args, "--not", "--remotes")
	if own {
		args = append(args, "--tags", "--exclude="+ours+"*")
		if _, now, err := g.Head(ctx); err == nil && now != "" {
			args = append(args, "--exclude="+now)
		}
		args = append(args, "--branches")
	}
	if base != "" {
		args = append(args, base)
	}
	text, err := g.text(ctx, args...)
	if err != nil {
		return 0, err
	}
	n, err := numberOf(text)
	if err != nil {
		return 0, err
	}
	inside, err := g.unpushedInside(ctx)
	return n + inside, err
}

// unpushedInside counts the commits of submodules that are on no remote of theirs.
func (g Git) unpushedInside(ctx context.Context) (sum int, err error) {
	modules, err := g.text(ctx, "ls-files", "--", ".gitmodules")
	if err != nil || modules == "" {
		return 0, err
	}
	out, err := g.text(ctx, "submodule", "--quiet", "foreach", "--recursive", "git rev-list --count HEAD --not --remotes --tags")
	for line := range strings.Lines(out) {
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return sum, fmt.Errorf("git printed %q of a submodule, which is no number", line)
		}
		sum += n
	}
	return sum, err
}

// Commits counts the commits from one to another.
func (g Git) Commits(ctx context.Context, from, to string) (int, error) {
	text, err := g.text(ctx, "rev-list", "--count", from+".."+to)
	if err != nil {
		return 0, err
	}
	return numberOf(text)
}

// Change is how much differs.
type Change struct{ Files, Insertions, Deletions int }

var shortstat = regexp.MustCompile(`(\d+) (file|insertion|deletion)`)

// Changed is what of the working copy's files differs from a commit.
func (g Git) Changed(ctx context.Context, from string) (c Change, err error) {
	text, err := g.text(ctx, "diff", "--no-ext-diff", "--no-textconv", "--shortstat", from, "--")
	for _, m := range shortstat.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		switch m[2] {
		case "file":
			c.Files = n
		case "insertion":
			c.Insertions = n
		default:
			c.Deletions = n
		}
	}
	return c, err
}

// Diff is how the working copy's files differ from a commit, at most that many bytes.
func (g Git) Diff(ctx context.Context, from string, most int) (text string, cut bool, err error) {
	out, err := g.call(ctx, quick, most, "diff", "--no-ext-diff", "--no-textconv", "--no-color", from, "--")
	return out.Stdout, out.Cut, err
}
