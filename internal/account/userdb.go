package account

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// userdb is where systemd looks for users that are in no list, until the next boot.
const userdb = "/run/userdb"

// ShowInUserdb tells systemd of the account, whose module of the C library (nss-systemd) then tells programs. It is for machines on which
// no process can be given a list of users of its own.
func (a *Account) ShowInUserdb() error { return a.showIn(userdb) }

func (a *Account) showIn(dir string) error {
	user := map[string]any{"userName": a.Name, "uid": a.UID, "gid": a.GID, "realName": "agents of " + a.workspace, "homeDirectory": a.Home, "disposition": "dynamic", "locked": true}
	group := map[string]any{"groupName": a.Name, "gid": a.GID, "disposition": "dynamic"}
	err := os.MkdirAll(dir, 0o755)
	for suffix, record := range map[string]any{".user": user, ".group": group} {
		text, encodeErr := json.Marshal(record)
		err = errors.Join(err, encodeErr)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, a.Name+suffix), text, 0o644)
		}
		link := os.Symlink(a.Name+suffix, filepath.Join(dir, strconv.FormatUint(uint64(a.UID), 10)+suffix)) // by which it is found by number
		if !errors.Is(link, fs.ErrExist) {
			err = errors.Join(err, link)
		}
	}
	if err != nil {
		return fmt.Errorf("tell systemd of the account %s: %w", a.Name, err)
	}
	return nil
}
