package queuebench

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"

	"rouse.dev/rouse/internal/postgres"
)

// written is what the database has written since its cluster was made: rows, and updates that needed no index entry among
// them; where is the place in its write-ahead log.
type written struct {
	rows, hot float64
	where     string
}

// written reads how far the database has come.
func (h *house) written() (w written) {
	h.Helper()
	ctx := context.Background()
	h.ok(h.db.QueryRowContext(ctx, `SELECT pg_current_wal_insert_lsn()::text`).Scan(&w.where))
	h.sql(`SELECT pg_sleep(1.1)`) // a connection tells its counts once a second
	h.ok(h.db.QueryRowContext(ctx, `SELECT sum(n_tup_ins + n_tup_upd + n_tup_del), sum(n_tup_hot_upd) FROM pg_stat_user_tables WHERE relname NOT LIKE 'pgbench%'`).Scan(&w.rows, &w.hot))
	return w
}

var leafInserts = regexp.MustCompile(`(?m)^Btree/INSERT_(?:LEAF|POST)\s+(\d+)`)

// perCycle is what was written since then, for each of n cycles; entries are those of indexes, and bytes of the log.
func (h *house) perCycle(since written, n int64) map[string]float64 {
	h.Helper()
	now := h.written()
	var bytes float64
	h.ok(h.db.QueryRowContext(context.Background(), `SELECT pg_wal_lsn_diff($1::pg_lsn, $2::pg_lsn)`, now.where, since.where).Scan(&bytes))
	var folder string
	h.ok(h.db.QueryRowContext(context.Background(), `SELECT current_setting('data_directory')`).Scan(&folder))
	binaries, err := postgres.FindBinaries()
	h.ok(err)
	out, err := exec.Command(filepath.Join(binaries.Dir, "pg_waldump"), "-p", filepath.Join(folder, "pg_wal"), "-s", since.where, "-e", now.where, "--stats=record").CombinedOutput()
	if err != nil {
		h.Fatalf("pg_waldump: %v: %s", err, out)
	}
	entries := 0.0
	for _, m := range leafInserts.FindAllSubmatch(out, -1) {
		some, err := strconv.ParseFloat(string(m[1]), 64)
		h.ok(err)
		entries += some
	}
	cycles := float64(n)
	return map[string]float64{"rows/cycle": (now.rows - since.rows) / cycles, "hot/cycle": (now.hot - since.hot) / cycles,
		"index-entries/cycle": entries / cycles, "wal-bytes/cycle": bytes / cycles}
}
