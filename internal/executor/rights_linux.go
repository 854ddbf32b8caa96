package executor

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"rouse.dev/rouse/internal/ownthread"
)

// withRightsOf runs do with an account's rights over files, so that the kernel judges every folder on the way to a file, and
// not the file alone. Only the user id for files is changed: the account could send signals to a thread that had its real one.
// nil is the account of this process.
func withRightsOf(c *syscall.Credential, do func() error) error {
	if !kernelJudges(c) {
		return do()
	}
	done := make(chan error)
	go ownthread.Run(func() {
		err := takeRightsOf(c)
		if err == nil {
			err = do()
		}
		done <- err
	})
	return <-done
}

// kernelJudges says that withRightsOf takes the account's rights, so that access lists and whatever else the system knows count.
func kernelJudges(c *syscall.Credential) bool { return c != nil && os.Geteuid() == 0 }

// takeRightsOf gives this thread an account's rights over files, and none of root's.
func takeRightsOf(c *syscall.Credential) error {
	groups := make([]int, len(c.Groups))
	for i, group := range c.Groups {
		groups[i] = int(group)
	}
	if err := unix.Setgroups(groups); err != nil {
		return fmt.Errorf("take the groups of the agent's account: %w", err)
	}
	_, _ = unix.SetfsgidRetGid(int(c.Gid)) // it never fails by itself: the next call tells
	_, _ = unix.SetfsuidRetUid(int(c.Uid)) // as above
	gid, _ := unix.SetfsgidRetGid(-1)
	uid, _ := unix.SetfsuidRetUid(-1)
	if uid != int(c.Uid) || gid != int(c.Gid) {
		return fmt.Errorf("the rights of the agent's account (uid %d) cannot be taken: the system left those of uid %d", c.Uid, uid)
	}
	return dropCapabilities()
}

// dropCapabilities takes root's powers from this thread, one of which opens what /proc tells of others' processes.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("give up root's powers over files: %w", err)
	}
	return nil
}

// isKernels says that a file is of /proc, whose files answer every thread of rouse about rouse, whatever its rights are.
func isKernels(file *os.File) bool {
	var about unix.Statfs_t
	return unix.Fstatfs(int(file.Fd()), &about) == nil && about.Type == unix.PROC_SUPER_MAGIC
}

// openRoot opens a folder that the account can get to by itself. It need not be able to list it.
func openRoot(path string, c *syscall.Credential) (*os.Root, error) {
	handle := -1
	err := withRightsOf(c, func() (err error) {
		handle, err = unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(handle) }() // a handle only
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", handle))
}
