package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
)

// actor is who did something: a person (by the id of the token that was used), an agent, or a component of the scheduler.
type actor struct {
	kind domain.AuthorKind
	name string
}

// localUser is who acts where no token is asked (--auth none), and acted on a loopback address before tokens were.
const localUser = "local"

// system is a component of the scheduler.
func system(component string) actor { return actor{domain.AuthorKindSystem, component} }

// callerOr is the caller whom the API put into ctx; without one, the scheduler's component acts by itself.
func callerOr(ctx context.Context, component string) actor {
	caller, ok := auth.FromContext(ctx)
	switch {
	case !ok || caller.Kind == "":
		return system(component)
	case caller.Kind == auth.KindRun:
		return actor{domain.AuthorKindAgent, string(caller.AgentID)}
	case caller.Kind == auth.KindToken:
		return actor{domain.AuthorKindUser, string(caller.TokenID)}
	}
	return actor{domain.AuthorKindUser, localUser}
}

// entry is a line of the workspace's feed. subjectID names the record it is about; agentID and taskID are what the feed
// can be narrowed to. Data may be nil: agent and task are always among the details (domain.ActivityDetailsOf).
type entry struct {
	workspaceID                             xid.ID
	code                                    domain.ActivityCode
	by                                      actor
	summary                                 string
	subjectID, agentID, taskID, causationID xid.ID
	data                                    map[string]any
}

// details are the entry's data for programs, with the agent and the task that it concerns under the names that readers compare.
func (e entry) details() map[string]any {
	all := map[string]any{}
	if e.agentID != "" {
		all["agent"] = e.agentID
	}
	if e.taskID != "" {
		all["task_id"] = e.taskID
	}
	maps.Copy(all, e.data)
	return all
}

// activityInto begins every insertion into the feed, also those that are part of a larger statement.
const activityInto = `
INSERT INTO activities (id, workspace_id, code, summary, actor_kind, actor, subject_id, agent_id, task_id, data, causation_id, occurred_at)`

// note appends an entry to the feed, at the instant of the transaction if it has read the clock.
func (t *tx) note(ctx context.Context, e entry) error {
	encoded, err := encodeData(e.details())
	if err != nil {
		return err
	}
	const query = activityInto + ` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, coalesce($12::timestamptz, clock_timestamp()))`
	err = execOne(ctx, t, query, xid.New("act"), e.workspaceID, e.code, e.summary, e.by.kind, e.by.name, e.subjectID, e.agentID, e.taskID, encoded, e.causationID, nullableTime(t.now))
	if err != nil {
		return fmt.Errorf("append activity %s: %w", e.code, err)
	}
	t.fed(e.workspaceID)
	return nil
}

// fed tells those who follow the feed that there is something new in it.
func (t *tx) fed(workspaceID xid.ID) {
	t.publish(event.Event{Kind: event.Activity, WorkspaceID: workspaceID, ID: workspaceID})
}

// activity appends an entry about a run.
func (t *tx) activity(ctx context.Context, run runRow, code domain.ActivityCode, by actor, summary string, data map[string]any) error {
	return t.note(ctx, entry{workspaceID: run.workspaceID, code: code, by: by, summary: summary, subjectID: run.id, agentID: run.agentID,
		taskID: run.taskID, causationID: run.causationID, data: data})
}

// noteRequests appends one entry for each of an agent's requests, in one statement, and writes as many lines into the log.
// reason says why they ended; "" where they did not. The details are those that the feed's readers compare: reason, task_id
// and agent, of a retry that was cancelled old_agent, who was to try again.
func (t *tx) noteRequests(ctx context.Context, workspaceID xid.ID, requests []xid.ID, code domain.ActivityCode, by actor, summary string, reason domain.EndReason) error {
	if len(requests) == 0 {
		return nil
	}
	const query = activityInto + `
SELECT n.id, q.workspace_id, $3, $4, $5, $6, q.id, q.agent_id, q.task_id, jsonb_strip_nulls(jsonb_build_object('reason', NULLIF($8::text, ''), 'task_id', q.task_id,
  'agent', q.agent_id, 'old_agent', CASE WHEN $9::boolean THEN q.agent_id END)), q.causation_id, $7
FROM unnest($1::text[], $2::text[]) AS n (id, request) JOIN wakeup_requests q ON q.id = n.request RETURNING subject_id, agent_id, causation_id`
	noted, err := collect(ctx, t, func(rows *sql.Rows) ([]any, error) {
		var request, agent, causation xid.ID
		err := rows.Scan(&request, &agent, &causation)
		return []any{"wakeup_id", request, "agent_id", agent, "workspace_id", workspaceID, "causation_id", causation}, err
	}, query, ids(newIDs("act", len(requests))), ids(requests), code, summary, by.kind, by.name, t.now, string(reason), code == domain.ActivityCodeWakeupRetryCancelled)
	if err != nil {
		return fmt.Errorf("append activities %s: %w", code, err)
	}
	t.onCommit(func(s *Store) {
		for _, keys := range noted {
			s.tell(code, reason, keys...)
		}
	})
	t.fed(workspaceID)
	return nil
}

