package account

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of a handover: what an agent may have put there must cost neither the disk nor the handles of the process.
const (
	maxHandoverDepth = 200
	maxHandoverCopy  = 4 << 30 // bytes of files that have other names
)

// Handed counts what a handover did.
type Handed struct {
	Entries int // files and folders that have the new owner
	Left    int // those that could not be given, each for a reason of Handover
}

// HandOver ends the owner's processes that work in a folder, and gives the folder to another account with all that the
// owner has in it. The folder itself comes last, so that a handover that was broken off is repeated. The agents that
// filled it are not trusted: no symbolic link is followed, no other file system entered, and what belongs to others
// than the folder's owner stays theirs. A file that has other names, maybe in another agent's folder, is replaced by a
// copy, so that nobody's file changes hands under its other names. Left with their owner are what lies 200 folders
// deep, root's files that have other names, files with holes, and copies beyond 4 GiB.
func HandOver(path string, uid, gid uint32) (Handed, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return Handed{}, fmt.Errorf("hand over %s: %w", path, err)
	}
	defer unix.Close(fd) //nolint:errcheck // a handle only
	var top unix.Stat_t
	if err := unix.Fstat(fd, &top); err != nil {
		return Handed{}, fmt.Errorf("hand over %s: %w", path, err)
	}
	if top.Uid == uid {
		return Handed{}, nil
	}
	if err := endProcessesIn(path, top.Uid); err != nil {
		return Handed{}, fmt.Errorf("hand over %s: %w", path, err)
	}
	h := &handover{from: top.Uid, device: top.Dev, uid: int(uid), gid: int(gid)}
	if err := h.folder(fd, 1); err != nil {
		return h.done, fmt.Errorf("hand over %s: %w", path, err)
	}
	if err := unix.Fchown(fd, h.uid, h.gid); err != nil {
		return h.done, fmt.Errorf("hand over %s: %w", path, err)
	}
	h.done.Entries++
	return h.done, nil
}

type handover struct {
	from     uint32
	device   uint64
	uid, gid int
	copied   int64
	done     Handed
}

// folder hands over what is in an open folder.
func (h *handover) folder(fd, depth int) error {
	names, err := namesIn(fd)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := h.entry(fd, name, depth); err != nil && !errors.Is(err, unix.ENOENT) { // gone meanwhile
			return fmt.Errorf("%s: %w", strconv.Quote(name), err)
		}
	}
	return nil
}

func namesIn(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(again), ".")
	defer dir.Close() // it was only read
	return dir.Readdirnames(-1)
}

// entry hands over one name. The handle makes sure that what was looked at is what gets another owner.
func (h *handover) entry(parent int, name string, depth int) error {
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) //nolint:errcheck // a handle only
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Dev != h.device {
		return nil
	}
	switch kind := info.Mode & unix.S_IFMT; {
	case kind == unix.S_IFDIR:
		return h.inner(fd, info, depth)
	case info.Uid != h.from:
		return nil
	case kind == unix.S_IFREG && info.Nlink > 1:
		return h.replace(parent, name, info)
	}
	return h.give(fd)
}

// inner hands over a folder below the first. Those of others are looked into, too: what an agent has in them is its own.
func (h *handover) inner(fd int, info unix.Stat_t, depth int) error {
	if depth >= maxHandoverDepth {
		h.done.Left++
		return nil
	}
	open, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = h.folder(open, depth+1)
	_ = unix.Close(open) // a handle only
	if err != nil || info.Uid != h.from {
		return err
	}
	return h.give(fd)
}

func (h *handover) give(fd int) error {
	if err := unix.Fchownat(fd, "", h.uid, h.gid, unix.AT_EMPTY_PATH); err != nil {
		return err
	}
	h.done.Entries++
	return nil
}

// replace replaces a file that has other names by a copy.
func (h *handover) replace(parent int, name string, info unix.Stat_t) error {
	holes := info.Blocks*512 < info.Size
	if h.from == 0 || holes || h.copied+info.Size > maxHandoverCopy {
		h.done.Left++
		return nil
	}
	h.copied += info.Size
	fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(fd), name)
	defer from.Close() // it was only read
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil || now.Ino != info.Ino || now.Dev != info.Dev {
		h.done.Left++ // somebody swaps it
		return err
	}
	next := ".rouse-handover-" + strings.TrimPrefix(filepath.Base(name), ".")
	next = next[:min(len(next), 200)]
	made, err := unix.Openat(parent, next, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	to := os.NewFile(uintptr(made), next)
	_, err = io.Copy(to, io.LimitReader(from, info.Size))
	times := []unix.Timeval{unix.NsecToTimeval(info.Atim.Nano()), unix.NsecToTimeval(info.Mtim.Nano())}
	err = errors.Join(err, unix.Futimes(made, times), to.Chown(h.uid, h.gid), to.Chmod(os.FileMode(info.Mode&0o777)), to.Close())
	if err == nil {
		err = unix.Renameat(parent, next, parent, name)
	}
	if err != nil {
		return errors.Join(err, unix.Unlinkat(parent, next, 0))
	}
	h.done.Entries++
	return nil
}
