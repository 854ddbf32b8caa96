package server

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/executor"
)

// accounts says who agents run as, and how it is made sure that nothing of them stays.
func (d *doctor) accounts(db *Database) {
	agents, err := lookAtAccount(d.config, db.files.dir)
	if err != nil {
		d.fail("accounts", err, "run the doctor as the account that the server runs as, with its --agent-user and --agent-uids")
		return
	}
	d.pass("accounts", "agents run as "+agents.String())
	if agents.claims != nil {
		d.ids(agents)
	}
	cgroups, why := agents.options(d.config, "", "").Containment()
	if cgroups != "" {
		d.pass("ends", "each attempt is started in a cgroup below "+cgroups+", and all of it ends with it")
		return
	}
	d.pass("ends", "what an attempt started is found by its group, its mark and its descent, since it gets no cgroup: "+why)
}

// ids says whether workspaces can still be given ids, and whether programs can ask who they are.
func (d *doctor) ids(agents agentAccount) {
	free, err := agents.claims.Free()
	switch {
	case err != nil:
		d.fail("user ids", err, "run the doctor as root")
	case free == 0:
		d.fail("user ids", errors.New("all of "+agents.claims.IDs().String()+" were given to workspaces; an agent of a new one fails unless an old one's folders are gone"),
			"give a longer range with --agent-uids, which holds the old one")
	default:
		d.pass("user ids", fmt.Sprintf("%d of %s are free", free, agents.claims.IDs()))
	}
	switch why := executor.AccountsAreShown(); {
	case why == nil:
		d.pass("names", "agents find their account in their list of users")
	case account.IsListed(agents.claims.IDs().First):
		d.pass("names", "the system's list of users has the agents' accounts")
	case strings.Contains(nameServices(), "systemd"):
		d.pass("names", fmt.Sprintf("agents cannot be given a list of users of their own (%v), so systemd is told of their accounts (/run/userdb)", why))
	default:
		d.fail("names", fmt.Errorf("agents' accounts have no names: a list of users of their own cannot be given to them (%w), and systemd is not asked for users", why),
			"give rouse CAP_SYS_ADMIN, or install libnss-systemd, or name an account that has a name with --agent-user; until then ssh, node and git without user.name do not start")
	}
}

// nameServices is where the C library looks for users.
func nameServices() string {
	text, _ := os.ReadFile("/etc/nsswitch.conf") // without it there are the files alone
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "passwd:"); ok {
			return list
		}
	}
	return ""
}
