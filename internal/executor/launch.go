//go:build unix

package executor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// launch is a command ready to start.
type launch struct {
	program     string // absolute path
	argv        []string
	directory   string
	environment []string
	mark        string // value of ROUSE_LAUNCH
	options     Options
	lease       *Lease // nil: it may run for ever
	terminal    bool   // its standard input is a terminal for it alone
}

// prepare checks everything that can be checked before a process exists, so that each mistake has its own message, and makes
// the agent's own folder.
func (o Options) prepare(req Request, argv []string, workingDirectory string) (launch, *Failure) {
	return o.prepareIn(req, argv, func() (string, *Failure) { return o.directory(workingDirectory, req.AgentID) })
}

// prepareIn is prepare in a folder that is found last.
func (o Options) prepareIn(req Request, argv []string, find func() (string, *Failure)) (launch, *Failure) {
	if len(argv) == 0 || argv[0] == "" {
		return launch{}, permanentLaunch("the executor has no program: set argv to the program and its arguments")
	}
	for i, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return launch{}, permanentLaunch("argument %d of the command holds a NUL byte, which no program can be given: remove it", i)
		}
	}
	mark := newLaunchID(o.Installation, req.RunID, req.Attempt)
	environment, failure := o.environment(req, mark)
	if failure != nil {
		return launch{}, failure
	}
	directory, failure := find()
	if failure != nil {
		return launch{}, failure
	}
	program, failure := o.findProgram(argv[0], directory, lookup(environment, "PATH"))
	if failure != nil {
		return launch{}, failure
	}
	return launch{program: program, argv: argv, directory: directory, environment: environment, mark: mark, options: o, lease: req.Lease}, nil
}

// environment is a clean base, then the request's variables. Of the server's own environment an agent gets PATH, HOME
// and a few others, and so none of the server's secrets.
func (o Options) environment(req Request, mark string) ([]string, *Failure) {
	variables := o.baseEnvironment()
	if req.ResumeSessionID != "" {
		variables = append(variables, Variable{"ROUSE_RESUME_SESSION_ID", req.ResumeSessionID})
	}
	variables = append(variables, req.Environment...)
	variables = append(variables, Variable{launchVariable, mark})
	at := map[string]int{}
	var out []string
	for _, v := range variables {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") {
			return nil, permanentLaunch("%q is no name for an environment variable: use letters, digits and underscores", v.Name)
		}
		if strings.ContainsRune(v.Value, 0) {
			return nil, permanentLaunch("the value of the environment variable %s holds a NUL byte: remove it", v.Name)
		}
		if i, seen := at[v.Name]; seen {
			out[i] = v.Name + "=" + v.Value
			continue
		}
		at[v.Name] = len(out)
		out = append(out, v.Name+"="+v.Value)
	}
	return out, nil
}

func (o Options) baseEnvironment() []Variable {
	home, user, tmp := o.Home, o.User, "/tmp"
	if o.Credential == nil {
		home, user, tmp = cmp.Or(home, os.Getenv("HOME")), cmp.Or(user, os.Getenv("USER")), os.TempDir()
	}
	base := []Variable{
		{"PATH", o.searchPath()}, {"HOME", cmp.Or(home, "/")}, {"TMPDIR", tmp}, {"SHELL", "/bin/sh"},
		{"LANG", "C.UTF-8"}, {"TERM", "dumb"}, {"NO_COLOR", "1"},
	}
	if user != "" {
		base = append(base, Variable{"USER", user}, Variable{"LOGNAME", user})
	}
	if o.account != nil { // git needs an address, and this machine may have no full name to make one of
		base = append(base, Variable{"EMAIL", user + "@" + hostName()})
	}
	return base
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// searchPath is the server's PATH without the folders that the agent's account cannot enter, such as root's own.
func (o Options) searchPath() string {
	path := cmp.Or(o.Path, os.Getenv("PATH"), defaultPath)
	var usable []string
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) && mayEnter(dir, o.Credential) {
			usable = append(usable, dir)
		}
	}
	if len(usable) == 0 {
		return defaultPath
	}
	return strings.Join(usable, string(filepath.ListSeparator))
}

// directory is the folder the command starts in: the spec's, which must exist, or one of the agent's own.
func (o Options) directory(wanted string, agent xid.ID) (string, *Failure) {
	if wanted == "" {
		return o.agentDirectory(agent)
	}
	if !filepath.IsAbs(wanted) {
		return "", permanentLaunch("the working directory %q is not absolute: write it from / on", wanted)
	}
	info, err := o.look(wanted)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "", o.unenterable(wanted, cmp.Or(barrier(wanted, o.Credential), wanted))
	case errors.Is(err, fs.ErrNotExist):
		return "", launchFailure(err, "the working directory %s does not exist: make it, or change workingDirectory of the executor", wanted)
	case err != nil:
		return "", launchFailure(err, "the working directory %s cannot be used: %v", wanted, err)
	case !info.IsDir():
		return "", launchFailure(nil, "the working directory %s is not a folder: change workingDirectory of the executor", wanted)
	}
	if shut := barrier(wanted, o.Credential); shut != "" {
		return "", o.unenterable(wanted, shut)
	}
	return wanted, nil
}

