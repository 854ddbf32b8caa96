package postgres

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"rouse.dev/rouse/internal/account"
)

// DefaultDataDir is where a local cluster lies when nobody says otherwise: ./.rouse, so that each checkout has its own
// and it is easy to find and delete. For root it is /var/lib/rouse, because the server then runs under an unprivileged
// account, which as a rule cannot reach root's working folder.
func DefaultDataDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/rouse"
	}
	return ".rouse"
}

// FolderInUseError says that another process holds the data folder.
type FolderInUseError struct {
	Dir string
	PID int // 0 when the holder has not written it
}

func (e *FolderInUseError) Error() string {
	holder := "another rouse"
	if e.PID != 0 {
		holder = fmt.Sprintf("another rouse (process %d)", e.PID)
	}
	return fmt.Sprintf("the data folder %s is in use by %s; stop that one first, or choose another folder with "+
		"--data-dir", e.Dir, holder)
}

// UnreachableError says that the account the server would run under cannot pass a folder on the way to Path.
type UnreachableError struct {
	Path, Folder, Account string
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("started as root, the database server runs as %s, and %s cannot enter %s on the way to %s; "+
		"choose a folder it can reach with --data-dir (such as /var/lib/rouse), or allow it to pass: chmod o+x %s",
		e.Account, e.Account, e.Folder, e.Path, e.Folder)
}

// FolderLock holds a data folder for this process, until Release or the end of the process.
type FolderLock struct {
	file *os.File
}

// lockName is the file in the data folder that is locked; it holds the holder's process id.
const lockName = "rouse.lock"

// LockFolder makes dir when it is missing and takes it for this process alone. A *FolderInUseError names the holder.
// The lock is the kernel's, so a process that died never holds it, whatever its file says.
func LockFolder(dir string) (*FolderLock, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, folderError(dir, err)
	}
	if err := errors.Join(giveAsFolder(file), takeLock(file, dir)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &FolderLock{file: file}, nil
}

func takeLock(file *os.File, dir string) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &FolderInUseError{Dir: dir, PID: holder(file)}
	}
	if err != nil {
		return fmt.Errorf("lock data folder %s: %w; choose a folder on a local disk with --data-dir", dir, err)
	}
	if err := file.Truncate(0); err != nil {
		return folderError(dir, err)
	}
	if _, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0); err != nil {
		return folderError(dir, err)
	}
	return nil
}

// holder reads the process id in a lock file. The holder writes it just after it has the lock, so an empty file or the
// number of a dead process is worth a second look.
func holder(file *os.File) int {
	deadline := time.Now().Add(200 * time.Millisecond)
	for {
		text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
		if err != nil {
			return 0
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err == nil && pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return pid
		}
		if time.Now().After(deadline) {
			return 0
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // another process gives no signal for this
	}
}

// Release gives the folder back. The file stays: removing it would let two processes lock two files of one name.
func (l *FolderLock) Release() error {
	if err := errors.Join(l.file.Truncate(0), l.file.Close()); err != nil {
		return fmt.Errorf("release data folder: %w", err)
	}
	return nil
}

// makeFolder makes dir and its missing parents: closed to others, or, for root, passable but not readable, since the
// server's account must reach its own folder below. The umask does not count: a strict one would shut that account out.
func makeFolder(dir string) error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		return folderError(dir, syscall.ENOTDIR)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return folderError(dir, err)
	}
	if err := makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	err = os.Mkdir(dir, mode)
	if err == nil {
		err = os.Chmod(dir, mode)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) { // another one may have made it meanwhile
		return folderError(dir, err)
	}
	return nil
}

// folderError says what to do about an operating system's refusal.
func folderError(dir string, err error) error {
	var what string
	switch {
	case errors.Is(err, syscall.EROFS):
		what = "it is on a read-only file system; choose another folder with --data-dir"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		what = "the disk is full; free some space, or choose another folder with --data-dir"
	case errors.Is(err, fs.ErrPermission):
		what = "this account may not write there; choose another folder with --data-dir, or change the owner of this one"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		what = "a file is where a folder should be; move it away, or choose another folder with --data-dir"
	default:
		what = "choose another folder with --data-dir"
	}
	return fmt.Errorf("cannot use the data folder %s: %w: %s", dir, err, what)
}

// blocker is the first folder on the way to path, path included, that the account may not enter; "" when it may enter
// all. It knows modes, not access control lists, so it names a culprit but does not decide.
func blocker(path string, a *account.Account) string {
	var walk string
	for _, part := range strings.SplitAfter(filepath.Clean(path), "/") {
		walk += part
		info, err := os.Stat(walk)
		if err != nil || (info.IsDir() && !passable(info, a)) {
			return filepath.Clean(walk)
		}
	}
	return ""
}

func passable(info fs.FileInfo, a *account.Account) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	switch {
	case stat.Uid == a.UID:
		return info.Mode()&0o100 != 0
	case stat.Gid == a.GID:
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}
