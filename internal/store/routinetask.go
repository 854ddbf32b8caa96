package store

import (
	"context"
	"encoding/json"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// routineTask is the task of a heavy fire. Title and description are rendered, within the bounds of any task's.
type routineTask struct {
	by                                                                actor
	id, workspaceID, routineRunID, assigneeID, projectID, causationID xid.ID
	title, description                                                string
	requiresApproval                                                  bool
	personWaiting                                                     bool // fired by hand: no window (SPEC S3.7)
	webhook                                                           bool // fired by a delivery
	hops                                                              int  // of its wake
}

// createRoutineTasks makes the tasks of heavy fires in the hidden ROUTINE workflow, links each to its fire, whose row is there
// already, and sends its one TASK_ASSIGNED (SPEC S4.7). The assignees' lanes and the routines are locked, and the
// clock was read. A fire ends with its task, not with the request.
func (t *tx) createRoutineTasks(ctx context.Context, list []routineTask) error {
	if len(list) == 0 {
		return nil
	}
	if err := t.insertRoutineTasks(ctx, list); err != nil {
		return err
	}
	ids := make([]xid.ID, len(list))
	for i, task := range list {
		ids[i] = task.id
	}
	tasks, err := t.readTasks(ctx, ids...)
	if err != nil {
		return err
	}
	made := make([]madeRoutineTask, len(list))
	for i, task := range list {
		if made[i], err = task.made(tasks[task.id]); err != nil {
			return err
		}
	}
	return t.sendRoutineTasks(ctx, made)
}

// insertRoutineTasks writes the tasks into the first step of their workspace's workflow of routines. A project that is gone is
// left out, because it must not keep the routine from firing.
func (t *tx) insertRoutineTasks(ctx context.Context, list []routineTask) error {
	type row struct {
		ID          xid.ID `json:"id"`
		Workspace   xid.ID `json:"workspace"`
		Title       string `json:"title"`
		Description string `json:"description"`
		Project     xid.ID `json:"project,omitempty"`
		Assignee    xid.ID `json:"assignee"`
		Approval    bool   `json:"approval"`
	}
	rows := make([]row, len(list))
	for i, task := range list {
		rows[i] = row{task.id, task.workspaceID, task.title, task.description, task.projectID, task.assigneeID, task.requiresApproval}
	}
	encoded, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode the tasks of fires: %w", err)
	}
	const query = `
INSERT INTO tasks (id, workspace_id, title, description, state, workflow_id, step_id, project_id,
    assignee_id, assignment_version, wake_generation, requires_approval, created_at, updated_at, revision)
SELECT n.id, n.workspace, n.title, n.description, s.state, s.workflow_id, s.id, p.id, n.assignee, 1, 0,
  n.approval, $2, $2, 0
FROM json_to_recordset($1) AS n (id text, workspace text, title text, description text, project text,
    assignee text, approval boolean)
CROSS JOIN LATERAL (
  SELECT s.id, s.workflow_id, s.state
  FROM workflows f
  JOIN workflow_steps s ON s.workflow_id = f.id
  WHERE f.workspace_id = n.workspace AND f.kind = 'ROUTINE'
  ORDER BY s.position
  LIMIT 1) AS s
LEFT JOIN projects p ON p.id = n.project AND p.workspace_id = n.workspace AND p.deleted_at IS NULL`
	inserted, err := pgtx.Exec(ctx, t, query, encoded, t.Now)
	if err != nil {
		return fmt.Errorf("insert the tasks of fires: %w", err)
	}
	if int(inserted) != len(list) {
		return fmt.Errorf("insert the tasks of fires: %d of %d have a workflow of routines", inserted, len(list))
	}
	return nil
}

// madeRoutineTask is a task that was inserted, with what follows from that.
type madeRoutineTask struct {
	routineTask
	generation int
	wake       domain.TaskWake
	details    []byte // of its line in the feed
}

