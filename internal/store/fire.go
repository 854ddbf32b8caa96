package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// FireRoutine is a fire by hand. TriggerID may be empty.
type FireRoutine struct {
	WorkspaceID, RoutineID, TriggerID xid.ID
	Variables                         map[string]string
	Idempotency
}

// FireRoutine fires a routine by hand: a routine run and, unless the policy drops it, an unrouted request (SPEC S4.10).
// agentID is whose queue it went into; "" when the key was used before.
func (s *Store) FireRoutine(ctx context.Context, in FireRoutine) (made Made, agentID xid.ID, err error) {
	err = s.withRoutineOnce(ctx, in.WorkspaceID, in.RoutineID, "fireRoutine", in.Idempotency, &made, func(t *tx, l lane, r routineRow) (Made, error) {
		agentID = r.assigneeID
		return t.fireByHand(ctx, l, r, in)
	})
	return made, agentID, wrap("fire routine", err)
}

func (t *tx) fireByHand(ctx context.Context, l lane, r routineRow, in FireRoutine) (Made, error) {
	if err := t.checkTrigger(ctx, in); err != nil {
		return Made{}, err
	}
	f := firing{tx: t, lane: l, routine: r, triggerID: in.TriggerID, source: domain.RoutineRunSourceManual, provided: in.Variables}
	values, err := f.valuesNow(ctx)
	if err != nil {
		return Made{}, err
	}
	if err := f.readFacts(ctx); err != nil {
		return Made{}, err
	}
	plan := domain.PlanFire(f.facts)
	if plan.Answer != domain.FireRecord {
		return Made{}, domain.AsUserError([]domain.FieldError{plan.Problem})
	}
	if err := f.record(ctx, plan, domain.SlotFire{}, values); err != nil {
		return Made{}, err
	}
	if err := f.touchTrigger(ctx); err != nil {
		return Made{}, err
	}
	return Made{ID: xid.ID(f.facts.RoutineRunID)}, t.touchLastRun(ctx, r, t.now)
}

// valuesNow resolves the variables of a fire without a slot: its instant stands for one, in the workspace's zone.
func (f *firing) valuesNow(ctx context.Context) (map[string]string, error) {
	zone, err := f.workspaceZone(ctx, f.routine.workspaceID)
	if err != nil {
		return nil, err
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("read the workspace's time zone: %w", err)
	}
	resolved, problems := domain.ResolveVariables(f.routine.variables, f.provided, domain.BuiltIns(f.now, location))
	return domain.VariableValues(resolved), domain.AsUserError(problems)
}

func (t *tx) checkTrigger(ctx context.Context, in FireRoutine) error {
	if in.TriggerID == "" {
		return nil
	}
	enabled, err := queryOne[bool](ctx, t, `SELECT enabled FROM routine_triggers WHERE id = $1 AND routine_id = $2 AND deleted_at IS NULL`, in.TriggerID, in.RoutineID)
	if err != nil {
		return notFound(err, []string{"triggerId"}, "trigger", in.TriggerID)
	}
	if !enabled {
		return domain.RefuseField([]string{"triggerId"}, domain.UserErrorCodeInvalidState, "the trigger is switched off; switch it on, or fire without naming it")
	}
	return nil
}

// routineRow is a routine, locked.
type routineRow struct {
	id, workspaceID, assigneeID xid.ID
	name, description           string
	status                      domain.RoutineStatus
	policy                      domain.ConcurrencyPolicy
	catchUp                     domain.CatchUpPolicy
	catchUpMax                  int
	template                    *domain.TaskTemplate
	variables                   []domain.RoutineVariable
	agentGone                   bool
}

func (t *tx) lockRoutine(ctx context.Context, id xid.ID) (routineRow, error) {
	r, err := t.readRoutine(ctx, id, ` FOR NO KEY UPDATE OF r`)
	return r, wrap("lock routine", err)
}

// readRoutine reads a routine that is not deleted, with a locking clause or none.
func (t *tx) readRoutine(ctx context.Context, id xid.ID, locking string) (routineRow, error) {
	r := routineRow{id: id}
	var template, variables []byte
	query := `
SELECT r.workspace_id, r.assignee_id, r.name, r.description, r.status, r.concurrency_policy, r.catch_up_policy, r.catch_up_max, r.task_template, r.variables,
  a.deleted_at IS NOT NULL
FROM routines r JOIN agents a ON a.id = r.assignee_id WHERE r.id = $1 AND r.deleted_at IS NULL` + locking
	err := queryRow(ctx, t, []any{&r.workspaceID, &r.assigneeID, &r.name, &r.description, &r.status, &r.policy, &r.catchUp, &r.catchUpMax, &template, &variables, &r.agentGone}, query, id)
	if err != nil {
		return r, err
	}
	if template != nil {
		if err := json.Unmarshal(template, &r.template); err != nil {
			return r, fmt.Errorf("read the routine's template: %w", err)
		}
	}
	if err := json.Unmarshal(variables, &r.variables); err != nil {
		return r, fmt.Errorf("read the routine's variables: %w", err)
	}
	return r, nil
}

