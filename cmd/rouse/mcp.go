package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"rouse.dev/rouse/internal/mcpserver"
	"rouse.dev/rouse/internal/secret"
)

// mcpCommand serves a run's tools to an agent's program. Its settings have no flags: a command line is visible to everybody on the
// machine, and programs hand the environment on.
type mcpCommand struct{}

// Help is shown below the command's usage.
func (mcpCommand) Help() string {
	return "Rouse hands this server over to the agents that it starts. By hand: set ROUSE_API_URL and ROUSE_RUN_TOKEN to those of a run, and give `rouse mcp` to the agent's program as an MCP server on standard input and output."
}

// Run answers until standard input ends, or a signal comes.
func (mcpCommand) Run() error {
	api, err := mcpserver.NewAPI(os.Getenv("ROUSE_API_URL"), secret.NewString(os.Getenv("ROUSE_RUN_TOKEN")))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return mcpserver.Serve(ctx, mcpserver.New(api, version()), os.Stdin, os.Stdout)
}
