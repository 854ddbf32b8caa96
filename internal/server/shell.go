package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/workspace"
	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/xid"
)

// ShellOptions are what RunAgentShell is called with.
type ShellOptions struct {
	Config    config.Config
	Worker    bool   // the data folder is a worker's, which has no database
	Workspace string // slug or id
	Argv      []string
	Log       *slog.Logger
	Errors    io.Writer // where a person is told as whom the shell runs
}

// RunAgentShell runs a shell, or a program, as the account that a workspace's agents run as, in its home, and returns its exit code.
func RunAgentShell(ctx context.Context, o ShellOptions) (int, error) {
	dir, err := o.folder()
	if err != nil {
		return -1, err
	}
	agents, err := prepareAccount(o.Config, dir)
	if err != nil {
		return -1, err
	}
	var id xid.ID
	if agents.claims != nil {
		if id, err = o.workspace(ctx, agents); err != nil {
			return -1, err
		}
		if err := agents.checkHome(id); err != nil {
			return -1, err
		}
		a, err := agents.of(id)
		if err != nil {
			return -1, err
		}
		o.tell("Agents of the workspace %s run as %s (uid %d), in %s.\n", o.Workspace, a.User, a.Credential.Uid, a.Home)
	} else {
		if _, err := o.workspace(ctx, agents); err != nil {
			return -1, err
		}
		o.tell("Agents of all workspaces run as %s.\n", agents)
	}
	return agents.options(o.Config, filepath.Join(dir, "work"), "").RunShell(ctx, executor.Shell{Workspace: id, Argv: o.Argv, In: os.Stdin, Out: os.Stdout, Errors: os.Stderr})
}

// checkHome refuses a home whose owner is outside the range of ids. Handing it over would end the agents that run there now, and it is
// the server's alone to do that, when it starts with another range.
func (a agentAccount) checkHome(workspace xid.ID) error {
	owner := account.OwnerOf(filepath.Join(homes(a.dir), workspace.String()))
	if owner == 0 || a.claims.IDs().Holds(owner) {
		return nil
	}
	return fmt.Errorf("the agents of the workspace %s have uid %d, which is not in --agent-uids %s: another uid would take their home from those that run now; "+
		"give the --agent-uids (ROUSE_AGENT_UIDS) that the server has", workspace, owner, a.claims.IDs())
}

// tell prints something for the person at the terminal, if the terminal is still there.
func (o ShellOptions) tell(format string, values ...any) {
	_, _ = fmt.Fprintf(o.Errors, format, values...)
}

func (o ShellOptions) folder() (string, error) {
	if o.Worker && o.Config.DataDir == "" {
		return filepath.Abs(defaultWorkerDir())
	}
	f, err := locate(o.Config)
	return f.dir, err
}

// workspace finds the id, or says that there is no such workspace. One whose agents have an account already is not looked up: there may be no
// server now.
func (o ShellOptions) workspace(ctx context.Context, agents agentAccount) (xid.ID, error) {
	id, notID := xid.Parse(o.Workspace)
	if notID == nil && agents.claims == nil && o.Worker {
		return id, nil
	}
	if notID == nil && agents.claims != nil {
		if _, found, err := agents.claims.Find(id.String()); err != nil || found || o.Worker {
			return id, err
		}
	}
	if o.Worker {
		return "", fmt.Errorf("a worker's folder does not tell which workspace %q is: give its id (wsp_…)", o.Workspace)
	}
	if err := MustExist(o.Config); err != nil {
		return "", err
	}
	db, err := OpenDatabase(ctx, o.Config, o.Log)
	if err != nil {
		return "", err
	}
	found, err := db.quietStore().Reader().Workspace.Query().Where(workspace.Or(workspace.Slug(o.Workspace), workspace.ID(id))).Only(auth.WithPrincipal(ctx, auth.Local()))
	if ent.IsNotFound(err) {
		err = fmt.Errorf("there is no workspace %q: name it by its slug or id", o.Workspace)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return "", err
	}
	return found.ID, nil
}