// firing is one or more fires of a routine whose agent's lane is held.
type firing struct {
	*tx
	lane      lane
	routine   routineRow
	triggerID xid.ID
	source    domain.RoutineRunSource
	provided  map[string]string
	facts     domain.FireFacts
}

// readFacts gathers what the fire is decided on, after the lane lock (SPEC S4.6).
func (f *firing) readFacts(ctx context.Context) error {
	r := f.routine
	f.facts = domain.FireFacts{
		RoutineID: string(r.id), TriggerID: string(f.triggerID), Source: f.source, RoutineStatus: r.status, AgentGone: r.agentGone,
		Heavy: r.template != nil, Policy: r.policy,
		Fingerprint: domain.Fingerprint(string(r.id), string(r.assigneeID), r.template, f.provided),
	}
	f.renewIDs()
	return f.readQueue(ctx)
}

// renewIDs mints the ids of the next fire.
func (f *firing) renewIDs() { f.facts.RoutineRunID = string(xid.New("rrn")) }

// readQueue finds the oldest fire with the same fingerprint whose work has not ended, and how many runs the agent has
// queued, in one statement. A fire that made a task is as active as its task. ALWAYS_ENQUEUE asks for no active fire, and
// may have a thousand.
func (f *firing) readQueue(ctx context.Context) error {
	const query = `
SELECT queued.n, f.id, f.status = 'TASK_CREATED' OR f.task_id IS NOT NULL, coalesce(q.status = 'QUEUED' AND q.run_id IS NULL, false), coalesce(r.status, ''),
  coalesce(k.state, ''), coalesce(k.archived_at IS NOT NULL OR k.deleted_at IS NOT NULL, false)
FROM (SELECT count(*) AS n FROM (SELECT 1 FROM runs WHERE agent_id = $1 AND status = 'QUEUED' LIMIT $2) AS few) AS queued
LEFT JOIN routine_runs f ON f.routine_id = $3 AND f.dispatch_fingerprint = $4 AND f.completed_at IS NULL AND $5
LEFT JOIN wakeup_requests q ON q.routine_run_id = f.id LEFT JOIN runs r ON r.id = q.run_id LEFT JOIN tasks k ON k.id = f.task_id
ORDER BY f.started_at, f.id`
	type fire struct {
		queued int
		id     *string
		heavy  *bool
		work   domain.FireWork
	}
	fires, err := collect(ctx, f, func(rows *sql.Rows) (v fire, err error) {
		return v, rows.Scan(&v.queued, &v.id, &v.heavy, &v.work.RequestUnrouted, &v.work.RunStatus, &v.work.TaskState, &v.work.TaskArchived)
	}, query, f.routine.assigneeID, domain.MaxBacklog+1, f.routine.id, f.facts.Fingerprint, f.routine.policy != domain.ConcurrencyPolicyAlwaysEnqueue)
	if err != nil {
		return fmt.Errorf("read the queue before a fire: %w", err)
	}
	for _, v := range fires {
		f.facts.QueuedRuns = v.queued
		if v.id == nil {
			continue
		}
		v.work.Heavy = *v.heavy
		if v.work.Active() && f.facts.ActiveRoutineRun == "" {
			f.facts.ActiveRoutineRun = *v.id
		}
	}
	return nil
}

// record writes one fire as planned: its routine run, and its request unless the policy drops it.
func (f *firing) record(ctx context.Context, plan domain.FirePlan, slot domain.SlotFire, values map[string]string) error {
	encoded, err := json.Marshal(values)
	if err != nil {
		return fmt.Errorf("encode variables: %w", err)
	}
	causationID := xid.New("cau")
	var completed *time.Time
	if plan.Request == nil || plan.Status == domain.RoutineRunStatusCoalesced {
		completed = &f.now
	}
	const query = `
WITH fire AS (
INSERT INTO routine_runs (id, workspace_id, causation_id, routine_id, trigger_id, source, status, skip_reason, fire_key, variables, missed_ticks,
  missed_since, missed_truncated, coalesced_into_id, dispatch_fingerprint, scheduled_for, started_at, completed_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
ON CONFLICT (trigger_id, fire_key) WHERE fire_key IS NOT NULL DO NOTHING RETURNING id, workspace_id, causation_id, status)` + activityInto + `
SELECT $19, workspace_id, 'ROUTINE_FIRED', $20, $21, $22, id, $23, NULL, jsonb_build_object('status', status, 'routineId', $4::text), causation_id, $17 FROM fire`
	by := f.by(ctx)
	n, err := exec(ctx, f, query, f.facts.RoutineRunID, f.routine.workspaceID, causationID, f.routine.id, f.triggerID, f.source, plan.Status,
		nullable(plan.SkipReason), nullable(plan.Key), encoded, slot.Missed.Ticks, nullableTime(slot.Missed.Since), slot.Missed.Truncated,
		nullable(plan.CoalescedInto), f.facts.Fingerprint, nullableTime(slot.Slot), f.now, completed,
		xid.New("act"), "Routine "+f.routine.name+" fired: "+strings.ToLower(string(plan.Status))+".", by.kind, by.name, f.routine.assigneeID)
	if err != nil {
		return fmt.Errorf("insert routine run: %w", err)
	}
	if n == 0 { // this slot or delivery has fired already (SPEC S3.3, C49)
		return nil
	}
	f.fed(f.routine.workspaceID)
	f.count(func(c *metrics.Counters) { c.RoutineRun(f.routine.workspaceID, f.source, plan.Status) })
	if plan.Request == nil {
		return nil
	}
	return f.send(ctx, plan, slot, values, causationID)
}

