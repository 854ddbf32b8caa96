package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// fireQueue is the state that fires of several routines are decided on, after their lanes' locks (SPEC S4.6). It follows
// what is decided, so that each fire finds those before it.
type fireQueue struct {
	active map[xid.ID]xid.ID          // of a routine: the oldest active fire with the fingerprint asked for
	waits  map[xid.ID]domain.FireWait // of a routine: what that fire waits for; "": nothing
	queued map[xid.ID]int             // of an agent: queued runs, for the backlog bound
}

// facts are those of a routine's next fire.
func (q *fireQueue) facts(r *routineRow, f domain.FireFacts) domain.FireFacts {
	f.RoutineID, f.RoutineStatus, f.AgentGone = string(r.id), r.status, r.agentGone
	f.Heavy, f.Policy = r.template != nil, r.policy
	f.RoutineRunID = string(xid.New("rrn"))
	f.ActiveRoutineRun, f.ActiveWait, f.QueuedRuns = string(q.active[r.id]), q.waits[r.id], q.queued[r.assigneeID]
	return f
}

// note takes in that a fire was decided.
func (q *fireQueue) note(r *routineRow, f domain.FireFacts, plan domain.FirePlan) {
	f = f.Then(plan)
	q.active[r.id], q.queued[r.assigneeID] = xid.ID(f.ActiveRoutineRun), f.QueuedRuns
}

// awaitsRun says in SQL that something about the task k is on its way to a run, though no run has it: it is unrouted, or its
// guard dropped it and it is sent again once the task is free or the agent is resumed (SPEC S6.3, S5.6).
const awaitsRun = `EXISTS (SELECT 1 FROM wakeup_requests u WHERE u.task_id = k.id AND (u.status = 'QUEUED' AND u.run_id IS NULL
    OR u.status = 'SKIPPED' AND u.end_reason = 'CHECKOUT_HELD' AND k.checkout_run_id IS NOT NULL
    OR u.end_reason IN ('AGENT_INACTIVE', 'BUDGET_BLOCKED') AND u.wake_class = 'EVENT' AND EXISTS (
      SELECT 1 FROM agent_lanes l JOIN agents a ON a.id = l.agent_id
      WHERE l.agent_id = u.agent_id AND u.finished_at >= least(l.paused_at, l.resend_from) AND a.deleted_at IS NULL)))`

// hasRun says in SQL that a run of the task k is queued or live.
const hasRun = `EXISTS (SELECT 1 FROM runs o WHERE o.task_id = k.id AND o.status IN ('QUEUED', 'CLAIMED'))`

// openBlocker and openApproval say in SQL that the task k has one.
var (
	openBlocker  = `EXISTS (SELECT 1 FROM task_blockers b JOIN tasks x ON x.id = b.blocker_id WHERE b.task_id = k.id AND ` + isOpen("x") + `)`
	openApproval = `EXISTS (SELECT 1 FROM approvals p WHERE p.task_id = k.id AND p.status = 'PENDING')`
)

// longParked says in SQL that a run is parked for one of domain.LongParked.
var longParked = `parked_reason IN ('` + joined(domain.LongParked, "', '") + `')`

func joined[T ~string](list []T, between string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return strings.Join(texts, between)
}

