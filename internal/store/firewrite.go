package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// fire is one fire as it was decided, to be written. Its routine and the lane of the routine's agent are locked.
type fire struct {
	routine     *routineRow
	id          xid.ID // of the routine run
	triggerID   xid.ID // "" for one by hand that names none
	causationID xid.ID
	fingerprint string
	plan        domain.FirePlan
	slot        domain.SlotFire // zero unless a schedule fired
	values      map[string]string
}

// Bounds of one statement that writes fires, so that a catch-up of a thousand slots with long texts takes no more memory
// than one of twenty-five.
const (
	fireRows  = 250
	fireBytes = 1 << 20
)

// writeFires writes fires of one source: their routine runs, their lines in the feed and, unless the policy drops them, their
// requests or tasks. It skips those whose slot or delivery has fired already (SPEC S3.3, C49).
func (t *tx) writeFires(ctx context.Context, source domain.RoutineRunSource, fires []fire) error {
	by := fireActor(ctx, source)
	for len(fires) > 0 {
		rows, n, err := encodeFires(fires)
		if err != nil {
			return err
		}
		written, err := t.insertFires(ctx, source, by, rows)
		if err != nil {
			return err
		}
		var tasks []routineTask
		for i := range fires[:n] {
			f := &fires[i]
			request, isNew := written[f.id]
			if !isNew {
				continue
			}
			t.fired(source, f, request)
			if f.plan.Request != nil && f.plan.CreateTask {
				tasks = append(tasks, f.task())
			}
		}
		if err := t.createRoutineTasks(ctx, by, tasks); err != nil {
			return fmt.Errorf("make the fires' tasks: %w", err)
		}
		if err := t.tellWaits(ctx, fires[:n], written); err != nil {
			return err
		}
		if err := t.tellBacklog(ctx, fires[:n], written); err != nil {
			return err
		}
		fires = fires[n:]
	}
	return nil
}

// fireRow is a fire as the statement that writes it reads it.
type fireRow struct {
	ID          xid.ID            `json:"id"`
	Workspace   xid.ID            `json:"workspace"`
	Causation   xid.ID            `json:"causation"`
	Routine     xid.ID            `json:"routine"`
	Trigger     xid.ID            `json:"trigger,omitempty"`
	Status      string            `json:"status"`
	Skip        string            `json:"skip,omitempty"`
	Key         string            `json:"key,omitempty"`
	Variables   map[string]string `json:"variables"`
	MissedTicks int               `json:"ticks"`
	MissedSince time.Time         `json:"since,omitzero"`
	Truncated   bool              `json:"truncated"`
	Into        string            `json:"into_id,omitempty"`
	HeldBy      string            `json:"held_by,omitempty"`
	Fingerprint string            `json:"fingerprint"`
	Slot        time.Time         `json:"slot,omitzero"`
	Over        bool              `json:"over"` // nothing follows from it
	Activity    xid.ID            `json:"activity"`
	Summary     string            `json:"summary"`
	Agent       xid.ID            `json:"agent"`
	Request     xid.ID            `json:"request,omitempty"`
	Scope       string            `json:"scope,omitempty"`
	Source      string            `json:"source,omitempty"`
	Class       string            `json:"class,omitempty"`
	PersonWaits bool              `json:"person"`
	Reason      string            `json:"reason,omitempty"`
	Payload     domain.Payload    `json:"payload,omitempty"`
}

const fireRecord = `(id text, workspace text, causation text, routine text, trigger text,
  status text, skip text, key text, variables jsonb, ticks int,
  since timestamptz, truncated boolean, into_id text, held_by text,
  fingerprint text, slot timestamptz, over boolean, activity text, summary text, agent text,
  request text, scope text, source text, class text, person boolean, reason text, payload jsonb)`

// row is the fire's routine run, line in the feed and request. A heavy fire's request follows its task.
func (f *fire) row() fireRow {
	r, p := f.routine, f.plan
	row := fireRow{
		ID: f.id, Workspace: r.workspaceID, Causation: f.causationID, Routine: r.id, Trigger: f.triggerID, Status: string(p.Status), Skip: string(p.SkipReason),
		Key: p.Key, Variables: f.values, MissedTicks: f.slot.Missed.Ticks, MissedSince: f.slot.Missed.Since, Truncated: f.slot.Missed.Truncated,
		Into: p.CoalescedInto, HeldBy: p.HeldBy, Fingerprint: f.fingerprint, Slot: f.slot.Slot, Over: p.Request == nil || p.Status == domain.RoutineRunStatusCoalesced,
		Activity: xid.New("act"), Summary: "Routine " + r.name + " fired: " + strings.ToLower(string(p.Status)) + ".", Agent: r.assigneeID,
	}
	if row.Variables == nil {
		row.Variables = map[string]string{}
	}
	if p.Request == nil || p.CreateTask {
		return row
	}
	row.Request, row.Scope, row.Source, row.Class = xid.New("wkp"), p.Request.Scope, string(p.Request.Source), string(p.Request.Class)
	row.PersonWaits, row.Reason = p.Request.PersonWaiting, "routine "+r.name
	row.Payload = &domain.RoutinePayload{
		RoutineID: string(r.id), TriggerID: string(f.triggerID), RoutineRunID: string(f.id), Variables: f.values, Text: domain.FireText(r.description, f.values),
		ScheduledFor: f.slot.Slot, MissedTicks: f.slot.Missed.Ticks, MissedSince: f.slot.Missed.Since, MissedTruncated: f.slot.Missed.Truncated,
	}
	return row
}

