package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// agentAccount is who agents' commands run as: as root each workspace's under an id of its own, unless one account is named for all.
type agentAccount struct {
	account *account.Account // of all agents; nil: the server's own, or one for each workspace
	home    string           // of account; "" with a nil one
	lent    bool             // home is a folder of ours, since the account has none

	claims *account.Claims // nil: all agents have one account
	dir    string          // data folder, in which homes are
	quiet  bool            // nothing is made in dir, and no id is given
	mu     *sync.Mutex
	known  map[xid.ID]uint32 // ids that were claimed before
}

// String names the account for people.
func (a agentAccount) String() string {
	switch {
	case a.claims != nil:
		return fmt.Sprintf("a user id for each workspace (%s)", a.claims.IDs())
	case a.account != nil:
		return a.account.Name + ", one account for the agents of all workspaces, which can read each other's secrets"
	case os.Geteuid() == 0:
		return "root, and can do everything on this machine"
	}
	return "you, the account that started rouse"
}

// prepareAgents settles the accounts of agents' commands, and hands over what an earlier version left.
func (s *Server) prepareAgents(ctx context.Context) (err error) {
	if s.agents, err = prepareAccount(s.options.Config, s.files.dir); err != nil || s.agents.claims == nil {
		return err
	}
	if err := s.takeFolders(); err != nil {
		return err
	}
	if s.options.Standby {
		return nil
	}
	return s.handOver(ctx)
}

// prepareAccount is accountOfAgents, and makes the machine's list of ids and the home that is lent.
func prepareAccount(c config.Config, dir string) (agentAccount, error) {
	a, err := accountOfAgents(c, dir, account.OpenClaims)
	if err != nil {
		return a, err
	}
	return a, a.makeHome()
}

// lookAtAccount is accountOfAgents for who only looks: nothing is made, and no id is given.
func lookAtAccount(c config.Config, dir string) (agentAccount, error) {
	a, err := accountOfAgents(c, dir, func(ids account.Range, dir string) (*account.Claims, error) {
		return account.LookAtClaims(ids, dir), nil
	})
	a.quiet = true
	return a, err
}

// accountOfAgents says who agents run as; dir is the folder in which those without a home get one. Ids of their own need Linux,
// which tells processes apart by them.
func accountOfAgents(c config.Config, dir string, claimsOf func(account.Range, string) (*account.Claims, error)) (agentAccount, error) {
	if os.Geteuid() == 0 && c.AgentUser == "" && runtime.GOOS == "linux" {
		ids, err := c.UserIDs()
		if err != nil {
			return agentAccount{}, err
		}
		claims, err := claimsOf(ids, dir)
		return agentAccount{claims: claims, dir: dir, mu: &sync.Mutex{}, known: map[xid.ID]uint32{}}, err
	}
	a, err := account.ForCommands(c.AgentUser)
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
	if err := makeOwn(a.home, a.account.UID, a.account.GID); err != nil {
		return fmt.Errorf("make a home for %s, whom agents run as: %w; choose another --data-dir, or another account with --agent-user", a.account, err)
	}
	return nil
}

// makeOwn makes a folder that one account alone can read, or hands over the one that is there.
func makeOwn(dir string, uid, gid uint32) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	_, err := account.HandOver(dir, uid, gid)
	return err
}

// homes is where the homes of workspaces' agents are.
func homes(dir string) string { return filepath.Join(dir, "homes") }

// of is the account of one workspace's agents, with its home, both of which it may make.
func (a agentAccount) of(workspace xid.ID) (executor.AgentAccount, error) {
	uid, err := a.claim(workspace)
	if err != nil {
		return executor.AgentAccount{}, err
	}
	made := account.OfWorkspace(uid, workspace.String(), filepath.Join(homes(a.dir), workspace.String()))
	if err := a.makeHomeOf(made); err != nil {
		return executor.AgentAccount{}, fmt.Errorf("make its home: %w", err)
	}
	if executor.AccountsAreShown() != nil && !a.quiet {
		_ = made.ShowInUserdb() // the doctor tells what programs miss without a name
	}
	return executor.AgentAccount{
		Credential: made.Credential(), Home: made.Home, User: made.Name, Passwd: made.Passwd(), Group: made.Group(),
		Hold: func() (func(), error) { return a.claims.Hold(uid) }, Sweep: func() error { return a.claims.Sweep(uid) },
	}, nil
}

func (a agentAccount) makeHomeOf(made *account.Account) error {
	if a.quiet {
		return nil
	}
	if err := os.MkdirAll(homes(a.dir), 0o711); err != nil {
		return err
	}
	byName := filepath.Join(homes(a.dir), made.Name) // as a list of users names it that was made before there were workspaces
	if err := os.Symlink(filepath.Base(made.Home), byName); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return makeOwn(made.Home, made.UID, made.GID)
}

func (a agentAccount) claim(workspace xid.ID) (uint32, error) {
	if _, err := xid.Parse(workspace.String()); err != nil { // it becomes the name of a folder
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.quiet {
		if err := a.checkHome(workspace); err != nil {
			return 0, err
		}
	}
	if uid, ok := a.known[workspace]; ok {
		return uid, nil
	}
	owner := account.OwnerOf(filepath.Join(homes(a.dir), workspace.String()))
	uid, err := a.claimOrForesee(workspace.String(), owner)
	if err == nil { // what is foreseen stays as it is, too: a folder that was made for it must be its own when it is used
		a.known[workspace] = uid
	}
	return uid, err
}

func (a agentAccount) claimOrForesee(workspace string, wish uint32) (uint32, error) {
	if a.quiet {
		return a.claims.Foresee(workspace, wish)
	}
	return a.claims.Claim(workspace, a.dir, wish)
}

// options are those of agents' processes.
func (a agentAccount) options(c config.Config, work, installation string) executor.Options {
	o := executor.Options{WorkRoot: work, Installation: installation, Tools: executor.OwnProgram(), Credential: a.account.Credential(), Home: a.home,
		NewPrivileges: c.AgentNewPrivileges, Processes: c.AgentProcesses, OOMScore: c.AgentOOMScore, NoCgroups: !c.AgentCgroups}
	if a.account != nil {
		o.User = a.account.Name
	}
	if a.claims != nil {
		o.AccountOf = a.of
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
