package store

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/store/pgtx"
)

// FeedHolder is the open transaction that holds the feed back longest: entries that were written since it began are shown once it
// has ended, because it may still write one. The zero value is none.
type FeedHolder struct {
	PID         int // of its session; 0: it is a prepared one, which has none
	Account     string
	Application string // as the session calls itself
	State       string // of the session, as pg_stat_activity spells it; of a prepared transaction its name
	Age         time.Duration
}

// String names it for people.
func (h FeedHolder) String() string {
	if h.PID == 0 {
		return fmt.Sprintf("the prepared transaction %s of account %s", h.State, h.Account)
	}
	name := h.Application
	if name == "" {
		name = "without a name"
	}
	return fmt.Sprintf("process %d of account %s, %s, %s", h.PID, h.Account, name, h.State)
}

// FeedHolder looks for it. Only transactions count that may write entries, as for the feed's readers; and only those whose age
// this account may see.
func (s *Records) FeedHolder(ctx context.Context) (h FeedHolder, err error) {
	const query = `
SELECT pid, account, application, state, seconds
FROM (
  SELECT 0 AS pid, '' AS account, '' AS application, '' AS state, 0::float8 AS seconds
  UNION ALL
  SELECT pid, usename, coalesce(application_name, ''), coalesce(state, ''),
    extract(epoch FROM clock_timestamp() - xact_start)::float8
  FROM pg_stat_activity
  WHERE backend_xid IS NOT NULL
    AND xact_start IS NOT NULL
    AND datname = current_database()
    AND pid <> pg_backend_pid()
    AND (usename = session_user OR has_table_privilege(usesysid, 'activities', 'INSERT'))
  UNION ALL
  SELECT 0, owner, '', gid, extract(epoch FROM clock_timestamp() - prepared)::float8
  FROM pg_prepared_xacts
  WHERE database = current_database()
    AND (owner = session_user OR has_table_privilege(owner, 'activities', 'INSERT'))) holder
ORDER BY seconds DESC
LIMIT 1`
	var seconds float64
	if err := pgtx.QueryRow(ctx, s.db, []any{&h.PID, &h.Account, &h.Application, &h.State, &seconds}, query); err != nil {
		return h, fmt.Errorf("look for who holds the feed back: %w", err)
	}
	h.Age = time.Duration(seconds * float64(time.Second))
	return h, nil
}
