package store

import (
	"context"
	"database/sql"

	"rouse.dev/rouse/internal/prompt"
	"rouse.dev/rouse/internal/store/pgtx"
)

// Bounds of what a prompt is told of the runs of others; the prompt cuts further.
const (
	outcomeRuns = 10   // the newest of a task that are looked at
	outcomeText = 4100 // characters of each
)

// outcomesOf are what agents said at the ends of their last runs about tasks that ended well, by task, the newest first. What they
// said was masked when it was stored. Of the run's own task there are those of other agents alone.
func (t *tx) outcomesOf(ctx context.Context, run runRow, taskIDs []string) (map[string][]prompt.Outcome, error) {
	found := map[string][]prompt.Outcome{}
	if len(taskIDs) == 0 {
		return found, nil
	}
	const query = `
-- $1 the tasks, $2 how many runs of each, $3 characters, $4 the run's task, $5 its agent
SELECT k.id, a.id, a.name,
  CASE
  WHEN k.assignee_id = a.id THEN 'assignee'
  WHEN EXISTS (SELECT 1 FROM task_reviewers p WHERE p.task_id = k.id AND p.agent_id = a.id) THEN 'reviewer'
  WHEN EXISTS (SELECT 1 FROM task_approvers p WHERE p.task_id = k.id AND p.agent_id = a.id) THEN 'approver'
  ELSE '' END,
  left(r.summary, $3), r.finished_at
FROM tasks k
CROSS JOIN LATERAL (
  SELECT DISTINCT ON (newest.agent_id) newest.*
  FROM (
    SELECT agent_id, summary, finished_at, requested_at, id
    FROM runs
    WHERE task_id = k.id AND status = 'FINISHED' AND outcome = 'processed' AND summary <> ''
    ORDER BY requested_at DESC, id DESC
    LIMIT $2) AS newest
  ORDER BY newest.agent_id, newest.requested_at DESC, newest.id DESC) r
JOIN agents a ON a.id = r.agent_id
WHERE k.id = ANY($1) AND (k.id <> $4 OR a.id <> $5)
ORDER BY k.id, r.requested_at DESC, r.id DESC`
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (o prompt.Outcome, err error) {
		var of string
		err = rows.Scan(&of, &o.AgentID, &o.Agent, &o.Part, &o.Text, &o.At)
		found[of] = append(found[of], o)
		return o, err
	}, query, pgtx.TextArray(taskIDs), outcomeRuns, outcomeText, run.taskID, run.agentID)
	return found, pgtx.Wrap("read what runs about the tasks came to", err)
}

// withOutcomes gives each task what its assignee said, or else who said something last. A task without a title is one that the
// agent may not read.
func (n *namedRecords) withOutcomes(tasks []prompt.TaskRef) []prompt.TaskRef {
	for i := range tasks {
		if tasks[i].Title == "" {
			continue
		}
		for _, o := range n.outcomes[tasks[i].ID] {
			if o.Part == "assignee" || tasks[i].Outcome == nil {
				o.Part = ""
				tasks[i].Outcome = &o
			}
		}
	}
	return tasks
}

// colleaguesQuery reads the agents that coordinators $1 may give work to, $2 of those that report to each, and as many others.
const colleaguesQuery = `
SELECT c.id, x.id, x.name, x.role, left(x.instructions, $3),
  CASE WHEN l.status = 'IDLE' AND l.running > 0 THEN 'WORKING' ELSE l.status END
FROM agents c
CROSS JOIN LATERAL (
  (SELECT id, name, role, instructions, created_at, 1 AS near
  FROM agents
  WHERE manager_id = c.id AND deleted_at IS NULL
  ORDER BY created_at, id
  LIMIT $2)
  UNION ALL
  (SELECT id, name, role, instructions, created_at, 2
  FROM agents
  WHERE workspace_id = c.workspace_id AND deleted_at IS NULL AND id <> c.id AND manager_id IS DISTINCT FROM c.id
  ORDER BY created_at, id
  LIMIT $2)) x
JOIN agent_lanes l ON l.agent_id = x.id
WHERE c.id = ANY($1)
ORDER BY c.id, x.near, x.created_at, x.id`

// Bounds of what a coordinator is told of its colleagues; the prompt cuts further.
const (
	promptColleagues = 41 // one more than it shows
	aboutColleague   = 800
)
