package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// SetTaskBlockers is the whole list of tasks that a task waits for.
type SetTaskBlockers struct {
	WorkspaceID, TaskID xid.ID
	BlockedBy           []xid.ID
	ExpectedRevision    *int
}

// SetTaskBlockers sets the blockers of a task and returns the requests of the wakes that follow when none of them is open
// any more (SPEC S5.3, C303). A way from a blocker back to the task is a user error.
func (s *Tasks) SetTaskBlockers(ctx context.Context, in SetTaskBlockers) (sent []xid.ID, err error) {
	if err := domain.AsUserError(domain.CheckLinks("blockedByIds", texts(in.BlockedBy))); err != nil {
		return nil, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		r, err := t.lockForBlockers(ctx, in)
		if err != nil {
			return err
		}
		c, err := t.causeOf(ctx)
		if err != nil {
			return err
		}
		sent, err = t.setBlockers(ctx, r, in, c)
		return err
	})
	return sent, pgtx.Wrap("set the task's blockers", err)
}

// lockForBlockers locks the task and its new blockers, so that none of them ends in between; and, before all tasks, what
// keeps two changes of links apart, each of which alone makes no cycle.
func (t *tx) lockForBlockers(ctx context.Context, in SetTaskBlockers) (*taskRow, error) {
	if _, err := pgtx.Exec(ctx, t, `SELECT pg_advisory_xact_lock(hashtextextended('blockers:' || $1, 0))`, string(in.WorkspaceID)); err != nil {
		return nil, fmt.Errorf("keep changes of blockers apart: %w", err)
	}
	tasks, err := t.lockTasks(ctx, append(slices.Clone(in.BlockedBy), in.TaskID)...)
	if err != nil {
		return nil, err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return nil, err
	}
	if err := t.ReadClock(ctx); err != nil {
		return nil, err
	}
	return r, checkRevision(in.ExpectedRevision, r.revision, "task")
}

func (t *tx) setBlockers(ctx context.Context, r *taskRow, in SetTaskBlockers, by cause) ([]xid.ID, error) {
	if err := t.checkCycle(ctx, in); err != nil {
		return nil, err
	}
	const remove = `DELETE FROM task_blockers WHERE task_id = $1 AND NOT blocker_id = ANY($2) RETURNING blocker_id`
	removed, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], remove, r.id, pgtx.IDs(in.BlockedBy))
	if err != nil {
		return nil, fmt.Errorf("remove blockers: %w", err)
	}
	if err := t.insertBlockers(ctx, in.WorkspaceID, r.id, in.BlockedBy, by); err != nil {
		return nil, err
	}
	now, err := t.readTasks(ctx, r.id)
	if err != nil {
		return nil, err
	}
	c := change{before: *r, after: *now[r.id], cause: by, summary: "The task's blockers were set.", data: map[string]any{"blockedBy": in.BlockedBy}}
	for _, id := range removed {
		if slices.Contains(r.openBlockers, string(id)) {
			c.endedBlockers = append(c.endedBlockers, string(id))
		}
	}
	return t.apply(ctx, &c)
}

// insertBlockers links a task to tasks of the workspace that it waits for, and notes the agent that named them. A link that is
// there stays whose it is.
func (t *tx) insertBlockers(ctx context.Context, workspaceID, taskID xid.ID, blockers []xid.ID, by cause) error {
	if len(blockers) == 0 {
		return nil
	}
	found, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], `SELECT id FROM tasks WHERE id = ANY($1) AND workspace_id = $2 AND deleted_at IS NULL`, pgtx.IDs(blockers), workspaceID)
	if err != nil {
		return fmt.Errorf("look for the blockers: %w", err)
	}
	var problems []domain.FieldError
	for i, id := range blockers {
		if !slices.Contains(found, id) {
			problems = append(problems, domain.FieldError{Field: []string{"blockedByIds", fmt.Sprint(i)}, Code: domain.UserErrorCodeNotFound,
				Message: fmt.Sprintf("there is no task %s in this workspace", id)})
		}
	}
	if err := domain.AsUserError(problems); err != nil {
		return err
	}
	const query = `
-- $1 ids of the links, $2 blockers, $3 workspace, $4 task, $5 agent that names them
INSERT INTO task_blockers (id, workspace_id, task_id, blocker_id, linked_by_id)
SELECT n.id, $3, $4, n.blocker, NULLIF($5, '')
FROM unnest($1::text[], $2::text[]) AS n (id, blocker)
ON CONFLICT (task_id, blocker_id) DO NOTHING`
	if _, err := pgtx.Exec(ctx, t, query, pgtx.IDs(newIDs("blk", len(blockers))), pgtx.IDs(blockers), workspaceID, taskID, string(by.agentID)); err != nil {
		return fmt.Errorf("insert blockers: %w", err)
	}
	return nil
}

// checkCycle refuses blockers that wait for the task themselves. It reads what the new blockers wait for, and so on.
func (t *tx) checkCycle(ctx context.Context, in SetTaskBlockers) error {
	const query = `
WITH RECURSIVE reach AS (
  SELECT x AS id FROM unnest($1::text[]) AS x
  UNION
  SELECT b.blocker_id FROM reach r JOIN task_blockers b ON b.task_id = r.id)
SELECT b.task_id, b.blocker_id FROM reach r JOIN task_blockers b ON b.task_id = r.id`
	blockedBy := map[string][]string{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var task, blocker string
		err := rows.Scan(&task, &blocker)
		blockedBy[task] = append(blockedBy[task], blocker)
		return struct{}{}, err
	}, query, pgtx.IDs(in.BlockedBy))
	if err != nil {
		return fmt.Errorf("follow the blockers: %w", err)
	}
	if way := domain.BlockerCycle(string(in.TaskID), texts(in.BlockedBy), blockedBy); way != nil {
		return domain.RefuseField([]string{"blockedByIds"}, domain.UserErrorCodeBlockerCycle,
			"the tasks would wait for each other for ever: %s; take one of these links away first", strings.Join(way, " waits for "))
	}
	return nil
}
