//go:build unix

package executor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rouse.dev/rouse/internal/domain"
)

// workFolder says whether the account can work in a folder that somebody else made: write there, and use git in it.
// What it finds is reported, and does not stop the probe, because the agent may need less.
func (p *probe) workFolder(ctx context.Context, command *Command, o Options, folder string) {
	if !o.mayWrite(folder) {
		p.checks = append(p.checks, domain.Check{Name: "folder", Detail: fmt.Sprintf("%s belongs to %s, and %s may not write in it", folder, ownerOf(folder), o.who()),
			Hint: o.folderHint(folder) + "; an agent that only reads can do without"})
	}
	repository := repositoryOf(folder)
	if repository == "" {
		return
	}
	said, err := command.sayIn(ctx, p.req, folder, "git", "rev-parse", "--git-dir")
	if err == nil || !strings.Contains(said, "dubious ownership") {
		return // or git is not there, or says what it would say to everybody
	}
	p.checks = append(p.checks, domain.Check{Name: "git", Detail: fmt.Sprintf("git refuses to work in %s for %s, since it belongs to %s (\"dubious ownership\")", repository, o.who(), ownerOf(repository)),
		Hint: "say that it may: " + o.trustLine(p.req, repository)})
}

// mayWrite says whether the account may make files in a folder.
func (o Options) mayWrite(folder string) bool {
	if o.Credential == nil {
		return unix.Access(folder, unix.W_OK|unix.X_OK) == nil
	}
	if kernelJudges(o.Credential) {
		return withRightsOf(o.Credential, func() error {
			return unix.Faccessat(unix.AT_FDCWD, folder, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
		}) == nil
	}
	info, err := os.Stat(folder)
	return err == nil && mayUse(info, o.Credential, 0o3)
}

// folderHint says how the account gets a folder that it may write in. A folder that holds more than one project is not to be opened for it.
func (o Options) folderHint(folder string) string {
	if filepath.Dir(filepath.Clean(folder)) == "/" {
		return "give the agent a working directory of its own, because whoever may write in " + folder + " may change the whole machine"
	}
	return "let it: " + o.shareLine(folder)
}

// shareLine is a command that lets the account write in a folder, and leaves it to its owner.
func (o Options) shareLine(folder string) string {
	uid := uint32(os.Geteuid())
	if o.Credential != nil {
		uid = o.Credential.Uid
	}
	return fmt.Sprintf("setfacl -R -m u:%d:rwX,d:u:%d:rwX %s", uid, uid, quoted(folder))
}

// trustLine is a command that lets the account use git in a repository that belongs to another account.
func (o Options) trustLine(req Request, repository string) string {
	line := "git config --global --add safe.directory " + quoted(repository)
	switch {
	case o.account != nil:
		return fmt.Sprintf("rouse agent-shell --workspace %s -- %s", req.WorkspaceID, line)
	case o.Credential != nil:
		return fmt.Sprintf("rouse agent-shell --workspace %s --agent-user %s -- %s", req.WorkspaceID, o.User, line)
	}
	return line
}

// quoted is a path as one word of a shell.
func quoted(path string) string {
	if !strings.ContainsAny(path, " \t\n'\"\\$`&;|<>()*?[]#~!{}") {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// repositoryOf is the folder, or the nearest above it, that is a git repository's; "" when none is.
func repositoryOf(folder string) string {
	for dir := folder; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// sayIn runs a program as the agents' account and returns what it printed first.
func (c *Command) sayIn(ctx context.Context, req Request, folder string, argv ...string) (string, error) {
	req.Prompt, req.ResumeSessionID, req.Spec = "", "", domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: argv, WorkingDirectory: folder, Timeout: versionLimit, Grace: time.Second}}
	said := &listener{}
	_, err := c.Run(ctx, req, said)
	return strings.Join(said.lines, "\n"), err
}
