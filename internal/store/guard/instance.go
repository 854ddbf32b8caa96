package guard

// FactActivation names the instant from which terminal shapes are recorded: written once, by the first boot after the
// migration that brought the columns (SPEC S10.1).
const FactActivation = "activation"

// FactScheduler names when a scheduler last gave a sign of life.
const FactScheduler = "scheduler_seen"

// OldestWriter is the number of the oldest transaction that may still append an entry to the feed, or end a run: what
// those before it wrote is all there. A transaction of another database, or of an account that may not write here, appends none: one that stays open holds
// nobody's feed up. A second account that may write is another server's, or ours before its credentials were changed.
// The session's own account always counts, because it may have taken on a role. Those that have ended since the
// statement's snapshot cannot be told from ours, and hold the feed up until the next look.
const OldestWriter = `(
  SELECT coalesce(min(x::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
  FROM pg_snapshot_xip(pg_current_snapshot()) x
  WHERE x::xid::text NOT IN (
    SELECT l.transactionid::text FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'transactionid'
      AND l.mode = 'ExclusiveLock'
      AND l.granted
      AND (a.datname <> current_database()
        OR a.usename <> session_user AND NOT has_table_privilege(a.usesysid, 'activities', 'INSERT'))
    UNION ALL
    -- a prepared transaction has no session, but it may still commit
    SELECT p.transaction::text
    FROM pg_prepared_xacts p
    WHERE p.database <> current_database()
      OR p.owner <> session_user AND NOT has_table_privilege(p.owner, 'activities', 'INSERT')))`

// ShapeColumns are what a run's terminal shape is derived from, besides when it was asked for. An absent value is "".
const ShapeColumns = `status::text AS status, coalesce(outcome, '') AS outcome, coalesce(end_reason::text, '') AS end_reason,
  session_id IS NOT NULL AS session`
