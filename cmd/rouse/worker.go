package main

import (
	"os"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/server"
)

// workerCommand runs agents on this machine for a server elsewhere.
type workerCommand struct {
	Server    string        `env:"ROUSE_SERVER" required:"" placeholder:"URL" help:"Address of the server, such as https://rouse.example.org."`
	Token     secret.String `env:"ROUSE_TOKEN" placeholder:"TOKEN" help:"Token with scope EXECUTE; better given in ROUSE_TOKEN, since a command line is visible to everybody on the machine. Without one, a server on this machine is given the token of its data folder."`
	ServerDir string        `name:"server-data-dir" env:"ROUSE_DATA_DIR" placeholder:"FOLDER" help:"Data folder of a server on this machine, whose token is used when none is given (default ./.rouse, for root /var/lib/rouse)."`
	Workspace string        `env:"ROUSE_WORKSPACE" placeholder:"ID" help:"Workspace, by id; by slug, or left out for the token's own, if the token may READ."`
	Queue     string        `env:"ROUSE_QUEUE" default:"default" help:"Queue of the agents' pull executor."`
	Name      string        `env:"ROUSE_WORKER_NAME" placeholder:"NAME" help:"Name by which the API lists this worker (default the host's)."`
	Workers   int           `env:"ROUSE_WORKERS" default:"1" help:"Runs at the same time."`
	DataDir   string        `name:"data-dir" env:"ROUSE_WORKER_DIR" placeholder:"FOLDER" help:"Folder that agents work in, and where the next worker finds what this one left (default ./.rouse-worker, for root /var/lib/rouse-worker)."`
	agentFlags
	Timeout   time.Duration `default:"30m" help:"How long the worker's own command may take."`
	Drain     time.Duration `env:"ROUSE_DRAIN" default:"${drain}" help:"How long live runs may go on at the end."`
	LogLevel  string        `name:"log-level" env:"ROUSE_LOG_LEVEL" default:"${log_level}" help:"debug, info, warn or error."`
	LogFormat string        `name:"log-format" env:"ROUSE_LOG_FORMAT" default:"${log_format}" help:"text or json."`
	Command   []string      `arg:"" optional:"" passthrough:"" help:"The worker's own command, for executors that name none; put -- before it."`
}

// Run takes runs until SIGINT or SIGTERM; a second one ends live runs at once, a third the process.
func (w workerCommand) Run() error {
	c := w.agentFlags.apply(config.Default())
	c.LogLevel, c.LogFormat, c.Workers, c.Drain = w.LogLevel, w.LogFormat, w.Workers, w.Drain
	if err := c.Validate(); err != nil {
		return err
	}
	log := logger(c, os.Stderr)
	stop, hurry, release := signals()
	defer release()
	command := w.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	err := server.RunWorker(stop, hurry, server.WorkerOptions{
		Server: w.Server, Token: w.Token, ServerDir: w.ServerDir, Workspace: w.Workspace, Queue: w.Queue, Name: w.Name, Version: version(), Slots: w.Workers, Dir: w.DataDir,
		Agents: c, Command: command, Timeout: w.Timeout, Drain: w.Drain, Log: log,
	})
	if err == nil {
		log.Info("stopped")
	}
	return err
}