// send sends what the fire sends: of a heavy one its task, which tells its assignee.
func (f *firing) send(ctx context.Context, plan domain.FirePlan, slot domain.SlotFire, values map[string]string, causationID xid.ID) error {
	if plan.CreateTask {
		return f.makeTask(ctx, plan, slot, values, causationID)
	}
	_, _, err := f.insertRequest(ctx, newRequest{
		workspaceID: f.routine.workspaceID, agentID: f.routine.assigneeID, routineID: f.routine.id, routineRunID: xid.ID(f.facts.RoutineRunID),
		causationID: causationID, scope: plan.Request.Scope, source: plan.Request.Source, class: plan.Request.Class,
		personWaiting: plan.Request.PersonWaiting, fingerprint: &f.facts.Fingerprint, reason: "routine " + f.routine.name, key: plan.Key,
		payload: &domain.RoutinePayload{
			RoutineID: string(f.routine.id), TriggerID: string(f.triggerID), RoutineRunID: f.facts.RoutineRunID, Variables: values,
			Text:         domain.FireText(f.routine.description, values),
			ScheduledFor: slot.Slot, MissedTicks: slot.Missed.Ticks, MissedSince: slot.Missed.Since, MissedTruncated: slot.Missed.Truncated,
		},
	})
	return err
}

// makeTask makes the task of a heavy fire (SPEC S4.7). A project that is gone is left out: it must not keep the routine from
// firing.
func (f *firing) makeTask(ctx context.Context, plan domain.FirePlan, slot domain.SlotFire, values map[string]string, causationID xid.ID) error {
	task := domain.RenderTask(*f.routine.template, values)
	if task.ProjectID != "" {
		there, err := f.projectExists(ctx, f.routine.workspaceID, task.ProjectID)
		if err != nil {
			return err
		}
		if !there {
			task.ProjectID = ""
		}
	}
	_, _, err := f.createRoutineTask(ctx, routineTask{
		workspaceID: f.routine.workspaceID, routineRunID: xid.ID(f.facts.RoutineRunID), assigneeID: f.routine.assigneeID, projectID: task.ProjectID,
		causationID: causationID, title: task.Title, description: task.Description + domain.MissedText(slot.Missed), requiresApproval: task.RequiresApproval,
		personWaiting: plan.Request.PersonWaiting, by: f.by(ctx),
	})
	return wrap("make the fire's task", err)
}

func (t *tx) projectExists(ctx context.Context, workspaceID, projectID xid.ID) (bool, error) {
	there, err := queryOne[bool](ctx, t, `SELECT EXISTS (SELECT 1 FROM projects WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL)`, projectID, workspaceID)
	return there, wrap("look for the project", err)
}

// by is who fires.
func (f *firing) by(ctx context.Context) actor {
	switch f.source {
	case domain.RoutineRunSourceCron:
		return system("cron")
	case domain.RoutineRunSourceWebhook:
		return system("webhook")
	}
	return callerOr(ctx, "routines")
}

// touchLastRun moves last_run_at forward, never back, in a savepoint: its failure never fails the fire, and is counted
// (AC-OFFICE-LOOP-LIVENESS-001).
func (t *tx) touchLastRun(ctx context.Context, r routineRow, at time.Time) error {
	err := t.savepoint(ctx, func() error {
		const query = `
UPDATE routines SET last_run_at = $2, updated_at = $3 WHERE id = $1 AND (last_run_at IS NULL OR last_run_at < $2)`
		_, err := exec(ctx, t, query, r.id, at, t.now)
		return err
	})
	if err == nil || ctx.Err() != nil || isConnectionError(err) || isRetryable(err) {
		return err
	}
	t.onCommit(func(s *Store) {
		s.counters.LastRunAtWriteFailed(r.workspaceID)
		s.log.Error("last_run_at could not be written", "routine_id", r.id, "workspace_id", r.workspaceID, "error", err)
	})
	return nil
}
