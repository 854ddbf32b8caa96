// Command rouse is the scheduler: the server, and what an operator does beside it.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	_ "time/tzdata" // zones of schedules must not depend on the machine

	"github.com/alecthomas/kong"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/server"
)

// cli is the command line.
type cli struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version and end."`

	Serve      serveCommand      `cmd:"" help:"Run the server: API, console, scheduler and workers."`
	Worker     workerCommand     `cmd:"" help:"Run agents on this machine for a server elsewhere: take runs from its queue."`
	Migrate    migrateCommand    `cmd:"" help:"Bring the database to this version's shape and end."`
	Token      tokenCommand      `cmd:"" help:"Make, list and revoke bearer tokens."`
	Secrets    secretsCommand    `cmd:"" help:"Change the key that seals stored secrets."`
	Prune      pruneCommand      `cmd:"" help:"Remove old history now, or say what would be removed."`
	AgentShell agentShellCommand `cmd:"" help:"Open a shell as the account that a workspace's agents run as, to log their programs in."`
	Doctor     doctorCommand     `cmd:"" help:"See whether the database, the clock and the agents of this installation work."`
	Mcp        mcpCommand        `cmd:"" help:"Serve the tools of a run to an agent's program (Model Context Protocol, on standard input and output)."`
	Version    versionCommand    `cmd:"" help:"Print the version."`
}

func main() {
	// A log that nobody reads any more (`rouse serve | head`) must not end the process before it has ended its own.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// exitTokenEnded is the exit code of a worker whose token is not taken: starting it again with the same one does not help.
const exitTokenEnded = 3

// run is the program. Its result is the exit code: 0 for success, 1 for a failure, 2 for a wrong command line, 3 for a
// worker whose token is refused.
func run(args []string, stdout, stderr io.Writer) int {
	var c cli
	code := -1
	parser, err := kong.New(&c, kong.Name("rouse"), kong.Writers(stdout, stderr), kong.Exit(func(n int) { code = n }), kong.UsageOnError(),
		kong.Description("Rouse wakes autonomous agents: on a schedule, when something happens, or when you say so."), defaults(), kong.BindTo(stdout, (*io.Writer)(nil)))
	if err != nil {
		fmt.Fprintln(stderr, "rouse:", err)
		return 2
	}
	parsed, err := parser.Parse(args)
	if code >= 0 { // --help, --version
		return code
	}
	if err != nil {
		fmt.Fprintf(stderr, "rouse: %v\n%s --help tells what there is\n", err, strings.TrimSpace("rouse "+commandOf(err)))
		return 2
	}
	if err := parsed.Run(); err != nil {
		if status, ok := errors.AsType[exitStatus](err); ok {
			return int(status)
		}
		fmt.Fprintln(stderr, "rouse:", domain.Escaped(err.Error(), true))
		if _, wrong := errors.AsType[*config.InvalidError](err); wrong {
			return 2
		}
		if errors.Is(err, server.ErrTokenEnded) {
			return exitTokenEnded
		}
		return 1
	}
	return 0
}

// commandOf is the command that a wrong command line names, as far as it was understood.
func commandOf(err error) string {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return ""
	}
	command, _, _ := strings.Cut(wrong.Context.Command(), "<") // without its arguments
	return command
}

// defaults are the values that stand in the help.
func defaults() kong.Option {
	d := config.Default()
	return kong.Vars{
		"version": "rouse " + version(),
		"addr":    d.Addr, "auth": d.Auth, "workers": fmt.Sprint(d.Workers), "lease": d.Lease.String(), "drain": d.Drain.String(), "retention": d.History.String(),
		"agent_processes": fmt.Sprint(d.AgentProcesses), "agent_oom_score": fmt.Sprint(d.AgentOOMScore), "log_level": d.LogLevel, "log_format": d.LogFormat,
	}
}

// logger writes to standard error.
func logger(c config.Config, to io.Writer) *slog.Logger {
	o := &slog.HandlerOptions{Level: c.Level(), ReplaceAttr: readable}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, o))
	}
	return slog.New(slog.NewTextHandler(to, o))
}

// readable writes a duration as people do, in JSON too, where it would be a bare number of nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(stdout io.Writer) error {
	_, err := fmt.Fprintln(stdout, "rouse", version())
	return err
}

// release is set by the linker for a released program.
var release string

// version is the release, else what the build recorded of itself.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return recordedVersion(info)
}

// recordedVersion is the module's version, else the commit that the program was built from.
func recordedVersion(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return "devel-" + setting.Value[:min(12, len(setting.Value))]
		}
	}
	return "devel"
}