// made works out what the making of a task causes, by the rule for any task.
func (task routineTask) made(r *taskRow) (m madeRoutineTask, err error) {
	if r == nil {
		return m, fmt.Errorf("the fire's task %s is gone", task.id)
	}
	generation, wakes := follows(domain.TaskChange{After: r.facts()}, false)
	if len(wakes) != 1 {
		return m, fmt.Errorf("the fire's task sent %d wakes, want 1", len(wakes))
	}
	details, err := encodeData(entry{agentID: task.assigneeID, taskID: task.id, data: map[string]any{"created": true}}.details())
	return madeRoutineTask{task, generation, wakes[0], details}, err
}

// sendRoutineTasks writes the generation of each task, its line in the feed and the link from its fire, and sends its request.
func (t *tx) sendRoutineTasks(ctx context.Context, list []madeRoutineTask) error {
	encoded, err := encodeRoutineTasks(list)
	if err != nil {
		return err
	}
	const query = `
WITH n AS MATERIALIZED (
  SELECT *
  FROM json_to_recordset($1) AS n (task text, workspace text, fire text, agent text, causation text,
      generation int, activity text, details jsonb, kind text, actor text)),
written AS (
  UPDATE tasks t
  SET wake_generation = n.generation, revision = t.revision + 1
  FROM n
  WHERE t.id = n.task
  RETURNING t.id),
told AS (` + activityInto + `
  SELECT activity, workspace, '` + string(domain.ActivityCodeTaskChanged) + `', '` + taskMade + `', kind, actor,
    task, agent, task, details, causation, $2
  FROM n
  JOIN written ON written.id = n.task),
linked AS (
  UPDATE routine_runs f
  SET task_id = n.task, status = 'TASK_CREATED'
  FROM n
  JOIN written ON written.id = n.task
  WHERE f.id = n.fire
  RETURNING f.id)
SELECT count(*) FROM linked`
	linked, err := pgtx.QueryOne[int](ctx, t, query, encoded, t.Now)
	if err == nil && linked != len(list) {
		err = fmt.Errorf("%d of %d were linked", linked, len(list))
	}
	if err != nil {
		return fmt.Errorf("tell of the tasks of fires: %w", err)
	}
	requests := make([]*newRequest, len(list))
	for i, m := range list {
		t.fed(m.workspaceID)
		requests[i] = m.request()
	}
	return pgtx.Wrap("send the tasks of fires", t.send(ctx, requests))
}

// request is the request of a task's one wake.
func (m madeRoutineTask) request() *newRequest {
	return &newRequest{id: xid.New("wkp"), workspaceID: m.workspaceID, agentID: m.assigneeID, taskID: m.id, routineRunID: m.routineRunID, causationID: m.causationID,
		scope: domain.WakeScope(m.wake.Source, string(m.id)), source: m.wake.Source, basis: &m.wake.Basis, class: domain.WakeClassEvent,
		personWaiting: m.personWaiting, webhook: m.webhook, hops: m.hops, reason: m.wake.Reason, payload: m.wake.Payload, key: m.wake.Key}
}

func encodeRoutineTasks(list []madeRoutineTask) ([]byte, error) {
	type row struct {
		Task       xid.ID          `json:"task"`
		Workspace  xid.ID          `json:"workspace"`
		Fire       xid.ID          `json:"fire"`
		Agent      xid.ID          `json:"agent"`
		Causation  xid.ID          `json:"causation"`
		Generation int             `json:"generation"`
		Activity   xid.ID          `json:"activity"`
		Details    json.RawMessage `json:"details"`
		Kind       string          `json:"kind"`
		Actor      string          `json:"actor"`
	}
	activities := newIDs("act", len(list))
	rows := make([]row, len(list))
	for i, m := range list {
		rows[i] = row{m.id, m.workspaceID, m.routineRunID, m.assigneeID, m.causationID, m.generation, activities[i], m.details, string(m.by.kind), m.by.name}
	}
	encoded, err := json.Marshal(rows)
	return encoded, pgtx.Wrap("encode the tasks of fires", err)
}
