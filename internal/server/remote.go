package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/remote"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/tokenfile"
)

// WorkerOptions are what a worker on this machine is made from.
type WorkerOptions struct {
	Server    string        // address of the server
	Token     secret.String // with scope EXECUTE; empty: that of the data folder, for a server on this machine
	ServerDir string        // that data folder; "": the default of the account
	Workspace string        // id or slug; "": the token's own
	Queue     string
	Name      string // by which a person knows the worker; "": the host's
	Version   string // of the program
	Slots     int
	Dir       string        // folder that agents work in
	Agents    config.Config // whose settings of agents' accounts and processes hold here, too
	Command   []string
	Timeout   time.Duration // of Command
	Drain     time.Duration
	Log       *slog.Logger
}

// RunWorker takes runs from a server's queue until ctx ends. Then live runs have the drain to end. When hurry ends too,
// they are handed back at once.
func RunWorker(ctx, hurry context.Context, o WorkerOptions) (err error) {
	token, err := tokenOfWorker(o)
	if err != nil {
		return err
	}
	client, err := remote.NewClient(o.Server, token)
	if err != nil {
		return err
	}
	if o.Dir == "" {
		o.Dir = defaultWorkerDir()
	}
	agents, err := prepareWorker(o)
	if err != nil {
		return err
	}
	command := executor.NewCommand(agents.options(o.Agents, filepath.Join(o.Dir, "work"), ""))
	defer func() { err = errors.Join(err, command.Close()) }()
	if err := command.CheckWorkRoot(); err != nil {
		return err
	}
	if len(o.Command) > 0 {
		if err := command.Check(o.Command, ""); err != nil {
			return fmt.Errorf("the worker's own command cannot be started: %w", err)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("read the name of this host: %w", err)
	}
	w, err := remote.New(ctx, remote.Options{Client: client, Workspace: o.Workspace, Queue: o.Queue, Name: o.Name, Host: host, Version: o.Version, Command: o.Command, Timeout: o.Timeout,
		Slots: o.Slots, Dir: filepath.Join(o.Dir, "live"), Executor: executor.NewRegistry(command, nil), Copies: command, Log: o.Log,
		Ready: func() {
			o.Log.Info("worker ready", "server", o.Server, "queue", o.Queue, "workers", o.Slots, "agents_run_as", agents.String())
		}})
	if err != nil {
		return err
	}
	refused := w.Run(ctx)
	o.Log.Info("shutting down; a second SIGTERM or SIGINT ends live runs at once")
	drain, cancel := context.WithTimeout(hurry, o.Drain)
	defer cancel()
	if errors.Is(refused, ErrTokenEnded) {
		cancel() // what live runs would report is refused, too
	}
	return errors.Join(refused, w.Drain(drain))
}

// ErrTokenEnded says that the server does not take a worker's token, or not any more.
var ErrTokenEnded = remote.ErrTokenEnded

// tokenOfWorker is the token that a worker was given, or that of the data folder. That one goes to no other machine, and a
// folder without a token is left to the server to judge, which may ask for none.
func tokenOfWorker(o WorkerOptions) (secret.String, error) {
	if !o.Token.IsEmpty() || !isThisMachine(o.Server) {
		return o.Token, nil
	}
	f, err := locate(config.Config{DataDir: o.ServerDir})
	if err != nil {
		return secret.String{}, err
	}
	token, err := tokenfile.Read(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		o.Log.Info("no token was given, and the data folder has none: going on without; ROUSE_TOKEN gives one, "+
			"and --server-data-dir names the folder of a server of this machine", "file", tokenfile.Path(f.dir))
		return secret.String{}, nil
	}
	if err != nil {
		return secret.String{}, fmt.Errorf("no token was given in ROUSE_TOKEN, and that of the data folder: %w", err)
	}
	return secret.NewString(token.Reveal()), nil
}

// isThisMachine says whether a server's address can be of this machine alone.
func isThisMachine(server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// defaultWorkerDir is the folder of a worker that names none: for root one that the agents' account may enter.
func defaultWorkerDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/rouse-worker"
	}
	return "./.rouse-worker"
}

// prepareWorker makes the folder that agents work in, and settles whom they run as.
func prepareWorker(o WorkerOptions) (agentAccount, error) {
	for _, dir := range []string{o.Dir, filepath.Join(o.Dir, "work")} {
		if err := os.MkdirAll(dir, 0o711); err != nil {
			return agentAccount{}, fmt.Errorf("make the folder that agents work in: %w; choose another with --data-dir", err)
		}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return agentAccount{}, fmt.Errorf("find the folder that agents work in: %w", err)
	}
	agents, err := prepareAccount(o.Agents, dir)
	if err != nil {
		return agents, err
	}
	return agents, errors.Join(agents.sweep(), executor.EndOrphanedCgroups(""))
}
