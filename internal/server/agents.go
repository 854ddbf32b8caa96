package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
)

// agentAccount is who agents' commands run as.
type agentAccount struct {
	account *account.Account // nil: the server's own
	home    string           // "" with a nil account
}

// String names the account for people.
func (a agentAccount) String() string {
	switch {
	case a.account != nil:
		return a.account.Name
	case os.Geteuid() == 0:
		return "root"
	}
	return "you, the account that started rouse"
}

// prepareAgents settles the account of agents' commands, and gives one without a home a folder as home.
func (s *Server) prepareAgents(context.Context) error {
	a, err := account.ForCommands(s.options.Config.AgentUser)
	if err != nil || a == nil {
		return err
	}
	s.agents = agentAccount{account: a, home: a.Home}
	if info, err := os.Stat(a.Home); err == nil && info.IsDir() && a.Home != "/" {
		return nil
	}
	s.agents.home = filepath.Join(s.files.dir, "home")
	return makeHome(s.agents.home, a)
}

// makeHome makes a folder that only the account can read.
func makeHome(dir string, a *account.Account) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err == nil {
		err = os.Lchown(dir, int(a.UID), int(a.GID))
	}
	if err != nil {
		return fmt.Errorf("make a home for %s, whom agents run as: %w; choose another --data-dir, or another account with --agent-user", a, err)
	}
	return nil
}

func (a agentAccount) options(work string) executor.Options {
	o := executor.Options{WorkRoot: work, Credential: a.account.Credential(), Home: a.home}
	if a.account != nil {
		o.User = a.account.Name
	}
	return o
}

// leftovers ends what agents of dead servers left, for the rescue sweep.
type leftovers struct{}

// EndLeftover ends the group of one attempt, and what left the group; those of another machine or boot are left alone.
func (leftovers) EndLeftover(_ context.Context, l store.Leftover) error {
	_, err := executor.EndLeftover(executor.ProcessGroup{
		PGID: l.Group.PGID, Host: l.Group.Host, BootID: l.Group.BootID, StartTime: uint64(l.Group.Started), Launch: executor.LaunchesOf(l.RunID, l.Number),
	})
	return err
}
