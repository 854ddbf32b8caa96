//go:build unix

package executor

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"rouse.dev/rouse/internal/xid"
)

// Shell is a person's shell, or a program, as the account of a workspace's agents.
type Shell struct {
	Workspace       xid.ID
	Argv            []string // empty: the shell of the system
	In, Out, Errors *os.File
}

// RunShell runs one in the home of the account, with a terminal of its own if In is one, and returns its exit code. What it started ends
// with it, as with an agent.
func (o Options) RunShell(ctx context.Context, s Shell) (code int, err error) {
	o, failure := o.of(s.Workspace)
	if failure != nil {
		return -1, failure
	}
	l, failure := o.shellLaunch(s)
	if failure != nil {
		return -1, failure
	}
	release, failure := o.holdAccount()
	if failure != nil {
		return -1, failure
	}
	c := newLauncher(o)
	defer func() {
		release()
		err = errors.Join(err, o.sweep(), c.Close())
	}()
	code, failure, err = c.shell(ctx, l, s)
	if failure != nil {
		return -1, failure
	}
	return code, err
}

// shellLaunch is what to start.
func (o Options) shellLaunch(s Shell) (launch, *Failure) {
	argv, shell := s.Argv, systemShell()
	if len(argv) == 0 {
		argv = []string{shell, "-l"}
	}
	var environment []string
	for _, v := range o.baseEnvironment() {
		switch term := os.Getenv("TERM"); {
		case v.Name == "NO_COLOR":
		case v.Name == "TERM" && term != "":
			environment = append(environment, "TERM="+term)
		case v.Name == "SHELL":
			environment = append(environment, "SHELL="+shell) // not argv[0]: programs start what SHELL names
		default:
			environment = append(environment, v.Name+"="+v.Value)
		}
	}
	home := filepath.Clean(cmp.Or(lookup(environment, "HOME"), "/"))
	program, failure := o.findProgram(argv[0], home, lookup(environment, "PATH"))
	return launch{program: program, argv: argv, directory: home, environment: environment, mark: newLaunchID(o.Installation, "agent-shell", os.Getpid()), options: o}, failure
}

func systemShell() string {
	if _, err := os.Stat("/bin/bash"); err == nil {
		return "/bin/bash"
	}
	return "/bin/sh"
}

// shell starts it and waits for its end.
func (c *launcher) shell(ctx context.Context, l launch, s Shell) (code int, _ *Failure, _ error) {
	files, terminal, err := openTerminal(s)
	if err != nil {
		return -1, nil, err
	}
	l.terminal = terminal != nil
	started, home, err := c.spawn(l, files)
	if err != nil {
		terminal.close()
		return -1, l.options.startFailure(l, err), nil
	}
	p := &process{leader: started, group: identify(started.Pid, l.mark, l.options.Installation), launch: l, home: home, exited: make(chan struct{})}
	go func() { p.state = awaitExit(started); close(p.exited) }()
	terminal.begin()
	select {
	case <-p.exited:
	case <-ctx.Done():
	}
	p.killAll()
	<-p.exited
	state := children.reap(started)
	if p.state != nil {
		state = p.state
	}
	deadline := time.Now().Add(endLimit)
	err = errors.Join(awaitGroupEnd(p.group, deadline), endMarked(p.group, deadline), p.endRest(l, deadline))
	terminal.close()
	return exitCode(state), nil, err
}
