package doctor

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/executor"
)

// Agents is who agents run as.
type Agents struct {
	Name   string          // for people
	Claims *account.Claims // the user ids of workspaces; nil where all agents have one account

	// The control group below which attempts are started, or why there is none.
	Cgroups, NoCgroups string
}

// Accounts says who agents run as, and how it is made sure that nothing of them stays. err says why that is not known.
func (r *Report) Accounts(agents Agents, err error) {
	if err != nil {
		r.Fail("accounts", err, "run the doctor as the account that the server runs as, with its --agent-user and --agent-uids")
		return
	}
	r.Pass("accounts", "agents run as "+agents.Name)
	if agents.Claims != nil {
		r.ids(agents.Claims)
	}
	if agents.Cgroups != "" {
		r.Pass("ends", "each attempt is started in a cgroup below "+agents.Cgroups+", and all of it ends with it")
		return
	}
	r.Pass("ends", "what an attempt started is found by its group, its mark and its descent, since it gets no cgroup: "+agents.NoCgroups)
}

// ids says whether workspaces can still be given ids, and whether programs can ask who they are.
func (r *Report) ids(claims *account.Claims) {
	free, err := claims.Free()
	switch {
	case err != nil:
		r.Fail("user ids", err, "run the doctor as root")
	case free == 0:
		r.Fail("user ids", errors.New("all of "+claims.IDs().String()+" were given to workspaces; an agent of a new one fails unless an old one's folders are gone"),
			"give a longer range with --agent-uids, which holds the old one")
	default:
		r.Pass("user ids", fmt.Sprintf("%d of %s are free", free, claims.IDs()))
	}
	switch why := executor.AccountsAreShown(); {
	case why == nil:
		r.Pass("names", "agents find their account in their list of users")
	case account.IsListed(claims.IDs().First):
		r.Pass("names", "the system's list of users has the agents' accounts")
	case strings.Contains(nameServices(), "systemd"):
		r.Pass("names", fmt.Sprintf("agents cannot be given a list of users of their own (%v), so systemd is told of their accounts (/run/userdb)", why))
	default:
		r.Fail("names", fmt.Errorf("agents' accounts have no names: a list of users of their own cannot be given to them (%w), and systemd is not asked for users", why),
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
