package store

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/store/pgtx"
)

// Snapshot is the oldest one that is held in this database: rows that died since are kept, and every claim reads past them.
type Snapshot struct {
	Transactions int64         // that began since; also of prepared transactions and replication slots
	Age          time.Duration // of the session that holds it, where this account may see that
	Holder       string        // that session, for people; "" when it is not seen
}

// OldestSnapshot looks for it. Sessions of vacuum do not count: they hold up nothing.
func (s *Records) OldestSnapshot(ctx context.Context) (out Snapshot, err error) {
	const query = `
WITH held AS (
  SELECT age(backend_xmin) AS transactions,
    extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
    format('process %s of account %s, %s', pid, usename,
      coalesce(nullif(application_name, ''), 'without a name')) AS holder
  FROM pg_stat_activity
  WHERE backend_xmin IS NOT NULL
    AND datname = current_database()
    AND pid <> pg_backend_pid()
    AND backend_type <> 'autovacuum worker'
  UNION ALL
  -- one that nobody commits holds the snapshot for ever, without a session
  SELECT age(transaction), extract(epoch FROM clock_timestamp() - prepared)::float8,
    format('the prepared transaction %s', gid)
  FROM pg_prepared_xacts WHERE database = current_database()
  UNION ALL
  SELECT age(xmin), NULL, format('the replication slot %s', slot_name)
  FROM pg_replication_slots
  WHERE xmin IS NOT NULL)
SELECT coalesce(max(transactions), 0), coalesce(max(seconds), 0),
  coalesce((array_agg(holder ORDER BY coalesce(seconds, 0) DESC, transactions DESC))[1], '')
FROM held`
	var seconds float64
	if err := pgtx.QueryRow(ctx, s.db, []any{&out.Transactions, &seconds, &out.Holder}, query); err != nil {
		return out, fmt.Errorf("look for the oldest snapshot: %w", err)
	}
	out.Age = time.Duration(seconds * float64(time.Second))
	return out, nil
}
