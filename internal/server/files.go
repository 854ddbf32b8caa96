package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/postgres"
)

// files is the data folder of a process. A server locks it: it holds the agents' work, the key and perhaps the private
// cluster, and two servers would take each other's for their own.
type files struct {
	dir     string // absolute
	private bool   // it holds the private cluster
	lock    *postgres.FolderLock
}

// openFiles finds the data folder, makes it when it is missing, and locks it.
func openFiles(c config.Config) (files, error) {
	f, err := locate(c)
	if err != nil {
		return f, err
	}
	f.lock, err = postgres.LockFolder(f.dir)
	return f, err
}

// MustExist refuses a data folder that holds no database yet. Commands use it that make sense only with one, because a
// typo in --data-dir would otherwise make a whole new database.
func MustExist(c config.Config) error {
	f, err := locate(c)
	if err != nil || !f.private {
		return err
	}
	_, err = os.Stat(f.cluster())
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("this account may not look into %s: call this as the account that the server runs as", f.dir)
	}
	if err != nil {
		return fmt.Errorf("there is no database in %s yet: name the --data-dir of the server, start it once with `rouse serve`, or set %s", f.dir, config.EnvDatabaseURL)
	}
	return nil
}

// locate finds the data folder without touching it.
func locate(c config.Config) (files, error) {
	dir := c.DataDir
	if dir == "" {
		dir = postgres.DefaultDataDir()
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return files{}, fmt.Errorf("data folder: %w", err)
	}
	return files{dir: abs, private: c.DatabaseURL.IsEmpty()}, nil
}

// cluster is the private cluster's own folder.
func (f files) cluster() string { return filepath.Join(f.dir, "postgres") }

func (f files) release() error {
	if f.lock == nil {
		return nil
	}
	return f.lock.Release()
}
