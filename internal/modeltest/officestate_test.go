package modeltest

import (
	"context"

	"rouse.dev/rouse/internal/xid"
)

// officeQuery renders tasks, the wakes about them and money as the model renders its own.
const officeQuery = `
WITH a AS (SELECT *, row_number() OVER (ORDER BY agent_id) AS n FROM agent_lanes WHERE workspace_id = $1),
q AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM wakeup_requests WHERE workspace_id = $1),
r AS (SELECT id, row_number() OVER (ORDER BY id) AS n FROM runs WHERE workspace_id = $1),
k AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM tasks WHERE workspace_id = $1),
b AS (SELECT *, row_number() OVER (ORDER BY id) AS n, period <> 'TOTAL' AND period_start < date_trunc('month', clock_timestamp(), 'UTC') AS old
      FROM budget_policies WHERE workspace_id = $1)
SELECT 1, n, id, format('task %s %s archived=%s office=%s assignee=%s version=%s held=%s asking=%s open=%s', n, state, (archived_at IS NOT NULL)::text,
  (project_id IS NOT NULL OR workflow_id = (SELECT office_workflow_id FROM workspaces w WHERE w.id = $1))::text,
  coalesce((SELECT n FROM a WHERE agent_id = assignee_id), 0), assignment_version, coalesce((SELECT n FROM r WHERE r.id = checkout_run_id), 0),
  EXISTS (SELECT 1 FROM approvals p WHERE p.task_id = k.id AND p.completion AND p.status = 'PENDING')::text,
  (SELECT string_agg(x.n::text, ',' ORDER BY x.n) FROM task_blockers l JOIN k x ON x.id = l.blocker_id
   WHERE l.task_id = k.id AND x.state NOT IN ('DONE', 'CANCELLED') AND x.archived_at IS NULL)) FROM k
UNION ALL
SELECT 2, n, id, format('wake %s %s %s agent=%s task=%s recovered=%s', n, source, basis, (SELECT n FROM a WHERE a.agent_id = q.agent_id),
  coalesce((SELECT n FROM k WHERE k.id = q.task_id), 0), recovered::text) FROM q
UNION ALL
SELECT 3, n, agent_id, format('agent %s paused=%s', n, coalesce(pause_reason::text, 'none')) FROM a
UNION ALL
SELECT 4, n, id, format('budget %s limit=%s spent=%s reserved=%s alerted=%s', n, (limit_usd * 1000000)::bigint, CASE WHEN old THEN 0 ELSE (spent_usd * 1000000)::bigint END,
  (reserved_usd * 1000000)::bigint, CASE WHEN old THEN 0 ELSE alerted_percent END) FROM b
ORDER BY 1, 2`

// The kinds of officeQuery that have ids which the moves need.
const (
	kindTask   = 1
	kindBudget = 4
)

// officeState reads the workspace's tasks, wakes and money, a line for each, and the ids of tasks and budgets in the order
// of their numbers.
func (w *place) officeState(ctx context.Context) (lines []string, tasks, budgets []xid.ID, err error) {
	rows, err := w.readOffice.QueryContext(ctx, w.workspace)
	if err != nil {
		return nil, nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var kind, n int
		var id xid.ID
		var line string
		if err := rows.Scan(&kind, &n, &id, &line); err != nil {
			return nil, nil, nil, err
		}
		lines = append(lines, line)
		switch kind {
		case kindTask:
			tasks = append(tasks, id)
		case kindBudget:
			budgets = append(budgets, id)
		}
	}
	return lines, tasks, budgets, rows.Err()
}
