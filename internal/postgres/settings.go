package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"rouse.dev/rouse/internal/account"
)

const (
	hbaName   = "pg_hba.conf"
	identName = "pg_ident.conf"
)

// common are the settings of every cluster: small, since rouse asks little of it, and quiet. The server's log holds
// neither statements nor values (they may be secrets); rouse itself reports the errors it gets. Buffers are PostgreSQL's own
// default: with fewer, statements write others' pages to the disk before they find room for theirs, and those that nobody has
// used yet take no memory.
var common = []string{
	"listen_addresses=", "unix_socket_permissions=0700", "port=" + port,
	"timezone=UTC", "log_timezone=UTC",
	"max_connections=100", "superuser_reserved_connections=3",
	"shared_buffers=128MB", "huge_pages=off", "jit=off",
	"max_worker_processes=2", "max_parallel_workers=0", "max_parallel_workers_per_gather=0",
	"max_logical_replication_workers=0", "autovacuum_max_workers=2",
	"min_wal_size=32MB", "max_wal_size=512MB", "checkpoint_timeout=15min",
	"log_min_messages=log", "log_min_error_statement=panic", "log_error_verbosity=terse",
	"log_checkpoints=off", "log_autovacuum_min_duration=-1", "log_destination=stderr", "logging_collector=off",
}

// throwaway are the settings of clusters that live for one test run.
var throwaway = []string{
	"fsync=off", "full_page_writes=off", "wal_level=minimal", "max_wal_senders=0",
	"max_connections=400", "autovacuum=off",
}

// settings are the server's arguments. They are not written to its folder, so a newer rouse brings its own.
func (c *Cluster) settings() []string {
	list := append([]string{
		"hba_file=" + filepath.Join(c.dir, hbaName),
		"ident_file=" + filepath.Join(c.dir, identName),
		"unix_socket_directories=" + quoteList(c.socket.path),
	}, common...)
	if c.options.Throwaway {
		list = append(list, throwaway...)
	}
	args := []string{"-D", c.data()}
	for _, s := range list {
		args = append(args, "-c", s)
	}
	return args
}

// quoteList makes one path an item of a list in which a comma or a space would separate items.
func quoteList(path string) string { return `"` + strings.ReplaceAll(path, `"`, `""`) + `"` }

// writeAccess says who may connect: over the socket, the kernel vouching for the caller, root and the server's account,
// both as the one role. That holds even if somebody opens the socket's folder. The files belong to us, not to the
// server's account, and are replaced as a whole.
func writeAccess(dir string, a *account.Account) error {
	names, err := callers(a)
	if err != nil {
		return err
	}
	var ident strings.Builder
	for _, name := range names {
		fmt.Fprintf(&ident, "%s %s %s\n", role, quoteIdent(name), role)
	}
	if err := writeFile(filepath.Join(dir, hbaName), "local all all peer map="+role+"\n"); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, identName), ident.String())
}

// callers are the names of root and of the account the server runs as.
func callers(a *account.Account) ([]string, error) {
	uid := os.Geteuid()
	if a != nil {
		uid = int(a.UID)
	}
	var names []string
	for _, id := range []int{0, uid} {
		u, err := user.LookupId(strconv.Itoa(id))
		if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up account %d: %w", id, err)
		}
		names = append(names, u.Username)
	}
	return names, nil
}

// quoteIdent makes a name one literal token of pg_ident.conf, where a leading slash would begin a pattern.
func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// writeFile replaces a file that the server's account reads, unless it already says the same.
func writeFile(path, text string) error {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == text {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return folderError(filepath.Dir(path), err)
	}
	_, err = file.WriteString(text)
	err = errors.Join(err, file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(folderError(path, err), os.Remove(file.Name()))
	}
	return nil
}
