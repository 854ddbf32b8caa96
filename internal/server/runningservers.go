package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/lib/pq"
)

// A server that has just ended is named by PostgreSQL until the session of each of its connections has noticed, which takes
// some milliseconds, and longer on a busy machine.
const (
	sessionEnd  = 3 * time.Second // how long such a session is waited for
	sessionLook = 50 * time.Millisecond
)

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

// serversAtWork names the servers that are connected and do not go away within sessionEnd.
func (d *Database) serversAtWork(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*sessionEnd)
	defer cancel()
	deadline := time.NewTimer(sessionEnd)
	defer deadline.Stop()
	look := time.NewTicker(sessionLook)
	defer look.Stop()
	return namesThatStay(func() ([]string, error) { return d.servers(ctx) }, look.C, deadline.C)
}

// namesThatStay lists at each look until nothing is listed or the deadline has come.
func namesThatStay(list func() ([]string, error), look, deadline <-chan time.Time) ([]string, error) {
	for {
		names, err := list()
		if err != nil || len(names) == 0 {
			return nil, err
		}
		select {
		case <-deadline:
			return names, nil
		case <-look:
		}
	}
}
