package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/xid"
)

// routineTask is the task of a heavy fire. Title and description are rendered; a title is cut at 200 characters.
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
	workflowID, err := queryOne[xid.ID](ctx, t, `SELECT id FROM workflows WHERE workspace_id = $1 AND kind = 'ROUTINE'`, in.workspaceID)
	if err != nil {
		return "", "", fmt.Errorf("find the workflow of routines: %w", err)
	}
	made := CreateTask{WorkspaceID: in.workspaceID, ID: xid.New("tsk"), Title: firstOf(in.title, 200), Description: in.description, WorkflowID: workflowID,
		ProjectID: in.projectID, AssigneeID: in.assigneeID, RequiresApproval: in.requiresApproval}
	_, sent, err := t.createTask(ctx, made, cause{by: in.by, causationID: in.causationID})
	if err != nil {
		return "", "", err
	}
	const link = `UPDATE routine_runs SET task_id = $2, status = 'TASK_CREATED' WHERE id = $1`
	if err := execOne(ctx, t, link, in.routineRunID, made.ID); err != nil {
		return "", "", fmt.Errorf("link the task to its fire: %w", err)
	}
	if len(sent) != 1 {
		return "", "", fmt.Errorf("the fire's task sent %d wakes, want 1", len(sent))
	}
	const mark = `UPDATE wakeup_requests SET routine_run_id = $2, person_waiting = $3 WHERE id = $1`
	if err := execOne(ctx, t, mark, sent[0], in.routineRunID, in.personWaiting); err != nil {
		return "", "", fmt.Errorf("link the wakeup to its fire: %w", err)
	}
	return made.ID, sent[0], nil
}
