package postgres

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"rouse.dev/rouse/internal/account"
)

// socketFile is the socket's name in its folder; the server chooses it.
const socketFile = ".s.PGSQL." + port

// socketFolder is where the server's socket lies: closed to everybody but the server's account (and root).
type socketFolder struct {
	path   string
	record string // the file that remembers a temporary path; "" when the folder lies in the cluster's own
}

// maxSocketPath is the longest path the kernel takes, in bytes.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

func fits(folder string) bool { return len(filepath.Join(folder, socketFile)) <= maxSocketPath() }

// makeSocketFolder makes run/ in the cluster's folder. Where that path is too long for a socket it makes a folder in a
// temporary place and remembers it in the file socket, so that later starts use the same one and Stop removes it.
func makeSocketFolder(dir string, a *account.Account) (socketFolder, error) {
	run := filepath.Join(dir, "run")
	if fits(run) {
		if err := os.Mkdir(run, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return socketFolder{}, folderError(run, err)
		} else if err == nil {
			if err := give(run, a); err != nil {
				return socketFolder{}, err
			}
		}
		if err := closed(run, a); err != nil {
			return socketFolder{}, fmt.Errorf("folder of the database's socket: %w; remove it and start again", err)
		}
		return socketFolder{path: run}, nil
	}
	return temporarySocketFolder(filepath.Join(dir, "socket"), a)
}

func temporarySocketFolder(record string, a *account.Account) (socketFolder, error) {
	text, err := os.ReadFile(record)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return socketFolder{}, folderError(record, err)
	}
	s := socketFolder{path: strings.TrimSpace(string(text)), record: record}
	if s.path != "" && fits(s.path) && closed(s.path, a) == nil {
		return s, nil
	}
	for _, base := range []string{os.TempDir(), "/tmp"} {
		if !fits(filepath.Join(base, "rouse-0123456789")) || (a != nil && blocker(base, a) != "") {
			continue
		}
		if s.path, err = os.MkdirTemp(base, "rouse-"); err != nil {
			return socketFolder{}, folderError(base, err)
		}
		if err := give(s.path, a); err != nil {
			return socketFolder{}, err
		}
		return s, writeFile(record, s.path+"\n")
	}
	return socketFolder{}, fmt.Errorf("no place for the database's socket: %s is too long (%d bytes at most) and neither "+
		"%s nor /tmp will do; choose a shorter path with --data-dir", filepath.Dir(record), maxSocketPath(), os.TempDir())
}

// closed checks that a folder is one, belongs to the server's account and is shut to all others.
func closed(folder string, a *account.Account) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	uid := uint32(os.Geteuid())
	if a != nil {
		uid = a.UID
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || stat.Uid != uid || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("%s is not a folder of account %d with mode 0700", folder, uid)
	}
	return nil
}

// remove clears a temporary folder away; one in the cluster's folder stays.
func (s socketFolder) remove() error {
	if s.record == "" {
		return nil
	}
	if err := errors.Join(os.RemoveAll(s.path), os.RemoveAll(s.record)); err != nil {
		return fmt.Errorf("remove the folder of the database's socket: %w", err)
	}
	return nil
}
