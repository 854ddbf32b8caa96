//go:build unix

package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// claimsFolder is where this machine notes which workspace has which user id. It is one for all servers of the machine: the
// kernel does not know either whose agents a process belongs to.
const claimsFolder = "/var/lib/rouse-uids"

// Claims gives each workspace a user id of its own on this machine, and remembers it. An id that was given stays with its
// workspace; it is given again only when the ids have run out, the folders that it worked in are gone, and no process has it.
type Claims struct {
	dir string
	ids Range
}

// ErrExhausted says that all ids of the range are taken.
var ErrExhausted = errors.New("all user ids for agents are taken")

// OpenClaims opens this machine's list. Where the system's own folder cannot be written (a container that may only write its
// volume), the list is in the data folder, which no other server has.
func OpenClaims(ids Range, dataDir string) (*Claims, error) {
	var failed error
	for _, dir := range []string{claimsFolder, filepath.Join(dataDir, "uids")} {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			return &Claims{dir, ids}, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("make the list of agents' user ids: %w; make one of the two folders writable, or name one account for all agents with --agent-user", failed)
}

// LookAtClaims is OpenClaims for who only looks: no list is made, and Claim must not be called.
func LookAtClaims(ids Range, dataDir string) *Claims {
	own := filepath.Join(dataDir, "uids")
	if _, err := os.Lstat(claimsFolder); err != nil {
		if _, err := os.Lstat(own); err == nil {
			return &Claims{own, ids}
		}
	}
	return &Claims{claimsFolder, ids}
}

// IDs is the range.
func (c *Claims) IDs() Range { return c.ids }

// claim is what the list says of one id.
type claim struct {
	Workspace string   `json:"workspace"`
	Folders   []string `json:"folders"` // data folders of servers and workers that it works in
}

// Claim gives a workspace its user id, a new one if it has none. folder is the data folder that the workspace works in.
// wish is the owner of files that are there already, 0 for none, so that a lost list is restored from its folders.
func (c *Claims) Claim(workspace, folder string, wish uint32) (uint32, error) {
	unlock, err := c.lock("lock", syscall.LOCK_EX)
	if err != nil {
		return 0, err
	}
	defer unlock()
	all, err := c.read()
	if err != nil {
		return 0, err
	}
	for uid, known := range all {
		if known.Workspace != workspace || !c.ids.Holds(uid) {
			continue
		}
		if slices.Contains(known.Folders, folder) {
			return uid, nil
		}
		known.Folders = append(known.Folders, folder)
		return uid, c.write(uid, known)
	}
	uid, err := c.choose(all, wish)
	if err != nil {
		return 0, err
	}
	return uid, c.write(uid, claim{workspace, []string{folder}})
}

// Find is the id that a workspace has, if it has one.
func (c *Claims) Find(workspace string) (uint32, bool, error) {
	all, err := c.read()
	for uid, known := range all {
		if known.Workspace == workspace && c.ids.Holds(uid) {
			return uid, true, err
		}
	}
	return 0, false, err
}

// Foresee is the id that Claim would give a workspace now. It notes nothing, so that somebody else may get it first.
func (c *Claims) Foresee(workspace string, wish uint32) (uint32, error) {
	uid, found, err := c.Find(workspace)
	if err != nil || found {
		return uid, err
	}
	all, err := c.read()
	if err != nil {
		return 0, err
	}
	return c.choose(all, wish)
}

// Of lists the ids of a data folder's workspaces.
func (c *Claims) Of(folder string) (map[uint32]string, error) {
	all, err := c.read()
	of := map[uint32]string{}
	for uid, known := range all {
		if slices.Contains(known.Folders, folder) {
			of[uid] = known.Workspace
		}
	}
	return of, err
}

// Free counts the ids that were never given.
func (c *Claims) Free() (int, error) {
	all, err := c.read()
	taken := 0
	for uid := range all {
		if c.ids.Holds(uid) {
			taken++
		}
	}
	return int(c.ids.Last-c.ids.First) - taken, err
}

// choose finds an id: the wish, else the id after the last one that was given. So an id that was given up is used again
// as late as possible.
func (c *Claims) choose(all map[uint32]claim, wish uint32) (uint32, error) {
	busy, err := uidsOfProcesses()
	if err != nil {
		return 0, err
	}
	if _, taken := all[wish]; !taken && c.ids.Holds(wish) {
		if foreign, err := isForeign(wish); err != nil || !foreign {
			return wish, err
		}
	}
	newest := c.ids.First - 1
	for uid := range all {
		if c.ids.Holds(uid) {
			newest = max(newest, uid)
		}
	}
	for _, part := range []Range{{newest + 1, c.ids.Last}, {c.ids.First, newest + 1}} {
		for uid := part.First; uid < part.Last; uid++ {
			if known, taken := all[uid]; busy[uid] || taken && !c.abandoned(known) {
				continue
			}
			foreign, err := isForeign(uid)
			if err != nil {
				return 0, err
			}
			if !foreign {
				return uid, nil
			}
		}
	}
	return 0, fmt.Errorf("%w (%s): give a longer range with --agent-uids, or remove data folders that nobody needs any more", ErrExhausted, c.ids)
}

// isForeign says that an id is or may become somebody else's.
func isForeign(uid uint32) (bool, error) {
	one := Range{uid, uid}
	if lent(uid) || !isMapped("/proc/self/uid_map", one) || !isMapped("/proc/self/gid_map", one) {
		return true, nil
	}
	return listed(uid)
}

// abandoned says that none of the folders that an id worked in is there any more.
func (c *Claims) abandoned(known claim) bool {
	for _, folder := range known.Folders {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

func (c *Claims) read() (map[uint32]claim, error) {
	entries, err := os.ReadDir(c.dir)
	if errors.Is(err, fs.ErrNotExist) { // nothing was given yet
		return map[uint32]claim{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of agents' user ids: %w", err)
	}
	all := map[uint32]claim{}
	for _, entry := range entries {
		uid, err := strconv.ParseUint(entry.Name(), 10, 32)
		if err != nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read the list of agents' user ids: %w", err)
		}
		var known claim
		if err := json.Unmarshal(text, &known); err != nil {
			return nil, fmt.Errorf("read the list of agents' user ids: %s: %w: remove the file; its workspace keeps the id if its folders have it", filepath.Join(c.dir, entry.Name()), err)
		}
		all[uint32(uid)] = known
	}
	return all, nil
}

// write notes a claim in one step: half a note would be nobody's.
func (c *Claims) write(uid uint32, known claim) error {
	text, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("note the user id of an agent: %w", err)
	}
	file := filepath.Join(c.dir, strconv.FormatUint(uint64(uid), 10))
	err = os.WriteFile(file+".new", text, 0o600)
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("note the user id of an agent: %w", err)
	}
	return nil
}

// Hold says that somebody works under an id, until release is called or this process ends.
func (c *Claims) Hold(uid uint32) (release func(), err error) {
	return c.lock(strconv.FormatUint(uint64(uid), 10)+".held", syscall.LOCK_SH)
}

// Sweep ends every process of an id, wherever it hides, unless somebody holds the id.
func (c *Claims) Sweep(uid uint32) error {
	if !c.ids.Holds(uid) {
		return nil
	}
	release, err := c.lock(strconv.FormatUint(uint64(uid), 10)+".held", syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	return endProcessesOf(uid, c.ids.reaper())
}

func (c *Claims) lock(name string, how int) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(c.dir, name), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the list of agents' user ids: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock the list of agents' user ids: %w", err), file.Close())
	}
	return func() { _ = file.Close() }, nil // which unlocks it
}