// encodeFires writes the first n fires as a JSON array, as many as one statement takes.
func encodeFires(fires []fire) (rows []byte, n int, err error) {
	rows = append(rows, '[')
	for n < min(len(fires), fireRows) && len(rows) < fireBytes {
		row, err := json.Marshal(fires[n].row())
		if err != nil {
			return nil, 0, fmt.Errorf("encode a fire: %w", err)
		}
		if n++; n > 1 {
			rows = append(rows, ',')
		}
		rows = append(rows, row...)
	}
	return append(rows, ']'), n, nil
}

// insertedRequest is a request that was written; the zero value says that none was.
type insertedRequest struct {
	id xid.ID
	at time.Time
}

// insertFires inserts rows and returns the new routine runs, each with its request. A request whose key exists is left as it
// is (C49).
func (t *tx) insertFires(ctx context.Context, source domain.RoutineRunSource, by actor, rows []byte) (map[xid.ID]insertedRequest, error) {
	const query = `
-- $1 the fires, as JSON, $2 source, $3 now, $4 kind of actor, $5 actor
WITH n AS MATERIALIZED (SELECT * FROM json_to_recordset($1) AS n ` + fireRecord + `),
fire AS (
  INSERT INTO routine_runs (id, workspace_id, causation_id, routine_id, trigger_id, source, status,
      skip_reason, fire_key, variables, missed_ticks, missed_since, missed_truncated, coalesced_into_id,
      held_by_id, dispatch_fingerprint, scheduled_for, started_at, completed_at)
  SELECT id, workspace, causation, routine, trigger, $2, status, skip, key, variables, ticks, since,
    truncated, into_id, held_by, fingerprint, slot, $3,
    CASE WHEN over THEN $3::timestamptz END
  FROM n
  ON CONFLICT (trigger_id, fire_key) WHERE fire_key IS NOT NULL DO NOTHING -- the slot, or the delivery, has fired
  RETURNING id),
told AS (` + activityInto + `
  SELECT activity, workspace, '` + string(domain.ActivityCodeRoutineFired) + `', summary, $4, $5, id, agent,
    NULL, jsonb_strip_nulls(jsonb_build_object('agent', agent, 'status', status, 'routineId', routine,
        'triggerId', trigger, 'source', $2::text, 'reason', skip, 'heldBy', held_by,
        'coalescedInto', into_id)), causation, $3
  FROM n JOIN fire USING (id)),
sent AS (
  INSERT INTO wakeup_requests (id, workspace_id, agent_id, routine_id, routine_run_id, causation_id, scope,
      source, wake_class, person_waiting, fingerprint, reason, payload, status, recovered, resends, hops,
      retry_count, idempotency_key, requested_at)
  SELECT request, workspace, agent, routine, id, causation, scope, source, class, person, fingerprint,
    reason, payload, 'QUEUED', false, 0, 0, 0, key, $3
  FROM n JOIN fire USING (id) WHERE request IS NOT NULL
  ON CONFLICT (workspace_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
  RETURNING id, routine_run_id, requested_at)
-- only fires that are new come back: of the others nothing was written
SELECT fire.id, sent.id, coalesce(sent.requested_at, $3)
FROM fire
LEFT JOIN sent ON sent.routine_run_id = fire.id`
	written := map[xid.ID]insertedRequest{}
	_, err := pgtx.Collect(ctx, t, func(r *sql.Rows) (_ struct{}, err error) {
		var id xid.ID
		var request insertedRequest
		err = r.Scan(&id, &request.id, &request.at)
		written[id] = request
		return struct{}{}, err
	}, query, rows, source, t.Now, by.kind, by.name)
	if err != nil {
		return nil, fmt.Errorf("insert routine runs: %w", err)
	}
	return written, nil
}

// fired notes what follows from a fire once it has committed. The request of a heavy one is its task's.
func (t *tx) fired(source domain.RoutineRunSource, f *fire, request insertedRequest) {
	workspace := f.routine.workspaceID
	t.fed(workspace)
	t.Count(func(c *metrics.Counters) {
		c.RoutineRun(workspace, source, f.plan.Status, f.plan.SkipReason)
		if source == domain.RoutineRunSourceCron {
			c.TriggerClaimed(workspace)
		}
	})
	if request.id == "" {
		return
	}
	t.sent = append(t.sent, request.id)
	t.traceWakeup(request.id, request.at, newRequest{causationID: f.causationID, agentID: f.routine.assigneeID, workspaceID: workspace,
		source: f.plan.Request.Source, reason: "routine " + f.routine.name})
	t.Count(func(c *metrics.Counters) { c.WakeupCreated(workspace, f.plan.Request.Source) })
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: workspace, ID: f.routine.assigneeID})
}

// task is the task of a heavy fire (SPEC S4.7). Texts that are too long are cut, because they must not keep the routine from
// firing.
func (f *fire) task() routineTask {
	task := domain.RenderTask(f.routine.name, *f.routine.template, f.values, f.slot.Missed)
	return routineTask{id: xid.New("tsk"), workspaceID: f.routine.workspaceID, routineRunID: f.id, assigneeID: f.routine.assigneeID, projectID: xid.ID(task.ProjectID),
		causationID: f.causationID, title: task.Title, description: task.Description, requiresApproval: task.RequiresApproval,
		personWaiting: f.plan.Request.PersonWaiting}
}

// fireActor is who fires.
func fireActor(ctx context.Context, source domain.RoutineRunSource) actor {
	switch source {
	case domain.RoutineRunSourceCron:
		return system("cron")
	case domain.RoutineRunSourceWebhook:
		return system("webhook")
	}
	return callerOr(ctx, "routines")
}
