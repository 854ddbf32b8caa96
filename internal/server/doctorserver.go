package server

import (
	"context"
	"fmt"
	"os"
	"strings"
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
	running, err := db.servers(ctx)
	switch {
	case err != nil:
		d.fail("server", err, "may this account read pg_stat_activity?")
	case running == "":
		d.pass("server", "no server works on this database: nothing is woken until `rouse serve` runs")
	case strings.Count(running, standbyName) == strings.Count(running, ";")+1:
		d.standby = true
		d.pass("server", running+": it serves the API alone, and nothing is woken until `rouse serve` runs without --standby")
	default:
		d.pass("server", running)
	}
}

// servers names the servers that are connected to the database; "" when there is none.
func (d *Database) servers(ctx context.Context) (string, error) {
	const query = `
SELECT coalesce(string_agg(application_name, '; ' ORDER BY application_name), '') FROM pg_stat_activity
WHERE datname = current_database() AND starts_with(application_name, $1)`
	var running string
	if err := d.DB.QueryRowContext(ctx, query, serverName).Scan(&running); err != nil {
		return "", fmt.Errorf("look for running servers: %w", err)
	}
	return strings.ReplaceAll(running, serverName+", ", ""), nil
}
