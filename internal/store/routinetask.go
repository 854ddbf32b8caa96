package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// routineTask is the task of a heavy fire. Title and description are rendered, within the bounds of any task's.
type routineTask struct {
	workspaceID, routineRunID, assigneeID, projectID, causationID xid.ID
	title, description                                            string
	requiresApproval                                              bool
	personWaiting                                                 bool // fired by hand: no window (SPEC S3.7)
	by                                                            actor
}

// createRoutineTask makes the task of a heavy fire in the hidden ROUTINE workflow, links it to the fire, whose row is there
// already, and sends its one TASK_ASSIGNED, unrouted (SPEC S4.7). The assignee's lane and the routine are locked, and the
// clock was read. The fire ends with the task, not with the request.
func (t *tx) createRoutineTask(ctx context.Context, in routineTask) (taskID, requestID xid.ID, err error) {
	p := place{projectID: in.projectID}
	const first = `
SELECT f.id, s.id
FROM workflows f
JOIN workflow_steps s ON s.workflow_id = f.id
WHERE f.workspace_id = $1 AND f.kind = 'ROUTINE'
ORDER BY s.position
LIMIT 1`
	if err := pgtx.QueryRow(ctx, t, []any{&p.workflowID, &p.stepID}, first, in.workspaceID); err != nil {
		return "", "", fmt.Errorf("find the workflow of routines: %w", err)
	}
	made, sent, err := t.createTaskAt(ctx, CreateTask{WorkspaceID: in.workspaceID, ID: xid.New("tsk"), Title: in.title, Description: in.description,
		AssigneeID: in.assigneeID, RequiresApproval: in.requiresApproval}, p, cause{by: in.by, causationID: in.causationID})
	if err != nil {
		return "", "", err
	}
	if len(sent) != 1 {
		return "", "", fmt.Errorf("the fire's task sent %d wakes, want 1", len(sent))
	}
	const link = `
WITH fire AS (UPDATE routine_runs SET task_id = $2, status = 'TASK_CREATED' WHERE id = $1 RETURNING id)
UPDATE wakeup_requests
SET routine_run_id = (SELECT id FROM fire), person_waiting = $4
WHERE id = $3 AND EXISTS (SELECT 1 FROM fire)`
	if err := pgtx.ExecOne(ctx, t, link, in.routineRunID, made.id, sent[0], in.personWaiting); err != nil {
		return "", "", fmt.Errorf("link the task and its wakeup to their fire: %w", err)
	}
	return made.id, sent[0], nil
}
