package guard

// AwaitsRun says in SQL that something about the task k is on its way to a run, though no run has it: it is unrouted, or its
// guard dropped it and it is sent again once the task is free or the agent is resumed (SPEC S6.3, S5.6).
const AwaitsRun = `EXISTS (SELECT 1 FROM wakeup_requests u WHERE u.task_id = k.id AND (` + Unrouted + `
    OR u.status = 'SKIPPED' AND u.end_reason = 'CHECKOUT_HELD' AND k.checkout_run_id IS NOT NULL
    OR u.end_reason IN ('AGENT_INACTIVE', 'BUDGET_BLOCKED') AND u.wake_class = 'EVENT' AND EXISTS (
      SELECT 1 FROM agent_lanes l JOIN agents a ON a.id = l.agent_id
      WHERE l.agent_id = u.agent_id
        AND u.finished_at >= least(l.paused_at, l.resend_from)
        AND a.deleted_at IS NULL)))`

// HasRun says in SQL that a run of the task k is queued or live.
const HasRun = `EXISTS (SELECT 1 FROM runs o WHERE o.task_id = k.id AND o.status IN ('QUEUED', 'CLAIMED'))`

// openBlocker and openApproval say in SQL that the task k has one.
var (
	OpenBlocker = `EXISTS (
  SELECT 1
  FROM task_blockers b
  JOIN tasks x ON x.id = b.blocker_id
  WHERE b.task_id = k.id AND ` + TaskOpen("x") + `)`
	OpenApproval = `EXISTS (SELECT 1 FROM approvals p WHERE p.task_id = k.id AND p.status = 'PENDING')`
)

// TaskOpen says in SQL that the task of this alias is neither done, cancelled, archived nor deleted.
func TaskOpen(alias string) string {
	return alias + `.state NOT IN ('DONE', 'CANCELLED') AND ` + alias + `.archived_at IS NULL AND ` + alias + `.deleted_at IS NULL`
}

// TaskActionable says in SQL that an agent has something to do about the task x: it is in TODO or in progress, and neither
// archived nor deleted. Agents without such tasks are idle (SPEC S6.2).
const TaskActionable = `x.state IN ('TODO', 'IN_PROGRESS') AND x.archived_at IS NULL AND x.deleted_at IS NULL`

// NamedBlind says in SQL of a link b to a blocker x that the agent named the blocker by itself, and that the blocker is no
// sibling of its task, which whoever made both could read. It would else read any task by naming it (SPEC S7.4).
func NamedBlind(agent string) string {
	return `(b.linked_by_id = ` + agent + ` AND (x.parent_id = (SELECT o.parent_id FROM tasks o WHERE o.id = b.task_id)) IS NOT TRUE)`
}

// HasOpenBlocker says in SQL that a blocker of the task t is open (SPEC S5.3).
var HasOpenBlocker = `EXISTS (
  SELECT 1
  FROM task_blockers b
  JOIN tasks x ON x.id = b.blocker_id
  WHERE b.task_id = t.id AND ` + TaskOpen("x") + `)`

// BlockedTasks finds those of the tasks $1 that have an open blocker (SPEC S5.3).
var BlockedTasks = `
SELECT DISTINCT b.task_id
FROM task_blockers b
JOIN tasks x ON x.id = b.blocker_id
WHERE b.task_id = ANY($1) AND ` + TaskOpen("x")
