package workcopy

import (
	"crypto/sha256"
	"encoding/hex"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Owner is the task or run that a working copy is made for. A run without a task has one of its own.
func Owner(per domain.CheckoutPer, task, run xid.ID) xid.ID {
	if per == domain.CheckoutPerTask && task != "" {
		return task
	}
	return run
}

// BranchPrefix begins the names of the branches that working copies begin on.
const BranchPrefix = "rouse/"

// Branch is the name of the branch that a working copy begins on.
func Branch(owner xid.ID) string { return BranchPrefix + owner.String() }

// Name is the name of a working copy's folder: another repository gives the same task another one.
func Name(owner xid.ID, repository string) string { return owner.String() + "-" + short(repository) }

// MirrorName is the name of the folder that has a copy of all commits of a repository.
func MirrorName(repository string) string { return short(repository) + ".git" }

// Key names a working copy among those of all machines: host is where it is, and trees the folder of its folder.
func Key(name, host, trees string) string { return name + "@" + short(host+"\x00"+trees) }

// short tells repositories apart.
func short(repository string) string {
	sum := sha256.Sum256([]byte(repository))
	return hex.EncodeToString(sum[:6])
}

// Beginnings are what a new working copy may begin at, as far as it is there.
type Beginnings struct {
	Branch bool // its branch is there, of a working copy that was removed
	Pushed bool // the branch is at the remote
}

// Beginning is what a new working copy begins at.
type Beginning string

// Where it begins: work of the same task goes on.
const (
	AtBranch Beginning = "BRANCH" // the branch as it is
	AtPushed Beginning = "PUSHED" // the branch as the remote has it
	AtRef    Beginning = "REF"    // the checkout's ref
)

// Begin decides what a new working copy begins at.
func Begin(b Beginnings) Beginning {
	switch {
	case b.Branch:
		return AtBranch
	case b.Pushed:
		return AtPushed
	}
	return AtRef
}
