package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/xid"
)

// Participants are the agents that review and approve a task, in the order of their ids.
type Participants struct{ Reviewers, Approvers []xid.ID }

// Participants reads who reviews and approves tasks, in one query.
func (s *Store) Participants(ctx context.Context, taskIDs []xid.ID) (map[xid.ID]*Participants, error) {
	const query = `
SELECT task_id, agent_id, true FROM task_reviewers WHERE task_id = ANY($1)
UNION ALL SELECT task_id, agent_id, false FROM task_approvers WHERE task_id = ANY($1) ORDER BY 2`
	found := map[xid.ID]*Participants{}
	_, err := collect(ctx, s.reads, func(rows *sql.Rows) (struct{}, error) {
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
	}, query, ids(taskIDs))
	return found, wrap("read the tasks' participants", err)
}

// Mentions reads whom comments mention, in one query.
func (s *Store) Mentions(ctx context.Context, commentIDs []xid.ID) (map[xid.ID][]xid.ID, error) {
	found := map[xid.ID][]xid.ID{}
	_, err := collect(ctx, s.reads, func(rows *sql.Rows) (struct{}, error) {
		var comment, agent xid.ID
		err := rows.Scan(&comment, &agent)
		found[comment] = append(found[comment], agent)
		return struct{}{}, err
	}, `SELECT comment_id, agent_id FROM comment_mentions WHERE comment_id = ANY($1) ORDER BY agent_id`, ids(commentIDs))
	return found, wrap("read the comments' mentions", err)
}

// blockedTasksQuery finds those of the tasks $1 that have an open blocker (SPEC S5.3).
var blockedTasksQuery = `SELECT DISTINCT b.task_id FROM task_blockers b JOIN tasks x ON x.id = b.blocker_id WHERE b.task_id = ANY($1) AND ` + isOpen("x")

// BlockedTasks says which of the tasks have an open blocker.
func (s *Store) BlockedTasks(ctx context.Context, taskIDs []xid.ID) (map[xid.ID]bool, error) {
	blocked, err := collect(ctx, s.reads, scanOne[xid.ID], blockedTasksQuery, ids(taskIDs))
	found := make(map[xid.ID]bool, len(blocked))
	for _, id := range blocked {
		found[id] = true
	}
	return found, wrap("read which tasks are blocked", err)
}

// ActionableTasks counts the tasks of agents in TODO or IN_PROGRESS.
func (s *Store) ActionableTasks(ctx context.Context, agentIDs []xid.ID) (map[xid.ID]int, error) {
	const query = `
SELECT x.assignee_id, count(*) FROM tasks x WHERE x.assignee_id = ANY($1) AND ` + isActionable + ` GROUP BY x.assignee_id`
	found := map[xid.ID]int{}
	_, err := collect(ctx, s.reads, func(rows *sql.Rows) (struct{}, error) {
		var agent xid.ID
		var n int
		err := rows.Scan(&agent, &n)
		found[agent] = n
		return struct{}{}, err
	}, query, ids(agentIDs))
	return found, wrap("count the agents' tasks", err)
}

// RouteRequests routes requests that were just made, with all else that their agents have unrouted. One agent's failure
// does not keep the others from it; the dispatcher comes back to what is left.
func (s *Store) RouteRequests(ctx context.Context, requests []xid.ID) error {
	if len(requests) == 0 {
		return nil
	}
	agents, err := collect(ctx, s.db, scanOne[xid.ID], `SELECT DISTINCT agent_id FROM wakeup_requests WHERE id = ANY($1) ORDER BY 1`, ids(requests))
	if err != nil {
		return fmt.Errorf("find whose requests they are: %w", err)
	}
	for _, agent := range agents {
		if _, routeErr := s.Route(ctx, agent); routeErr != nil && err == nil {
			err = routeErr
		}
	}
	return err
}
