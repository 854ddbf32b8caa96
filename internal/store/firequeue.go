package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// fireQueue is the state that fires of several routines are decided on, after their lanes' locks (SPEC S4.6). It follows
// what is decided, so that each fire finds those before it.
type fireQueue struct {
	active map[fireMark]xid.ID          // the oldest active fire of its kind
	waits  map[fireMark]domain.FireWait // what that fire waits for; "": nothing
	queued map[xid.ID]int               // of an agent: queued runs, for the backlog bound
}

// fireMark is a kind of fires: those of a routine with one fingerprint.
type fireMark struct {
	routineID   xid.ID
	fingerprint string
}

// markedRoutine is a routine with the fingerprint of a fire that is to be decided.
type markedRoutine struct {
	*routineRow
	fingerprint string
}

// facts are those of a routine's next fire.
func (q *fireQueue) facts(r *routineRow, f domain.FireFacts) domain.FireFacts {
	f.RoutineID, f.RoutineStatus, f.AgentGone, f.SkipsSlots = string(r.id), r.status, r.agentGone, r.skipsSlots
	f.Heavy, f.Policy = r.template != nil, r.policy
	f.RoutineRunID = string(xid.New("rrn"))
	mark := fireMark{r.id, f.Fingerprint}
	f.ActiveRoutineRun, f.ActiveWait, f.QueuedRuns = string(q.active[mark]), q.waits[mark], q.queued[r.assigneeID]
	return f
}

// note takes in that a fire was decided.
func (q *fireQueue) note(r *routineRow, f domain.FireFacts, plan domain.FirePlan) {
	f = f.Then(plan)
	q.active[fireMark{r.id, f.Fingerprint}], q.queued[r.assigneeID] = xid.ID(f.ActiveRoutineRun), f.QueuedRuns
}

// fireQueueQuery reads a fireQueue. A heavy fire's work is whatever is about its task: of its runs the one that is to come
// first, so that one which is parked for long hides none that is not.
var fireQueueQuery = `
-- $1 agents, $2 their routines, $3 fingerprints of the fires, $4 whether the policy asks for an active fire,
-- $5 most runs counted, $6 until when a parking is short
WITH queued AS MATERIALIZED (
  -- counted to the bound at which fires are dropped, and no further
  SELECT a.id, (
    SELECT count(*)
    FROM (SELECT 1 FROM runs WHERE agent_id = a.id AND status = 'QUEUED' LIMIT $5) AS few) AS n
  FROM (SELECT DISTINCT unnest($1::text[])) AS a (id))
SELECT x.routine, x.fingerprint, x.agent, queued.n, f.id, f.status = 'TASK_CREATED' OR f.task_id IS NOT NULL,
  CASE
    WHEN f.task_id IS NULL THEN coalesce(q.` + guard.Unrouted + `, false)
    ELSE k.id IS NOT NULL AND ` + guard.AwaitsRun + ` END,
  coalesce(r.status::text, ''), coalesce(r.parked_reason::text, ''),
  coalesce(r.parked_until IS NULL OR r.parked_until > $6, false),
  coalesce(k.state, ''), coalesce(k.archived_at IS NOT NULL OR k.deleted_at IS NOT NULL, false),
  k.id IS NOT NULL AND ` + guard.OpenBlocker + `,
  k.id IS NOT NULL AND ` + guard.OpenApproval + `
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS x (agent, routine, fingerprint, asked)
JOIN queued ON queued.id = x.agent
LEFT JOIN LATERAL (
  SELECT id, status, task_id, started_at FROM routine_runs
  WHERE routine_id = x.routine
    AND dispatch_fingerprint = x.fingerprint
    AND completed_at IS NULL
    AND x.asked
  OFFSET 0) AS f ON true -- OFFSET 0: looked up for each fire, never joined as a whole
LEFT JOIN LATERAL (
  SELECT unrouted, run_id
  FROM wakeup_requests
  WHERE routine_run_id = f.id AND f.task_id IS NULL
  OFFSET 0) AS q ON true
LEFT JOIN tasks k ON k.id = f.task_id
LEFT JOIN LATERAL (
  SELECT status, parked_reason, parked_until FROM runs WHERE id = q.run_id
  UNION ALL
  (SELECT status, parked_reason, parked_until FROM runs WHERE task_id = k.id AND status IN ('QUEUED', 'CLAIMED')
   ORDER BY coalesce(` + guard.LongParked + `, false) LIMIT 1)
  OFFSET 0) AS r ON true
ORDER BY f.started_at, f.id`

// readFireQueue finds, for each routine with its fingerprint, the oldest fire whose work has not ended, with what it waits for,
// and for each agent how many runs it has queued, in one statement. ALWAYS_ENQUEUE asks for no active fire, and may have a
// thousand.
func (t *tx) readFireQueue(ctx context.Context, of []markedRoutine) (*fireQueue, error) {
	var agents, routines []xid.ID
	var marks []string
	var asked []bool
	seen := map[fireMark]bool{}
	for _, r := range of {
		mark := fireMark{r.id, r.fingerprint}
		if seen[mark] {
			continue
		}
		seen[mark] = true
		agents, routines, marks = append(agents, r.assigneeID), append(routines, r.id), append(marks, r.fingerprint)
		asked = append(asked, r.policy != domain.ConcurrencyPolicyAlwaysEnqueue)
	}
	q := &fireQueue{active: map[fireMark]xid.ID{}, waits: map[fireMark]domain.FireWait{}, queued: map[xid.ID]int{}}
	if len(of) == 0 {
		return q, nil
	}
	_, err := pgtx.Collect(ctx, t, q.scan, fireQueueQuery, pgtx.IDs(agents), pgtx.IDs(routines), pgtx.TextArray(marks), pgtx.BoolArray(asked), domain.MaxBacklog+1, t.Now.Add(domain.StrandedGrace))
	if err != nil {
		return nil, fmt.Errorf("read the queue before a fire: %w", err)
	}
	return q, nil
}

// scan takes in one fire of a routine, or that it has none.
func (q *fireQueue) scan(rows *sql.Rows) (struct{}, error) {
	f, err := scanFire(rows)
	q.queued[f.agent] = f.queued
	mark := fireMark{f.routine, f.fingerprint}
	if f.id != "" && f.work.Active() && q.active[mark] == "" {
		q.active[mark], q.waits[mark] = f.id, f.work.Waits()
	}
	return struct{}{}, err
}

// queuedFire is a row of fireQueueQuery: a fire of a routine that has not ended, "" for none, with its work.
type queuedFire struct {
	routine, agent, id xid.ID
	fingerprint        string
	queued             int // runs of the agent
	work               domain.FireWork
}

func scanFire(rows *sql.Rows) (f queuedFire, err error) {
	var heavy *bool
	w := &f.work
	err = rows.Scan(&f.routine, &f.fingerprint, &f.agent, &f.queued, &f.id, &heavy, &w.RequestUnrouted, &w.RunStatus, &w.Parked, &w.ParkedLong, &w.TaskState, &w.TaskArchived,
		&w.OpenBlocker, &w.OpenApproval)
	w.Heavy = heavy != nil && *heavy
	return f, err
}
