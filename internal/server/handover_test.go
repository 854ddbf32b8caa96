package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Who may pass the folder of agents' work may not list it, also where an earlier version has made it: its names are those of other
// workspaces' agents.
func TestTheFolderOfAgentsWorkIsNotListed(t *testing.T) {
	if os.Geteuid() != 0 { // all agents are the server's own account then, and nothing is kept from it
		return
	}
	for name, mode := range map[string]fs.FileMode{"of an earlier version": 0o755, "as it is made now": 0o711, "shut by its owner": 0o700, "not there": 0} {
		t.Run(name, func(t *testing.T) {
			s := &Server{files: files{dir: t.TempDir()}, log: quiet()}
			work := s.files.work()
			if mode != 0 {
				if err := errors.Join(os.MkdirAll(filepath.Join(work, "agt_1"), 0o700), os.Chmod(work, mode)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.takeFolders(); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(work)
			switch {
			case mode == 0:
				if !os.IsNotExist(err) {
					t.Errorf("it was made: %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case info.Mode().Perm() != mode&0o711:
				t.Errorf("its mode is %o", info.Mode().Perm())
			}
		})
	}
}