// tellDropped writes a line into the log for each of a run's requests that ended without a launch.
func (t *tx) tellDropped(run runRow, requests []xid.ID, code domain.ActivityCode, reason domain.EndReason) {
	t.onCommit(func(s *Store) {
		for _, request := range requests {
			s.tell(code, reason, keysOf(run, "wakeup_id", request)...)
		}
	})
}

// noActionableTasks is why an idle agent is not launched, as the log spells it.
const noActionableTasks = "no_actionable_tasks"

// tellSettled is tellDropped for a run that was settled. The line of an idle skip names the agent, for those who read logs
// alone.
func (t *tx) tellSettled(ctx context.Context, run runRow, requests []xid.ID, s domain.Settlement) error {
	if s.Activity != domain.ActivityCodeWakeupIdleSkipped {
		t.tellDropped(run, requests, s.Activity, s.Reason)
		return nil
	}
	name, err := queryOne[string](ctx, t, `SELECT name FROM agents WHERE id = $1`, run.agentID)
	if err != nil {
		return fmt.Errorf("read the agent's name: %w", err)
	}
	t.onCommit(func(s *Store) {
		for _, request := range requests {
			s.log.Info("wakeup_idle_skipped", keysOf(run, "wakeup_id", request, "agent_name", name, "reason", noActionableTasks)...)
		}
	})
	return nil
}

// tell writes the line that goes with an entry of the feed, in the log's own spelling: a wake was dropped, or sent again.
func (s *Store) tell(code domain.ActivityCode, reason domain.EndReason, keys ...any) {
	if reason != "" {
		keys = append(keys, "reason", strings.ToLower(string(reason)))
	}
	s.log.Info(strings.ToLower(string(code)), keys...)
}

// newIDs makes n ids in rising order.
func newIDs(prefix string, n int) []xid.ID {
	list := make([]xid.ID, n)
	for i := range list {
		list[i] = xid.New(prefix)
	}
	return list
}

// ActivityPosition is a place in the workspace's log: after the entry of this transaction and id. ID "" is before every
// entry of the transaction.
type ActivityPosition struct {
	Tx int64
	ID xid.ID
}

// ActivityHead is the position that follows everything which can be read in order now. What was visible before it was
// taken may lie after it, while an older transaction is still running: never the other way round.
func (s *Store) ActivityHead(ctx context.Context) (ActivityPosition, error) {
	horizon, err := queryOne[int64](ctx, s.reads, `SELECT `+activityHorizon)
	if err != nil {
		return ActivityPosition{}, fmt.Errorf("read the head of the log: %w", err)
	}
	return ActivityPosition{Tx: horizon}, nil
}

// activityHorizon is the oldest transaction that may still append an entry: entries of those before it are all there. A
// transaction of another database, or of an account that may not write here, appends none: one that stays open holds nobody's
// feed up. A second account that may write is another server's, or ours before its credentials were changed. The session's
// own account counts whatever it may: it may have taken on a role. Those that have ended since the statement's snapshot
// cannot be told from ours, and hold the feed up until the next look.
const activityHorizon = `(SELECT coalesce(min(x::text::bigint), pg_snapshot_xmax(pg_current_snapshot())::text::bigint) FROM pg_snapshot_xip(pg_current_snapshot()) x
  WHERE x::xid::text NOT IN (
    SELECT l.transactionid::text FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted AND (a.datname <> current_database() OR a.usename <> session_user AND NOT has_table_privilege(a.usesysid, 'activities', 'INSERT'))
    UNION ALL SELECT p.transaction::text FROM pg_prepared_xacts p WHERE p.database <> current_database() OR p.owner <> session_user AND NOT has_table_privilege(p.owner, 'activities', 'INSERT')))`

// ActivityAfter reads the workspace's log after a position, in its order (tx, id), at most limit entries. Only entries
// below the oldest transaction that may still append one are given, since it would be passed by otherwise; held says that
// others are there and wait for it.
func (s *Store) ActivityAfter(ctx context.Context, workspaceID xid.ID, after ActivityPosition, limit int) (entries []*ent.Activity, held bool, err error) {
	const query = `
WITH horizon AS MATERIALIZED (SELECT ` + activityHorizon + ` AS tx)
SELECT id, tx, code, summary, actor_kind, actor, subject_id, agent_id, task_id, data, causation_id, occurred_at, tx < (SELECT tx FROM horizon)
FROM activities WHERE workspace_id = $1 AND (tx, id) > ($2, $3) ORDER BY tx, id LIMIT $4`
	all, err := collect(ctx, s.reads, func(rows *sql.Rows) (*ent.Activity, error) {
		a := &ent.Activity{WorkspaceID: workspaceID}
		var settled bool
		err := rows.Scan(&a.ID, &a.Tx, &a.Code, &a.Summary, &a.ActorKind, &a.Actor, &a.SubjectID, &a.AgentID, &a.TaskID, &a.Data, &a.CausationID, &a.OccurredAt, &settled)
		if !settled {
			held = true
			return nil, err
		}
		return a, err
	}, query, workspaceID, after.Tx, string(after.ID), limit)
	if err != nil {
		return nil, false, fmt.Errorf("read the log: %w", err)
	}
	for _, a := range all {
		if a != nil {
			entries = append(entries, a)
		}
	}
	return entries, held, nil
}
