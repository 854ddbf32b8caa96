package reads

import (
	"context"
	"database/sql"

	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Participants are the agents that review and approve a task, in the order of their ids.
type Participants struct{ Reviewers, Approvers []xid.ID }

// Participants reads who reviews and approves tasks, in one query.
func (s *Reads) Participants(ctx context.Context, taskIDs []xid.ID) (map[xid.ID]*Participants, error) {
	const query = `
SELECT task_id, agent_id, true FROM task_reviewers WHERE task_id = ANY($1)
UNION ALL SELECT task_id, agent_id, false FROM task_approvers WHERE task_id = ANY($1) ORDER BY 2`
	found := map[xid.ID]*Participants{}
	_, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var task, agent xid.ID
		var reviews bool
		err := rows.Scan(&task, &agent, &reviews)
		p := found[task]
		if p == nil {
			p = &Participants{}
			found[task] = p
		}
		if reviews {
			p.Reviewers = append(p.Reviewers, agent)
		} else {
			p.Approvers = append(p.Approvers, agent)
		}
		return struct{}{}, err
	}, query, pgtx.IDs(taskIDs))
	return found, pgtx.Wrap("read the tasks' participants", err)
}

// Mentions reads whom comments mention, in one query.
func (s *Reads) Mentions(ctx context.Context, commentIDs []xid.ID) (map[xid.ID][]xid.ID, error) {
	found := map[xid.ID][]xid.ID{}
	_, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var comment, agent xid.ID
		err := rows.Scan(&comment, &agent)
		found[comment] = append(found[comment], agent)
		return struct{}{}, err
	}, `SELECT comment_id, agent_id FROM comment_mentions WHERE comment_id = ANY($1) ORDER BY agent_id`, pgtx.IDs(commentIDs))
	return found, pgtx.Wrap("read the comments' mentions", err)
}

// BlockedTasks says which of the tasks have an open blocker.
func (s *Reads) BlockedTasks(ctx context.Context, taskIDs []xid.ID) (map[xid.ID]bool, error) {
	blocked, err := pgtx.Collect(ctx, s.pool, pgtx.ScanOne[xid.ID], guard.BlockedTasks, pgtx.IDs(taskIDs))
	found := make(map[xid.ID]bool, len(blocked))
	for _, id := range blocked {
		found[id] = true
	}
	return found, pgtx.Wrap("read which tasks are blocked", err)
}

// ActionableTasks counts the tasks of agents in TODO or IN_PROGRESS.
func (s *Reads) ActionableTasks(ctx context.Context, agentIDs []xid.ID) (map[xid.ID]int, error) {
	const query = `
SELECT x.assignee_id, count(*)
FROM tasks x
WHERE x.assignee_id = ANY($1) AND ` + guard.TaskActionable + `
GROUP BY x.assignee_id`
	found := map[xid.ID]int{}
	_, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (struct{}, error) {
		var agent xid.ID
		var n int
		err := rows.Scan(&agent, &n)
		found[agent] = n
		return struct{}{}, err
	}, query, pgtx.IDs(agentIDs))
	return found, pgtx.Wrap("count the agents' tasks", err)
}
