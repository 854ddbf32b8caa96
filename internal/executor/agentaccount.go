//go:build unix

package executor

import (
	"errors"
	"syscall"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/xid"
)

// AgentAccount is who the agents of one workspace run as.
type AgentAccount struct {
	Credential *syscall.Credential
	Home, User string
	Passwd     string // its line in the list of users, when the system's list does not know it, and
	Group      string // that of its group
	// Hold says that an attempt runs under the account, until release is called; nil: nobody asks.
	Hold func() (release func(), err error)
	// Sweep ends every process of the account, unless an attempt holds the account. It is nil when the account also has
	// processes that are not agents.
	Sweep func() error
}

// of is the options for a workspace's agents.
func (o Options) of(workspace xid.ID) (Options, *Failure) {
	if o.AccountOf == nil {
		return o, nil
	}
	if workspace == "" { // somebody only asks whether a stranger could
		o.Credential, o.User = &syscall.Credential{Uid: 65534, Gid: 65534}, ""
		return o, nil
	}
	a, err := o.AccountOf(workspace)
	if errors.Is(err, account.ErrExhausted) {
		return o, permanentLaunch("this workspace's agents have no account to run as: %v", err)
	}
	if err != nil {
		return o, launchFailure(err, "this workspace's agents have no account to run as: %v", err)
	}
	o.account, o.Credential, o.Home, o.User = &a, a.Credential, a.Home, a.User
	return o, nil
}

// holdAccount notes that an attempt runs under its account, until release is called.
func (o Options) holdAccount() (release func(), _ *Failure) {
	if o.account == nil || o.account.Hold == nil {
		return func() {}, nil
	}
	release, err := o.account.Hold()
	if err != nil {
		return nil, launchFailure(err, "the account of this workspace's agents cannot be used: %v", err)
	}
	return release, nil
}

// sweep ends what is left of the account's processes when none of its attempts runs any more.
func (o Options) sweep() error {
	if o.account == nil || o.account.Sweep == nil {
		return nil
	}
	return o.account.Sweep()
}