// look is what there is at a path, as far as the account could see it by itself.
func (o Options) look(path string) (info fs.FileInfo, err error) {
	err = withRightsOf(o.Credential, func() (err error) {
		info, err = os.Stat(path)
		return err
	})
	return info, err
}

func (o Options) unenterable(wanted, shut string) *Failure {
	return launchFailure(nil, "the working directory %s may not be entered by %s: change the permissions of %s (chmod o+x), or use another", wanted, o.who(), shut)
}

// agentDirectory makes the agent's own folder below the work root, owned by the account that runs agents.
func (o Options) agentDirectory(agent xid.ID) (string, *Failure) {
	directory, failure := o.agentPath(agent)
	if failure != nil {
		return "", failure
	}
	root := filepath.Dir(directory)
	err := os.MkdirAll(root, 0o711) // names of folders are those of other workspaces' agents
	if err == nil {
		err = os.Mkdir(directory, 0o700)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		err = o.own(directory)
	}
	if err != nil {
		return "", launchFailure(err, "the agent's working directory cannot be made: %v: make %s writable, or set workingDirectory of the executor", err, root)
	}
	return directory, o.checkPassable(directory)
}

// agentPath is where the agent's own folder is, or will be.
func (o Options) agentPath(agent xid.ID) (string, *Failure) {
	name := agent.String()
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", permanentLaunch("%q cannot name a working directory: set workingDirectory of the executor", name)
	}
	if o.WorkRoot == "" {
		return "", permanentLaunch("no folder for agents' work is configured: set workingDirectory of the executor")
	}
	root, err := filepath.Abs(o.WorkRoot)
	if err != nil {
		return "", launchFailure(err, "the folder of agents' work cannot be found: %v: set workingDirectory of the executor", err)
	}
	return filepath.Join(root, name), nil
}

// checkPassable names the folder on the way to the agent's own that the account may not enter, and whose it is.
func (o Options) checkPassable(directory string) *Failure {
	shut := barrier(directory, o.Credential)
	if shut == "" {
		return nil
	}
	return launchFailure(nil, "the agent's work folder %s may not be entered by %s: %s belongs to %s and is shut; open it (chmod o+x), give it to that account (chown), "+
		"choose another --data-dir, or set workingDirectory of the executor", directory, o.who(), shut, ownerOf(shut))
}

// own gives a folder of ours to the account that runs agents, with what an earlier account had in it.
func (o Options) own(directory string) error {
	if o.Credential == nil {
		return nil
	}
	_, err := account.HandOver(directory, o.Credential.Uid, o.Credential.Gid)
	return err
}

// who names the account agents run as, for messages.
func (o Options) who() string {
	if o.Credential == nil {
		return "the account rouse runs as"
	}
	return strings.TrimSpace(fmt.Sprintf("the account that agents run as (uid %d %s)", o.Credential.Uid, o.User))
}

// startFailure explains an error of the system's exec.
func (o Options) startFailure(l launch, err error) *Failure {
	staged := &stageError{}
	switch {
	case errors.As(err, &staged) && !errors.Is(err, syscall.EAGAIN):
		return launchFailure(err, "the agent's process could not be prepared: %v: see `rouse doctor`", err)
	case errors.Is(err, syscall.ENOENT):
		return missingProgram("%s names an interpreter (#! line or loader) that does not exist: install it, or name the interpreter first in argv", l.program)
	case errors.Is(err, syscall.ENOEXEC):
		return launchFailure(err, "%s is no program this system can run: a script needs a first line such as #!/bin/sh", l.program)
	case errors.Is(err, syscall.EACCES):
		return launchFailure(err, "%s may not be run in %s by %s: check the permissions of both", l.program, l.directory, o.who())
	case errors.Is(err, syscall.EPERM):
		return launchFailure(err, "rouse may not start %s as %s: start rouse as root, or as that account", l.program, o.who())
	case errors.Is(err, syscall.E2BIG):
		return launchFailure(err, "the arguments and environment of %s are too long for the system: shorten them", l.program)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return launchFailure(err, "the system has no room for another process: %v: lower max_concurrent_runs, or raise the limits (--agent-processes, ulimit -u, ulimit -n)", err)
	}
	return launchFailure(err, "%s could not be started: %v", l.program, err)
}

func launchFailure(cause error, format string, args ...any) *Failure {
	return &Failure{Code: domain.RunErrorCodeLaunch, Message: fmt.Sprintf(format, args...), Cause: cause}
}

func permanentLaunch(format string, args ...any) *Failure {
	failure := launchFailure(nil, format, args...)
	failure.Permanent = true
	return failure
}

func lookup(environment []string, name string) string {
	for _, entry := range environment {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// CheckWorkRoot says before any run comes whether the account that runs agents may enter the folder that they work in.
func (c *Command) CheckWorkRoot() error {
	root, err := filepath.Abs(c.options.WorkRoot)
	if err != nil {
		return fmt.Errorf("find the agents' work folder: %w", err)
	}
	o, failure := c.options.of("")
	if failure != nil {
		return failure
	}
	if shut := barrier(root, o.Credential); shut != "" {
		return fmt.Errorf("the agents' work folder %s may not be entered by %s, who cannot pass %s: give a --data-dir that others may enter", root, o.who(), shut)
	}
	return nil
}
