//go:build unix

package executor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/xid"
)

// lookAtFolder checks a folder as directory does, but makes and changes nothing, so that it can look beside a server
// that works there. later is "" for a folder that can be used as it is. Otherwise it says what the agent's next run
// will do to get the folder.
func (o Options) lookAtFolder(wanted string, agent xid.ID) (where, later string, failure *Failure) {
	if wanted != "" {
		where, failure = o.directory(wanted, agent)
		return where, "", failure
	}
	where, failure = o.agentPath(agent)
	if failure != nil {
		return "", "", failure
	}
	info, err := os.Lstat(where)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return where, "which its first run will make", o.checkPassable(nearest(where))
	case err != nil:
		return where, "", launchFailure(err, "the agent's work folder %s cannot be looked at: %v", where, err)
	case !info.IsDir():
		return where, "", launchFailure(nil, "the agent's work folder %s is no folder: move it away", where)
	case o.isForeign(info) && o.Credential != nil && os.Geteuid() == 0:
		return where, "which its next run will take over from " + ownerOf(where), o.checkPassable(nearest(where))
	case o.isForeign(info):
		return where, "", launchFailure(nil, "the agent's work folder %s belongs to %s, not to %s", where, ownerOf(where), o.who())
	}
	return where, "", o.checkPassable(where)
}

// isForeign says that a folder belongs to another account than the one that runs agents; to root none is closed.
func (o Options) isForeign(info fs.FileInfo) bool {
	uid := uint32(os.Geteuid())
	if o.Credential != nil {
		uid = o.Credential.Uid
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && uid != 0 && stat.Uid != uid
}

// nearest is the first folder on the way up from path that exists.
func nearest(path string) string {
	for {
		parent := filepath.Dir(path)
		if _, err := os.Stat(parent); !errors.Is(err, fs.ErrNotExist) || parent == path {
			return parent
		}
		path = parent
	}
}

// ownerOf names the account that a folder belongs to.
func ownerOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return "nobody knows whom"
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "nobody knows whom"
	}
	owner, err := account.ByUID(stat.Uid)
	if err != nil {
		owner = &account.Account{UID: stat.Uid}
	}
	return owner.String()
}
