package pgtest

import (
	"os"
	"syscall"
	"testing"
)

// Folder is a temporary folder for a data folder of rouse. Unlike t.TempDir, the database server's account can pass it
// when the tests run as root. It is removed when t is over.
func Folder(t testing.TB) string {
	t.Helper()
	return folderIn(t, "")
}

// memory is where files cost least: to make and remove a cluster's thousand files on a disk takes a test half a second.
const memory = "/dev/shm"

// noExec is the flag of a file system from which no program is started.
const noExec = 0x8

// inMemory is memory where it has room, and agents may run what lies there; else the usual place.
func inMemory() string {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(memory, &stat); err != nil || stat.Bavail*uint64(stat.Bsize) < memoryNeeded || int64(stat.Flags)&noExec != 0 {
		return ""
	}
	return memory
}

func folderIn(t testing.TB, base string) string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "rouse-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { // passable, not readable
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}
