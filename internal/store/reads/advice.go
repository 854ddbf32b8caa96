package reads

import (
	"context"
	"database/sql"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// RoutineAdvice reads the facts for advice about several routines, in one query.
func (s *Reads) RoutineAdvice(ctx context.Context, routineIDs []xid.ID) (map[xid.ID]*domain.RoutineAdviceFacts, error) {
	query := `
-- $1 routines, $2 the error of schedules that are over, $3 the time between two looks at a schedule, in milliseconds
SELECT r.id, r.task_template IS NOT NULL, t.scheduled, t.unattended, t.unused, t.over, t.short,
  a.name, a.deleted_at IS NOT NULL, l.status, a.skip_idle_wakeups,
  EXISTS (SELECT 1 FROM tasks x WHERE x.assignee_id = a.id AND ` + guard.TaskActionable + `),
  e.spec IS NOT NULL, coalesce(e.spec ? 'echo', false),
  EXISTS (
    SELECT 1
    FROM budget_policies b
    WHERE b.workspace_id = r.workspace_id AND (b.subject_kind, b.subject_id) IN (
      ('WORKSPACE', r.workspace_id), ('AGENT', a.id), ('PROJECT', r.task_template ->> 'project_id')))
FROM routines r
JOIN agents a ON a.id = r.assignee_id
JOIN agent_lanes l ON l.agent_id = a.id
JOIN workspaces w ON w.id = r.workspace_id
LEFT JOIN projects p ON p.id = r.task_template ->> 'project_id' AND p.deleted_at IS NULL
CROSS JOIN LATERAL (SELECT coalesce(a.executor, p.executor, w.default_executor) AS spec) e
CROSS JOIN LATERAL (
  SELECT coalesce(bool_or(enabled AND kind = 'SCHEDULE'), false) AS scheduled,
    coalesce(bool_or(enabled AND kind <> 'MANUAL'), false) AS unattended,
    coalesce(bool_or(signing_mode = 'NONE' AND secret_sealed IS NOT NULL), false) AS unused,
    coalesce(bool_or(kind = 'SCHEDULE' AND NOT enabled AND error = $2), false) AS over,
    coalesce(bool_or(kind = 'SCHEDULE' AND start_deadline_ms < $3), false) AS short
  FROM routine_triggers
  WHERE routine_id = r.id AND deleted_at IS NULL) t
WHERE r.id = ANY($1)`
	found := make(map[xid.ID]*domain.RoutineAdviceFacts, len(routineIDs))
	_, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		f := &domain.RoutineAdviceFacts{}
		err := rows.Scan(&id, &f.Heavy, &f.Scheduled, &f.Unattended, &f.UnusedSecret, &f.NeverFires, &f.ShortDeadline, &f.Agent, &f.AgentGone, &f.AgentStatus, &f.SkipsIdle,
			&f.HasTask, &f.Executor, &f.Echo, &f.Budget)
		found[id] = f
		return struct{}{}, err
	}, query, pgtx.IDs(routineIDs), domain.NoSlotLeft, domain.TickInterval.Milliseconds())
	return found, pgtx.Wrap("read what to advise of routines", err)
}

// AgentAdvice reads the facts for advice about an agent.
func (s *Reads) AgentAdvice(ctx context.Context, agentID xid.ID) (f domain.AgentAdviceFacts, err error) {
	const query = `
-- $1 agent
SELECT a.name, a.skip_idle_wakeups, h.n, coalesce(h.name, ''), e.spec IS NOT NULL, coalesce(e.spec ? 'echo', false),
  EXISTS (
    SELECT 1
    FROM budget_policies b
    WHERE b.workspace_id = a.workspace_id
      AND (b.subject_kind, b.subject_id) IN (('WORKSPACE', a.workspace_id), ('AGENT', a.id)))
FROM agents a
JOIN workspaces w ON w.id = a.workspace_id
CROSS JOIN LATERAL (SELECT coalesce(a.executor, w.default_executor) AS spec) e
CROSS JOIN LATERAL (
  SELECT count(*) AS n, min(r.name) AS name
  FROM routines r
  WHERE r.assignee_id = a.id AND r.status = 'ACTIVE' AND r.deleted_at IS NULL AND r.task_template IS NULL
    AND EXISTS (
      SELECT 1
      FROM routine_triggers t
      WHERE t.routine_id = r.id AND t.kind = 'SCHEDULE' AND t.enabled AND t.deleted_at IS NULL)) h
WHERE a.id = $1`
	err = pgtx.QueryRow(ctx, s.pool, []any{&f.Name, &f.SkipsIdle, &f.Heartbeats, &f.Heartbeat, &f.Executor, &f.Echo, &f.Budget}, query, agentID)
	return f, pgtx.Wrap("read what to advise of an agent", err)
}

// AdvisedRoutine is an active routine with the facts for advice.
type AdvisedRoutine struct {
	ID   xid.ID
	Name string
	domain.RoutineAdviceFacts
}

// maxAdvised bounds the routines of a workspace that are looked at for advice.
const maxAdvised = 1000

// AdvisedRoutines reads the facts about a workspace's active routines, the oldest maxAdvised of them.
func (s *Reads) AdvisedRoutines(ctx context.Context, workspaceID xid.ID) ([]AdvisedRoutine, error) {
	const query = `
SELECT id, name FROM routines
WHERE workspace_id = $1 AND status = 'ACTIVE' AND deleted_at IS NULL ORDER BY created_at, id LIMIT $2`
	list, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (r AdvisedRoutine, err error) {
		return r, rows.Scan(&r.ID, &r.Name)
	}, query, workspaceID, maxAdvised)
	if err != nil {
		return nil, pgtx.Wrap("list active routines", err)
	}
	ids := make([]xid.ID, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	facts, err := s.RoutineAdvice(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if f := facts[list[i].ID]; f != nil {
			list[i].RoutineAdviceFacts = *f
		}
	}
	return list, nil
}
