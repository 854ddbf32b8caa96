// Package account says under which system account child processes run when rouse itself was started as root. The
// database server refuses to run as root, and an agent's command must neither be root nor be able to read the
// database, so the two get different accounts. Started by anyone else, rouse cannot change accounts, and all stay one.
package account

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"syscall"
)

// Account is one entry of the system's user list. A nil *Account means "stay who we are".
type Account struct {
	Name string
	UID  uint32
	GID  uint32
	Home string // may name a folder that does not exist, as for nobody

	workspace string // whose agents alone it runs; "": it is in the system's list
}

// clusterNames is the order in which the database server's account is chosen. nobody is last because agents' commands
// run as nobody, and whoever shares the server's account can read its files.
var clusterNames = []string{"postgres", "_postgres", "daemon", "nobody"}

// commandName is the account of agents' commands when the operator names none.
const commandName = "nobody"

// ErrNotFound says that none of the accounts asked for exists.
var ErrNotFound = errors.New("no such account")

// Lookup finds the first account that exists on this machine, whoever we are; ErrNotFound when none does.
func Lookup(names ...string) (*Account, error) {
	for _, name := range names {
		u, err := user.Lookup(name)
		if err == nil {
			return fromUser(u)
		}
		if unknown := user.UnknownUserError(""); !errors.As(err, &unknown) {
			return nil, fmt.Errorf("look up account %s: %w", name, err)
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrNotFound, strings.Join(names, ", "))
}

// ByUID finds the account with the given number. A number without an entry in the user list is an account without a
// name: containers run under such.
func ByUID(uid uint32) (*Account, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
		return &Account{UID: uid, GID: uid}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look up account %d: %w", uid, err)
	}
	return fromUser(u)
}

// ForCluster is the account the database server runs under: nil unless we are root.
func ForCluster() (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	a, err := Lookup(clusterNames...)
	if err != nil {
		return nil, fmt.Errorf("started as root, and PostgreSQL does not run as root: %w; "+
			"create one (useradd --system postgres) or start rouse as an ordinary user", err)
	}
	return a, nil
}

// ForCommands is the account agents' commands run under: nil unless we are root. An empty name means nobody; "root" is
// an operator's explicit wish to stay root. The database server's own account is refused, since it can read every row.
func ForCommands(name string) (*Account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if name == "" {
		name = commandName
	}
	a, err := Lookup(name)
	if err != nil {
		return nil, fmt.Errorf("account for agents' commands: %w; create it, or name another", err)
	}
	if a.UID == 0 {
		return nil, nil
	}
	server, err := ForCluster()
	if err == nil && server.UID == a.UID && name != commandName {
		return nil, fmt.Errorf("account for agents' commands: %s is the database server's account and could read "+
			"every row; name another", name)
	}
	return a, nil
}

// Credential is what a child process is started with: the account's ids without supplementary groups, so that it
// inherits none of the server's rights. It is nil for a nil account.
func (a *Account) Credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.UID, Gid: a.GID, Groups: []uint32{}}
}

// OfWorkspace is the account of a workspace's agents, which no list of users knows.
func OfWorkspace(uid uint32, workspace, home string) *Account {
	return &Account{Name: nameOf(uid), UID: uid, GID: uid, Home: home, workspace: workspace}
}

// nameOf is what the account with an id is called.
func nameOf(uid uint32) string { return "rouse-" + strconv.FormatUint(uint64(uid), 10) }

// Passwd is the account's line in a list of users; "" when the system's list has it.
func (a *Account) Passwd() string {
	if known, err := user.LookupId(strconv.FormatUint(uint64(a.UID), 10)); err == nil && known.Username == a.Name && sameFolder(known.HomeDir, a.Home) {
		return ""
	}
	shell := "/bin/sh"
	if _, err := os.Stat("/bin/bash"); err == nil {
		shell = "/bin/bash"
	}
	return fmt.Sprintf("%s:x:%d:%d:agents of %s:%s:%s", a.Name, a.UID, a.GID, a.workspace, a.Home, shell)
}

func sameFolder(a, b string) bool {
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}

// IsListed says whether the system's list of users has the account of an id already, as an image's may.
func IsListed(uid uint32) bool {
	known, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	return err == nil && known.Username == nameOf(uid)
}

// Group is the line of the account's own group in a list of groups.
func (a *Account) Group() string { return fmt.Sprintf("%s:x:%d:", a.Name, a.GID) }

// OwnerOf is who owns a folder; 0 when it is not there.
func OwnerOf(path string) uint32 {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return stat.Uid
}

// String is the account's name, or its number when it has none.
func (a *Account) String() string {
	if a == nil {
		return "the current account"
	}
	if a.Name == "" {
		return "uid " + strconv.FormatUint(uint64(a.UID), 10)
	}
	return a.Name
}

func fromUser(u *user.User) (*Account, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("account %s: uid: %w", u.Username, err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("account %s: gid: %w", u.Username, err)
	}
	return &Account{Name: u.Username, UID: uint32(uid), GID: uint32(gid), Home: u.HomeDir}, nil
}