// fireQueueQuery reads a fireQueue. A heavy fire's work is whatever is about its task: of its runs the one that is to come
// first, so that one which is parked for long hides none that is not.
var fireQueueQuery = `
WITH queued AS MATERIALIZED (
  SELECT a.id, (SELECT count(*) FROM (SELECT 1 FROM runs WHERE agent_id = a.id AND status = 'QUEUED' LIMIT $5) AS few) AS n
  FROM (SELECT DISTINCT unnest($1::text[])) AS a (id))
SELECT x.routine, x.agent, queued.n, f.id, f.status = 'TASK_CREATED' OR f.task_id IS NOT NULL,
  CASE WHEN f.task_id IS NULL THEN coalesce(q.status = 'QUEUED' AND q.run_id IS NULL, false) ELSE k.id IS NOT NULL AND ` + awaitsRun + ` END,
  coalesce(r.status, ''), coalesce(r.parked_reason, ''), coalesce(r.parked_until IS NULL OR r.parked_until > $6, false),
  coalesce(k.state, ''), coalesce(k.archived_at IS NOT NULL OR k.deleted_at IS NOT NULL, false),
  k.id IS NOT NULL AND ` + openBlocker + `, k.id IS NOT NULL AND ` + openApproval + `
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS x (agent, routine, fingerprint, asked) JOIN queued ON queued.id = x.agent
LEFT JOIN LATERAL (
  SELECT id, status, task_id, started_at FROM routine_runs
  WHERE routine_id = x.routine AND dispatch_fingerprint = x.fingerprint AND completed_at IS NULL AND x.asked OFFSET 0) AS f ON true
LEFT JOIN LATERAL (SELECT status, run_id FROM wakeup_requests WHERE routine_run_id = f.id AND f.task_id IS NULL OFFSET 0) AS q ON true
LEFT JOIN tasks k ON k.id = f.task_id
LEFT JOIN LATERAL (
  SELECT status, parked_reason, parked_until FROM runs WHERE id = q.run_id
  UNION ALL
  (SELECT status, parked_reason, parked_until FROM runs WHERE task_id = k.id AND status IN ('QUEUED', 'CLAIMED')
   ORDER BY coalesce(` + longParked + `, false) LIMIT 1) OFFSET 0) AS r ON true
ORDER BY f.started_at, f.id`

// readFireQueue finds, for each routine with its fingerprint, the oldest fire whose work has not ended, with what it waits for,
// and for each agent how many runs it has queued, in one statement. ALWAYS_ENQUEUE asks for no active fire, and may have a
// thousand.
func (t *tx) readFireQueue(ctx context.Context, fingerprints map[*routineRow]string) (*fireQueue, error) {
	var agents, routines []xid.ID
	var marks []string
	var asked []bool
	for r, mark := range fingerprints {
		agents, routines, marks = append(agents, r.assigneeID), append(routines, r.id), append(marks, mark)
		asked = append(asked, r.policy != domain.ConcurrencyPolicyAlwaysEnqueue)
	}
	q := &fireQueue{active: map[xid.ID]xid.ID{}, waits: map[xid.ID]domain.FireWait{}, queued: map[xid.ID]int{}}
	_, err := collect(ctx, t, q.scan, fireQueueQuery, ids(agents), ids(routines), textArray(marks), boolArray(asked), domain.MaxBacklog+1, t.now.Add(domain.StrandedGrace))
	if err != nil {
		return nil, fmt.Errorf("read the queue before a fire: %w", err)
	}
	return q, nil
}

// scan takes in one fire of a routine, or that it has none.
func (q *fireQueue) scan(rows *sql.Rows) (struct{}, error) {
	f, err := scanFire(rows)
	q.queued[f.agent] = f.queued
	if f.id != "" && f.work.Active() && q.active[f.routine] == "" {
		q.active[f.routine], q.waits[f.routine] = f.id, f.work.Waits()
	}
	return struct{}{}, err
}

// queuedFire is a row of fireQueueQuery: a fire of a routine that has not ended, "" for none, with its work.
type queuedFire struct {
	routine, agent, id xid.ID
	queued             int // runs of the agent
	work               domain.FireWork
}

func scanFire(rows *sql.Rows) (f queuedFire, err error) {
	var heavy *bool
	w := &f.work
	err = rows.Scan(&f.routine, &f.agent, &f.queued, &f.id, &heavy, &w.RequestUnrouted, &w.RunStatus, &w.Parked, &w.ParkedLong, &w.TaskState, &w.TaskArchived,
		&w.OpenBlocker, &w.OpenApproval)
	w.Heavy = heavy != nil && *heavy
	return f, err
}
