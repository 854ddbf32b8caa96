package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// retentionBatch bounds how many rows of a kind one transaction removes.
const retentionBatch = 200

// history is one kind of rows that become old. Its query gives the ids of those that may go: $1 is the age in
// milliseconds, $2 the most ids (NULL: all), $3 how many of an owner's newest rows stay.
type history struct {
	name  string
	query string
	drop  string // removes the ids that stand in "old"
	age   func(domain.Retention) time.Duration
	count func(*domain.Removed) *int
}

const (
	oldest = `now() - $1 * interval '1 millisecond'`
	// beforeLookback keeps whatever the recovery sweep of the workspace may still look at (SPEC S8.5).
	beforeLookback = `least(` + oldest + `, now() - w.recovery_lookback_hours * interval '1 hour')`
)

var openTask = `EXISTS (SELECT 1 FROM tasks k WHERE k.id = x.task_id AND ` + guard.TaskOpen("k") + `)`

// histories are all kinds. Live rows have no end and are no history; runs and requests of open tasks stay, and so does
// what an agent that is held, or was just resumed, may get again (SPEC S6.3). Costs stay for ever: they are accounts.
var histories = []history{
	{
		name: "runs", age: historyAge, count: func(r *domain.Removed) *int { return &r.Runs },
		query: `
SELECT x.id
FROM agent_lanes l
JOIN workspaces w ON w.id = l.workspace_id
JOIN agents a ON a.id = l.agent_id
CROSS JOIN LATERAL (
  SELECT x.id FROM runs x WHERE x.agent_id = l.agent_id AND x.finished_at < ` + beforeLookback + `
    -- the newest of each agent stay, however old they are
    AND x.finished_at < (
      SELECT n.finished_at
      FROM runs n
      WHERE n.agent_id = l.agent_id AND n.finished_at IS NOT NULL
      ORDER BY n.finished_at DESC OFFSET $3 - 1
      LIMIT 1)
    AND NOT ` + openTask + `
    -- a resume may send again what was queued when the agent was held
    AND (coalesce(x.finished_at < least(l.paused_at, l.resend_from), true) OR a.deleted_at IS NOT NULL)
  ORDER BY x.finished_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `,
d1 AS (DELETE FROM run_log_pieces WHERE run_id IN (SELECT id FROM old)),
d2 AS (DELETE FROM run_events WHERE run_id IN (SELECT id FROM old)),
d3 AS (DELETE FROM run_contents WHERE run_id IN (SELECT id FROM old)),
d4 AS (DELETE FROM run_attempts WHERE run_id IN (SELECT id FROM old)),
d7 AS (DELETE FROM run_working_copies WHERE run_id IN (SELECT id FROM old)),
d8 AS (DELETE FROM links WHERE run_id IN (SELECT id FROM old)),
d5 AS (DELETE FROM budget_holds WHERE run_id IN (SELECT id FROM old)),
d6 AS (DELETE FROM wakeup_requests WHERE run_id IN (SELECT id FROM old) AND finished_at IS NOT NULL)
DELETE FROM runs WHERE id IN (SELECT id FROM old)`,
	},
	{
		name: "requests without a run", age: historyAge, count: func(r *domain.Removed) *int { return &r.Requests },
		query: `
SELECT x.id FROM workspaces w CROSS JOIN LATERAL (
  SELECT x.id
  FROM wakeup_requests x
  WHERE x.workspace_id = w.id AND x.run_id IS NULL AND x.put_by_at < ` + beforeLookback + `
    AND x.put_by_at < (
      SELECT n.put_by_at
      FROM wakeup_requests n
      WHERE n.workspace_id = w.id AND n.run_id IS NULL AND n.put_by_at IS NOT NULL
      ORDER BY n.put_by_at DESC OFFSET $3 - 1 LIMIT 1)
    AND NOT ` + openTask + `
  ORDER BY x.put_by_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `DELETE FROM wakeup_requests WHERE id IN (SELECT id FROM old) AND finished_at IS NOT NULL`,
	},
	{
		name: "activity", age: historyAge, count: func(r *domain.Removed) *int { return &r.Activities },
		query: `
SELECT x.id FROM workspaces w CROSS JOIN LATERAL (
  SELECT x.id FROM activities x WHERE x.workspace_id = w.id AND x.occurred_at < ` + beforeLookback + `
    AND x.occurred_at < (
      SELECT n.occurred_at
      FROM activities n
      WHERE n.workspace_id = w.id
      ORDER BY n.occurred_at DESC OFFSET $3 - 1
      LIMIT 1)
  ORDER BY x.occurred_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `DELETE FROM activities WHERE id IN (SELECT id FROM old)`,
	},
	{
		name: "handled inbox items", age: historyAge, count: func(r *domain.Removed) *int { return &r.InboxItems },
		query: `
SELECT x.id FROM workspaces w CROSS JOIN LATERAL (
  SELECT x.id FROM inbox_items x WHERE x.workspace_id = w.id AND x.resolved_at < ` + oldest + `
    AND x.created_at < (
      SELECT n.created_at
      FROM inbox_items n
      WHERE n.workspace_id = w.id
      ORDER BY n.created_at DESC OFFSET $3 - 1
      LIMIT 1)
  ORDER BY x.created_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `DELETE FROM inbox_items WHERE id IN (SELECT id FROM old) AND resolved_at IS NOT NULL`,
	},
	{
		name: "webhook deliveries", age: historyAge, count: func(r *domain.Removed) *int { return &r.Deliveries },
		query: `
SELECT x.id FROM routine_triggers o CROSS JOIN LATERAL (
  SELECT x.id FROM webhook_deliveries x WHERE x.trigger_id = o.id AND x.created_at < ` + oldest + `
    AND x.created_at < (
      SELECT n.created_at
      FROM webhook_deliveries n
      WHERE n.trigger_id = o.id
      ORDER BY n.created_at DESC OFFSET $3 - 1
      LIMIT 1)
  ORDER BY x.created_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM old)`,
	},
	{
		name: "tests of notification channels", age: historyAge, count: func(r *domain.Removed) *int { return &r.NotificationTests },
		query: `
SELECT x.id FROM notification_channels o CROSS JOIN LATERAL (
  SELECT x.id FROM notification_deliveries x WHERE x.channel_id = o.id AND x.notification_id IS NULL AND x.created_at < ` + oldest + `
    AND x.created_at < (
      SELECT n.created_at
      FROM notification_deliveries n
      WHERE n.channel_id = o.id
      ORDER BY n.created_at DESC OFFSET $3 - 1
      LIMIT 1)
  ORDER BY x.created_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `DELETE FROM notification_deliveries WHERE id IN (SELECT id FROM old)`,
	},
	{
		name: "notifications", age: historyAge, count: func(r *domain.Removed) *int { return &r.Notifications },
		query: `
SELECT x.id FROM notification_channels o CROSS JOIN LATERAL (
  SELECT x.id FROM notifications x WHERE x.channel_id = o.id AND x.ended_at < ` + oldest + `
    AND x.ended_at < (
      SELECT n.ended_at
      FROM notifications n
      WHERE n.channel_id = o.id AND n.ended_at IS NOT NULL
      ORDER BY n.ended_at DESC OFFSET $3 - 1
      LIMIT 1)
  ORDER BY x.ended_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `,
d1 AS (DELETE FROM notification_deliveries WHERE notification_id IN (SELECT id FROM old))
DELETE FROM notifications WHERE id IN (SELECT id FROM old) AND ended_at IS NOT NULL`,
	},
	{
		name: "routine runs", age: func(r domain.Retention) time.Duration { return r.RoutineRuns }, count: func(r *domain.Removed) *int { return &r.RoutineRuns },
		query: `
SELECT x.id FROM routines o JOIN workspaces w ON w.id = o.workspace_id CROSS JOIN LATERAL (
  SELECT x.id
  FROM routine_runs x
  WHERE x.routine_id = o.id
    AND x.started_at < ` + beforeLookback + `
    AND x.completed_at < ` + beforeLookback + `
    AND x.started_at < (
      SELECT n.started_at
      FROM routine_runs n
      WHERE n.routine_id = o.id
      ORDER BY n.started_at DESC OFFSET $3 - 1
      LIMIT 1)
    AND NOT ` + openTask + `
    AND NOT EXISTS (
      SELECT 1
      FROM wakeup_requests q
      JOIN runs r ON r.id = q.run_id
      WHERE q.routine_run_id = x.id)
  ORDER BY x.started_at LIMIT $2{lock}) x LIMIT $2`,
		drop: `DELETE FROM routine_runs WHERE id IN (SELECT id FROM old) AND completed_at IS NOT NULL`,
	},
	{
		name: "mutation keys", age: domain.Retention.MutationKeys, count: func(r *domain.Removed) *int { return &r.MutationKeys },
		query: `
SELECT x.id
FROM mutation_keys x
WHERE x.created_at < ` + oldest + ` AND $3 > 0
ORDER BY x.created_at
LIMIT $2{lock}`,
		drop: `DELETE FROM mutation_keys WHERE id IN (SELECT id FROM old)`,
	},
}

// all is the query for what is too old; free is that for what no other process removes at this moment, locked.
func (h history) all() string { return strings.Replace(h.query, "{lock}", "", 1) }
func (h history) free() string {
	return strings.Replace(h.query, "{lock}", " FOR UPDATE OF x SKIP LOCKED", 1)
}

func historyAge(r domain.Retention) time.Duration { return r.History }

// Prune removes one small batch of each kind of history that has become too old, each batch in a transaction of its
// own. What cannot be removed does not stop the rest, and the error joins what went wrong. more says that a batch was
// full and something of it was removed, so that another call finds more. Several processes may prune at once.
func (s *Records) Prune(ctx context.Context, r domain.Retention) (removed domain.Removed, more bool, err error) {
	var problems []error
	for _, h := range histories {
		age := h.age(r)
		if age == 0 {
			continue
		}
		n, full, failed := s.pruneBatch(ctx, h, age)
		*h.count(&removed) = n
		more = more || full && n > 0
		if problems = append(problems, failed...); pgtx.EndsAll(ctx, errors.Join(failed...)) {
			return removed, false, errors.Join(problems...)
		}
	}
	return removed, more, errors.Join(problems...)
}

// pruneBatch removes the oldest rows of a kind together. When one of them cannot be removed, it bisects.
func (s *Records) pruneBatch(ctx context.Context, h history, age time.Duration) (removed int, full bool, failed []error) {
	err := s.inTx(ctx, func(t *tx) error {
		n, err := pgtx.Exec(ctx, t, `WITH old AS MATERIALIZED (`+h.free()+`)`+h.drop, age.Milliseconds(), retentionBatch, domain.RetentionFloor)
		removed = int(n)
		return err
	})
	if err == nil {
		return removed, removed == retentionBatch, nil
	}
	if pgtx.EndsAll(ctx, err) {
		return 0, false, []error{fmt.Errorf("remove old %s: %w", h.name, err)}
	}
	return s.pruneBisecting(ctx, h, age)
}

// pruneBisecting bisects what pruneBatch could not remove. Each row is judged again, as the others are.
func (s *Records) pruneBisecting(ctx context.Context, h history, age time.Duration) (removed int, full bool, failed []error) {
	old, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], h.all(), age.Milliseconds(), retentionBatch, domain.RetentionFloor)
	if err != nil {
		return 0, false, []error{fmt.Errorf("list old %s: %w", h.name, err)}
	}
	failed = pgtx.Bisect(ctx, old, func(some []xid.ID) error {
		n := int64(0)
		err := s.inTx(ctx, func(t *tx) (err error) {
			const those = `WITH old AS MATERIALIZED (SELECT id FROM (%s) o WHERE id = ANY($4))`
			n, err = pgtx.Exec(ctx, t, fmt.Sprintf(those, h.free())+h.drop, age.Milliseconds(), retentionBatch, domain.RetentionFloor, pgtx.IDs(some))
			return err
		})
		if err == nil {
			removed += int(n)
		}
		return err
	}, func(some []xid.ID, err error) error {
		return fmt.Errorf("remove old %s: %s: %w", h.name, pgtx.Named("row", some), err)
	})
	return removed, len(old) == retentionBatch, failed
}

// Prunable counts what Prune would remove in the end, and removes nothing.
func (s *Records) Prunable(ctx context.Context, r domain.Retention) (would domain.Removed, err error) {
	for _, h := range histories {
		age := h.age(r)
		if age == 0 {
			continue
		}
		n, err := pgtx.QueryOne[int](ctx, s.db, `SELECT count(*) FROM (`+h.all()+`) old`, age.Milliseconds(), nil, domain.RetentionFloor)
		if err != nil {
			return would, fmt.Errorf("count old %s: %w", h.name, err)
		}
		*h.count(&would) = n
	}
	return would, nil
}
