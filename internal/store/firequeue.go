package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// fireQueue is the state that fires of several routines are decided on, after their lanes' locks (SPEC S4.6). It follows
// what is decided, so that each fire finds those before it.
type fireQueue struct {
	active map[xid.ID]xid.ID // of a routine: the oldest active fire with the fingerprint asked for
	queued map[xid.ID]int    // of an agent: queued runs, for the backlog bound
}

// facts are those of a routine's next fire.
func (q *fireQueue) facts(r *routineRow, f domain.FireFacts) domain.FireFacts {
	f.RoutineID, f.RoutineStatus, f.AgentGone = string(r.id), r.status, r.agentGone
	f.Heavy, f.Policy = r.template != nil, r.policy
	f.RoutineRunID = string(xid.New("rrn"))
	f.ActiveRoutineRun, f.QueuedRuns = string(q.active[r.id]), q.queued[r.assigneeID]
	return f
}

// note takes in that a fire was decided.
func (q *fireQueue) note(r *routineRow, f domain.FireFacts, plan domain.FirePlan) {
	f = f.Then(plan)
	q.active[r.id], q.queued[r.assigneeID] = xid.ID(f.ActiveRoutineRun), f.QueuedRuns
}

// fireQueueQuery reads a fireQueue.
const fireQueueQuery = `
WITH queued AS MATERIALIZED (
  SELECT a.id, (SELECT count(*) FROM (SELECT 1 FROM runs WHERE agent_id = a.id AND status = 'QUEUED' LIMIT $5) AS few) AS n
  FROM (SELECT DISTINCT unnest($1::text[])) AS a (id))
SELECT x.routine, x.agent, queued.n, f.id, f.status = 'TASK_CREATED' OR f.task_id IS NOT NULL, coalesce(q.status = 'QUEUED' AND q.run_id IS NULL, false),
  coalesce(r.status, ''), coalesce(k.state, ''), coalesce(k.archived_at IS NOT NULL OR k.deleted_at IS NOT NULL, false)
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS x (agent, routine, fingerprint, asked) JOIN queued ON queued.id = x.agent
LEFT JOIN LATERAL (
  SELECT id, status, task_id, started_at FROM routine_runs
  WHERE routine_id = x.routine AND dispatch_fingerprint = x.fingerprint AND completed_at IS NULL AND x.asked OFFSET 0) AS f ON true
LEFT JOIN wakeup_requests q ON q.routine_run_id = f.id LEFT JOIN runs r ON r.id = q.run_id LEFT JOIN tasks k ON k.id = f.task_id
ORDER BY f.started_at, f.id`

// readFireQueue finds, for each routine with its fingerprint, the oldest fire whose work has not ended, and for each agent how
// many runs it has queued, in one statement. A fire that made a task is as active as its task. ALWAYS_ENQUEUE asks for no
// active fire, and may have a thousand.
func (t *tx) readFireQueue(ctx context.Context, fingerprints map[*routineRow]string) (*fireQueue, error) {
	var agents, routines []xid.ID
	var marks []string
	var asked []bool
	for r, mark := range fingerprints {
		agents, routines, marks = append(agents, r.assigneeID), append(routines, r.id), append(marks, mark)
		asked = append(asked, r.policy != domain.ConcurrencyPolicyAlwaysEnqueue)
	}
	q := &fireQueue{active: map[xid.ID]xid.ID{}, queued: map[xid.ID]int{}}
	_, err := collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var routine, agent, fire xid.ID
		var queued int
		var heavy *bool
		var work domain.FireWork
		err = rows.Scan(&routine, &agent, &queued, &fire, &heavy, &work.RequestUnrouted, &work.RunStatus, &work.TaskState, &work.TaskArchived)
		q.queued[agent] = queued
		work.Heavy = heavy != nil && *heavy
		if fire != "" && work.Active() && q.active[routine] == "" {
			q.active[routine] = fire
		}
		return struct{}{}, err
	}, fireQueueQuery, ids(agents), ids(routines), textArray(marks), boolArray(asked), domain.MaxBacklog+1)
	if err != nil {
		return nil, fmt.Errorf("read the queue before a fire: %w", err)
	}
	return q, nil
}
