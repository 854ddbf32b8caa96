package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// lockEnding locks what the ends of tasks may touch, in the order of their ids: themselves, the tasks that they block and
// their parents (SPEC S5.3), besides others that the caller names. Tasks are returned by id.
func (t *tx) lockEnding(ctx context.Context, taskIDs []xid.ID, others ...xid.ID) (map[xid.ID]*taskRow, error) {
	before, err := t.endingSet(ctx, taskIDs, others)
	if err != nil {
		return nil, err
	}
	tasks, err := t.lockTasks(ctx, before...)
	if err != nil {
		return nil, err
	}
	after, err := t.endingSet(ctx, taskIDs, others)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(before, after) {
		return nil, pgtx.ErrChanged
	}
	return tasks, nil
}

func (t *tx) endingSet(ctx context.Context, taskIDs, others []xid.ID) ([]xid.ID, error) {
	const query = `
SELECT id FROM unnest($1::text[]) AS x (id) UNION SELECT id FROM unnest($2::text[]) AS y (id)
UNION SELECT task_id FROM task_blockers WHERE blocker_id = ANY($1)
UNION SELECT parent_id FROM tasks WHERE id = ANY($1) AND parent_id IS NOT NULL ORDER BY 1`
	set, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, pgtx.IDs(taskIDs), pgtx.IDs(others))
	if err != nil {
		return nil, fmt.Errorf("find the tasks that depend on it: %w", err)
	}
	return set, nil
}

// followEnd does what follows when a task has just ended, or is open again. The tasks that it blocks and its parent,
// all locked by lockEnding, get their wakes once nothing that they wait for is open. The fire that made the task ends.
func (t *tx) followEnd(ctx context.Context, c *change, tasks map[xid.ID]*taskRow) ([]xid.ID, error) {
	if c.before.ended() && !c.after.ended() {
		return nil, t.reopenFireOfTask(ctx, c.after)
	}
	if !c.after.ended() || c.before.ended() {
		return nil, nil
	}
	var sent []xid.ID
	for _, id := range slices.Sorted(maps.Keys(tasks)) {
		other := tasks[id]
		if !slices.Contains(other.openBlockers, string(c.after.id)) {
			continue
		}
		requests, err := t.blockerEnded(ctx, other, c)
		if err != nil {
			return nil, err
		}
		sent = append(sent, requests...)
	}
	if parent := tasks[c.after.parentID]; parent != nil {
		requests, err := t.childEnded(ctx, parent, c.cause)
		if err != nil {
			return nil, err
		}
		sent = append(sent, requests...)
	}
	t.over = append(t.over, c.after.id)
	return sent, t.endFireOfTask(ctx, c.after)
}

// blockerEnded takes an ended blocker off a task's open ones. r is what the task became.
func (t *tx) blockerEnded(ctx context.Context, r *taskRow, ended *change) ([]xid.ID, error) {
	c := change{before: *r, after: *r, cause: ended.cause, linkEnded: true, endedBlockers: []string{string(ended.after.id)}}
	c.cause.agentID = "" // whoever ended it: the wake is about another task
	c.after.openBlockers = slices.DeleteFunc(slices.Clone(r.openBlockers), func(id string) bool { return id == string(ended.after.id) })
	sent, err := t.apply(ctx, &c)
	*r = c.after
	return sent, err
}

// childEnded tells a parent's assignee when none of its children is open.
func (t *tx) childEnded(ctx context.Context, parent *taskRow, by cause) ([]xid.ID, error) {
	open, err := pgtx.QueryOne[int](ctx, t, `SELECT count(*) FROM tasks x WHERE x.parent_id = $1 AND `+guard.TaskOpen("x"), parent.id)
	if err != nil {
		return nil, fmt.Errorf("count the open children: %w", err)
	}
	parent.generation++
	const raise = `UPDATE tasks SET wake_generation = $2, updated_at = $3, revision = revision + 1 WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, raise, parent.id, parent.generation, t.Now); err != nil {
		return nil, fmt.Errorf("count the end of a child: %w", err)
	}
	return t.sendWakes(ctx, *parent, by, domain.ChildrenCompletedWake(parent.facts(), open))
}

// endFireOfTask ends the fire of a heavy routine with its task (SPEC S4.6).
func (t *tx) endFireOfTask(ctx context.Context, r taskRow) error {
	status := domain.RoutineRunStatusCancelled
	if r.state == domain.TaskStateDone {
		status = domain.RoutineRunStatusDone
	}
	const query = `
WITH fire AS (
  UPDATE routine_runs
  SET status = $2, skip_reason = NULL, completed_at = $3
  WHERE task_id = $1 AND completed_at IS NULL
  RETURNING id, workspace_id)
UPDATE inbox_items i SET resolved_at = $3 FROM fire
WHERE i.workspace_id = fire.workspace_id AND i.dedupe_key = 'fires_wait:' || fire.id AND i.resolved_at IS NULL`
	if _, err := pgtx.Exec(ctx, t, query, r.id, status, t.Now); err != nil {
		return fmt.Errorf("end the fire of the task: %w", err)
	}
	return nil
}

// reopenFireOfTask makes the fire whose task is worked on again active again (SPEC S4.6).
func (t *tx) reopenFireOfTask(ctx context.Context, r taskRow) error {
	const query = `
UPDATE routine_runs
SET status = 'TASK_CREATED', skip_reason = NULL, error = NULL, completed_at = NULL
WHERE task_id = $1 AND completed_at IS NOT NULL`
	if _, err := pgtx.Exec(ctx, t, query, r.id); err != nil {
		return fmt.Errorf("open the fire of the task again: %w", err)
	}
	return nil
}
