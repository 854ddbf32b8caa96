package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"rouse.dev/rouse/internal/tokenfile"
)

// serverName begins the name that each server's listening connection has in the database, so that others can tell whether
// one runs.
const serverName = "rouse serve"

// standbyName tells a server on standby from one at work.
const standbyName = "standby process"

// openName begins the name of a server that asks for no token.
const openName = "open "

// processName is that of this process.
func processName(standby, open bool) string {
	kind := "process"
	if standby {
		kind = standbyName
	}
	if open {
		kind = openName + kind
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	const most = 63 // bytes that PostgreSQL keeps
	name := fmt.Sprintf("%s, %s %d on %s", serverName, kind, os.Getpid(), host)
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// servers says which servers work on this database. When none runs, that is not a fault, because the doctor is also
// called before the first start.
func (d *doctor) servers(ctx context.Context, db *Database) {
	servers, err := db.servers(ctx)
	running := strings.Join(servers, "; ")
	atWork := func(server string) bool { return !strings.HasPrefix(strings.TrimPrefix(server, openName), standbyName) }
	switch {
	case err != nil:
		d.fail("server", err, "may this account read pg_stat_activity?")
	case len(servers) == 0:
		d.pass("server", "no server works on this database: nothing is woken until `rouse serve` runs")
	case !slices.ContainsFunc(servers, atWork):
		d.standby = true
		d.pass("server", running+": it serves the API alone, and nothing is woken until `rouse serve` runs without --standby")
	default:
		d.pass("server", running)
	}
	d.access(ctx, db, servers)
}

// access reports whether a running server asks for a token, and whether the database accepts the token of the data
// folder.
func (d *doctor) access(ctx context.Context, db *Database, servers []string) {
	for _, server := range servers {
		if name, open := strings.CutPrefix(server, openName); open {
			d.pass("access", name+" asks for no token (--auth none): every process of its machine, agents too, can do everything; nothing may pass requests on to it")
		}
	}
	path := tokenfile.Path(db.files.dir)
	token, err := tokenfile.Read(db.files.dir)
	if errors.Is(err, fs.ErrNotExist) {
		d.pass("access", "there is no "+path+" yet, the token of this data folder: a start of `rouse serve` makes it")
		return
	}
	if err != nil {
		d.fail("access", err, rotateHint)
		return
	}
	known, err := db.quietStore().TokenByDigest(ctx, token.Digest().String())
	switch {
	case err != nil:
		d.fail("access", err, "see the log of PostgreSQL")
	case known == nil:
		d.fail("access", fmt.Errorf("the token in %s is revoked, or of another database", path), rotateHint)
	default:
		d.pass("access", fmt.Sprintf("the token in %s counts (%s)", path, known.ID))
	}
}

// rotateHint is what helps where the token of the data folder does not count.
const rotateHint = "`rouse token rotate-local` makes another, and so does the next start of `rouse serve`"
