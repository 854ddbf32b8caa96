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
	lent    bool             // home is a folder of ours, since the account has none
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

// prepareAgents settles the account of agents' commands.
func (s *Server) prepareAgents(context.Context) (err error) {
	s.agents, err = prepareAccount(s.options.Config.AgentUser, s.files.dir)
	return err
}

// prepareAccount is accountOfAgents, and makes the home that is lent.
func prepareAccount(name, dir string) (agentAccount, error) {
	a, err := accountOfAgents(name, dir)
	if err != nil {
		return a, err
	}
	return a, a.makeHome()
}

// accountOfAgents says who agents run as, and makes nothing; dir is the folder in which one without a home gets one.
func accountOfAgents(name, dir string) (agentAccount, error) {
	a, err := account.ForCommands(name)
	if err != nil || a == nil {
		return agentAccount{}, err
	}
	if info, err := os.Stat(a.Home); err == nil && info.IsDir() && a.Home != "/" {
		return agentAccount{account: a, home: a.Home}, nil
	}
	return agentAccount{account: a, home: filepath.Join(dir, "home"), lent: true}, nil
}

// makeHome makes the folder that is lent as a home, which only the account can read.
func (a agentAccount) makeHome() error {
	if !a.lent {
		return nil
	}
	err := os.Mkdir(a.home, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err == nil {
		err = os.Lchown(a.home, int(a.account.UID), int(a.account.GID))
	}
	if err != nil {
		return fmt.Errorf("make a home for %s, whom agents run as: %w; choose another --data-dir, or another account with --agent-user", a.account, err)
	}
	return nil
}

func (a agentAccount) options(work, installation string) executor.Options {
	o := executor.Options{WorkRoot: work, Installation: installation, Credential: a.account.Credential(), Home: a.home}
	if a.account != nil {
		o.User = a.account.Name
	}
	return o
}

// leftovers ends what agents of dead servers left, for the rescue sweep.
type leftovers struct{ installation string }

// EndLeftover ends the group of one attempt, and what left the group; those of another machine, boot or installation are left alone.
func (o leftovers) EndLeftover(_ context.Context, l store.Leftover) error {
	_, err := executor.EndLeftover(o.installation, executor.ProcessGroup{
		PGID: l.Group.PGID, Host: l.Group.Host, BootID: l.Group.BootID, StartTime: uint64(l.Group.Started), Launch: executor.LaunchesOf(o.installation, l.RunID, l.Number),
	})
	return err
}
