package server

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lib/pq"
)

// serverName begins the name that each server's listening connection has in the database, so that others can tell whether
// one runs.
const serverName = "rouse serve"

// standbyName tells a server on standby from one at work.
const standbyName = "standby process"

// processName is that of this process.
func processName(standby bool) string {
	kind := "process"
	if standby {
		kind = standbyName
	}
	host, err := os.Hostname()
	if err != nil {
		host = "a host without a name"
	}
	const most = 63 // bytes that PostgreSQL keeps
	name := fmt.Sprintf("%s, %s %d on %s", serverName, kind, os.Getpid(), host)
	return strings.ToValidUTF8(name[:min(len(name), most)], "")
}

// servers says which servers work on this database. That none does is no fault: the doctor is also asked before the first
// start.
func (d *doctor) servers(ctx context.Context, db *Database) {
	servers, err := db.servers(ctx)
	running := strings.Join(servers, "; ")
	atWork := func(server string) bool { return !strings.HasPrefix(server, standbyName) }
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
}

// servers names the servers that are connected to the database.
func (d *Database) servers(ctx context.Context) ([]string, error) {
	const query = `
SELECT array(SELECT application_name FROM pg_stat_activity WHERE datname = current_database() AND starts_with(application_name, $1) ORDER BY 1)`
	var names pq.StringArray
	if err := d.DB.QueryRowContext(ctx, query, serverName).Scan(&names); err != nil {
		return nil, fmt.Errorf("look for running servers: %w", err)
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, serverName+", ")
	}
	return names, nil
}
