package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// fire is one fire as it was decided, to be written. Its routine and the lane of the routine's agent are locked.
type fire struct {
	source      domain.RoutineRunSource
	by          actor
	routine     *routineRow
	id          xid.ID // of the routine run
	triggerID   xid.ID // "" for one by hand that names none
	causationID xid.ID
	hops        int // of what it sends: more than 0 when a run's agent called the webhook
	fingerprint string
	plan        domain.FirePlan
	slot        domain.SlotFire // zero unless a schedule fired
	backfilled  bool            // a person had the slot fired anew
	values      map[string]string
}

// Bounds of one statement that writes fires, so that a catch-up of a thousand slots with long texts takes no more memory
// than one of twenty-five.
const (
	fireRows  = 250
	fireBytes = 1 << 20
)

// writeFires writes fires: their routine runs, their lines in the feed and, unless the policy drops them, their
// requests or tasks. It skips those whose slot or delivery has fired already (SPEC S3.3, C49).
func (t *tx) writeFires(ctx context.Context, fires []fire) error {
	for len(fires) > 0 {
		rows, n, err := encodeFires(fires)
		if err != nil {
			return err
		}
		written, err := t.insertFires(ctx, rows)
		if err != nil {
			return err
		}
		var tasks []routineTask
		var requests []*newRequest
		for i := range fires[:n] {
			f := &fires[i]
			switch {
			case !written[f.id]:
				continue
			case f.plan.Request != nil && f.plan.CreateTask:
				tasks = append(tasks, f.task())
			case f.plan.Request != nil:
				requests = append(requests, f.request())
			}
			t.fired(f)
		}
		if err := t.send(ctx, requests); err != nil {
			return fmt.Errorf("send the fires' requests: %w", err)
		}
		if err := t.createRoutineTasks(ctx, tasks); err != nil {
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
	Source      string            `json:"source"`
	Kind        string            `json:"kind"`
	Actor       string            `json:"actor"`
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
	LateBy      int64             `json:"late,omitempty"` // milliseconds
	Backfilled  bool              `json:"backfilled"`
	Over        bool              `json:"over"` // nothing follows from it
	Activity    xid.ID            `json:"activity"`
	Summary     string            `json:"summary"`
	Agent       xid.ID            `json:"agent"`
}

const fireRecord = `(id text, workspace text, causation text, routine text, trigger text,
  source text, kind text, actor text, status text, skip text, key text, variables jsonb, ticks int,
  since timestamptz, truncated boolean, into_id text, held_by text,
  fingerprint text, slot timestamptz, late bigint, backfilled boolean, over boolean, activity text, summary text, agent text)`

// row is the fire's routine run with its line in the feed.
func (f *fire) row() fireRow {
	r, p := f.routine, f.plan
	row := fireRow{
		ID: f.id, Workspace: r.workspaceID, Causation: f.causationID, Routine: r.id, Trigger: f.triggerID, Source: string(f.source),
		Kind: string(f.by.kind), Actor: f.by.name, Status: string(p.Status), Skip: string(p.SkipReason),
		Key: p.Key, Variables: f.values, MissedTicks: f.slot.Missed.Ticks, MissedSince: f.slot.Missed.Since, Truncated: f.slot.Missed.Truncated,
		Into: p.CoalescedInto, HeldBy: p.HeldBy, Fingerprint: f.fingerprint, Slot: f.slot.Slot, LateBy: f.slot.LateBy.Milliseconds(), Backfilled: f.backfilled, Over: p.Request == nil || p.Status == domain.RoutineRunStatusCoalesced,
		Activity: xid.New("act"), Summary: "Routine " + r.name + " fired: " + strings.ToLower(string(p.Status)) + ".", Agent: r.assigneeID,
	}
	if row.Variables == nil {
		row.Variables = map[string]string{}
	}
	return row
}

// request is the request of a fire that makes no task: a heavy fire's follows its task.
func (f *fire) request() *newRequest {
	r, p := f.routine, f.plan.Request
	return &newRequest{id: xid.New("wkp"), workspaceID: r.workspaceID, agentID: r.assigneeID, routineID: r.id, routineRunID: f.id, causationID: f.causationID,
		webhook: f.source == domain.RoutineRunSourceWebhook, hops: f.hops, scope: p.Scope, source: p.Source, class: p.Class, personWaiting: p.PersonWaiting, fingerprint: &f.fingerprint, reason: "routine " + r.name, key: f.plan.Key,
		payload: &domain.RoutinePayload{
			RoutineID: string(r.id), TriggerID: string(f.triggerID), RoutineRunID: string(f.id), Variables: f.values, Text: domain.FireText(r.description, f.values),
			ScheduledFor: f.slot.Slot, MissedTicks: f.slot.Missed.Ticks, MissedSince: f.slot.Missed.Since, MissedTruncated: f.slot.Missed.Truncated,
			LateBySeconds: int64(f.slot.LateBy / time.Second), Backfilled: f.backfilled,
		}}
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

// insertFires inserts rows and says which routine runs are new.
func (t *tx) insertFires(ctx context.Context, rows []byte) (map[xid.ID]bool, error) {
	const query = `
-- $1 the fires, as JSON, $2 now
WITH n AS MATERIALIZED (SELECT * FROM json_to_recordset($1) AS n ` + fireRecord + `),
fire AS (
  INSERT INTO routine_runs (id, workspace_id, causation_id, routine_id, trigger_id, source, status,
      skip_reason, fire_key, variables, missed_ticks, missed_since, missed_truncated, coalesced_into_id,
      held_by_id, dispatch_fingerprint, scheduled_for, late_by_ms, backfilled, started_at, completed_at)
  SELECT id, workspace, causation, routine, trigger, source, status, skip, key, variables, ticks, since,
    truncated, into_id, held_by, fingerprint, slot, late, backfilled, $2,
    CASE WHEN over THEN $2::timestamptz END
  FROM n
  ON CONFLICT (trigger_id, fire_key) WHERE fire_key IS NOT NULL DO NOTHING -- the slot, or the delivery, has fired
  RETURNING id),
told AS (` + activityInto + `
  SELECT activity, workspace, '` + string(domain.ActivityCodeRoutineFired) + `', summary, kind, actor, id, agent,
    NULL, jsonb_strip_nulls(jsonb_build_object('agent', agent, 'status', status, 'routineId', routine,
        'triggerId', trigger, 'source', source, 'reason', skip, 'heldBy', held_by,
        'coalescedInto', into_id)), causation, $2
  FROM n JOIN fire USING (id))
-- only fires that are new come back: of the others nothing was written
SELECT id FROM fire`
	inserted, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, rows, t.Now)
	if err != nil {
		return nil, fmt.Errorf("insert routine runs: %w", err)
	}
	written := make(map[xid.ID]bool, len(inserted))
	for _, id := range inserted {
		written[id] = true
	}
	return written, nil
}

// fired notes what follows from a fire once it has committed.
func (t *tx) fired(f *fire) {
	workspace, source := f.routine.workspaceID, f.source
	t.fed(workspace)
	t.Count(func(c *metrics.Counters) {
		c.RoutineRun(workspace, source, f.plan.Status, f.plan.SkipReason)
		if source == domain.RoutineRunSourceCron {
			c.TriggerClaimed(workspace)
			c.FireLate(workspace, t.Now.Sub(f.slot.Slot))
		}
	})
}

// task is the task of a heavy fire (SPEC S4.7). Texts that are too long are cut, because they must not keep the routine from
// firing.
func (f *fire) task() routineTask {
	task := domain.RenderTask(f.routine.name, *f.routine.template, f.values, f.slot)
	return routineTask{by: f.by, id: xid.New("tsk"), workspaceID: f.routine.workspaceID, routineRunID: f.id, assigneeID: f.routine.assigneeID, projectID: xid.ID(task.ProjectID),
		causationID: f.causationID, title: task.Title, description: task.Description, requiresApproval: task.RequiresApproval,
		personWaiting: f.plan.Request.PersonWaiting, webhook: f.source == domain.RoutineRunSourceWebhook, hops: f.hops}
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
