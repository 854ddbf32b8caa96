package main

import (
	"context"
	"fmt"
	"os"

	"rouse.dev/rouse/internal/server"
)

// agentShellCommand is for logging in an agent's program, and for looking at what an agent sees.
type agentShellCommand struct {
	placeFlags
	agentFlags
	Workspace string   `required:"" placeholder:"SLUG" help:"Workspace, by slug or id."`
	Worker    bool     `help:"The data folder is that of a rouse worker (default for root /var/lib/rouse-worker); name the workspace by its id."`
	Command   []string `arg:"" optional:"" passthrough:"" help:"A program to run in the place of a shell; put -- before it."`
}

// exitStatus is the exit code of a program that was run for somebody; it has said itself what went wrong.
type exitStatus int

// Error names the code.
func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Run runs the shell, or the program, and ends with its exit code.
func (a agentShellCommand) Run() error {
	c := a.agentFlags.apply(a.config())
	if err := c.Validate(); err != nil {
		return err
	}
	command := a.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	return interruptible(func(ctx context.Context) error {
		code, err := server.RunAgentShell(ctx, server.ShellOptions{
			Config: c, Worker: a.Worker, Workspace: a.Workspace, Argv: command, Log: logger(c, os.Stderr), Errors: os.Stderr,
		})
		if err == nil && code != 0 {
			return exitStatus(code)
		}
		return err
	})
}
