package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// recoveryPage is how many unstarted tasks are looked at together.
const recoveryPage = 200

// Recovered is a task that the sweep dispatched again.
type Recovered struct{ WorkspaceID, TaskID, AgentID, RequestID xid.ID }

// Recover sends the assignees of unstarted office tasks a TASK_ASSIGNED again, once per assignment (SPEC S8.5). Where
// no workspace has an office workflow or a project, it takes one statement and looks at no task. A request that cannot
// be sent does not stop the others. The error joins what went wrong, and what is returned was sent.
func (s *Attempts) Recover(ctx context.Context) ([]Recovered, error) {
	const adopted = `
SELECT EXISTS (SELECT 1 FROM workspaces WHERE office_workflow_id IS NOT NULL)
  OR EXISTS (SELECT 1 FROM projects WHERE deleted_at IS NULL)`
	office, err := pgtx.QueryOne[bool](ctx, s.db, adopted)
	if err != nil || !office {
		return nil, pgtx.Wrap("look for office workflows and projects", err)
	}
	var done []Recovered
	var problems []error
	var after unstarted
	for {
		page, err := pgtx.Collect(ctx, s.db, scanUnstarted, unstartedQuery+recoveryAfter, after.createdAt, after.taskID, recoveryPage)
		if err != nil {
			return done, errors.Join(append(problems, fmt.Errorf("look for unstarted tasks: %w", err))...)
		}
		recovered, failed := s.recoverPage(ctx, page)
		done, problems = append(done, recovered...), append(problems, failed...)
		if len(page) < recoveryPage || pgtx.EndsAll(ctx, errors.Join(failed...)) {
			return done, errors.Join(problems...)
		}
		after = page[len(page)-1]
	}
}

// recoverPage dispatches what may be dispatched, in one transaction for each workspace. Tasks that fail are found by
// bisecting.
func (s *Attempts) recoverPage(ctx context.Context, page []unstarted) (done []Recovered, failed []error) {
	byWorkspace := map[xid.ID][]xid.ID{}
	for _, u := range page {
		if domain.Recover(u.facts) {
			byWorkspace[u.workspaceID] = append(byWorkspace[u.workspaceID], u.taskID)
		}
	}
	for workspaceID, tasks := range byWorkspace {
		unfit := pgtx.Bisect(ctx, tasks, func(some []xid.ID) error {
			var recovered []Recovered
			err := s.inTx(ctx, func(t *tx) (err error) {
				recovered, err = t.recoverTasks(ctx, workspaceID, some)
				return err
			})
			if err == nil {
				done = append(done, recovered...)
			}
			return err
		}, func(some []xid.ID, err error) error {
			return fmt.Errorf("recover %s of workspace %s: %w", pgtx.Named("task", some), workspaceID, err)
		})
		if failed = append(failed, unfit...); pgtx.EndsAll(ctx, errors.Join(unfit...)) {
			break
		}
	}
	return done, failed
}

// recoverTasks locks tasks, judges them again and dispatches those that are still to be.
func (t *tx) recoverTasks(ctx context.Context, workspaceID xid.ID, tasks []xid.ID) (done []Recovered, err error) {
	if _, err := pgtx.Exec(ctx, t, `SELECT 1 FROM tasks WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE`, pgtx.IDs(tasks)); err != nil {
		return nil, fmt.Errorf("lock tasks: %w", err)
	}
	if err := t.ReadClock(ctx); err != nil {
		return nil, err
	}
	found, err := pgtx.Collect(ctx, t, scanUnstarted, unstartedQuery+` AND t.id = ANY($1) ORDER BY t.created_at, t.id`, pgtx.IDs(tasks))
	if err != nil {
		return nil, fmt.Errorf("read unstarted tasks: %w", err)
	}
	budgets, err := pgtx.Collect(ctx, t, guard.ScanBudget, `SELECT `+guard.BudgetColumns+` FROM budget_policies b WHERE workspace_id = $1`, workspaceID)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	for _, u := range found {
		u.facts.OverBudget = slices.ContainsFunc(budgets, func(b guard.Budget) bool {
			return b.ChargedWith(u.workspaceID, u.agentID, u.projectID) && b.OnExceed == domain.BudgetActionPauseAgent && b.At(t.Now).Exceeded()
		})
		if !domain.Recover(u.facts) {
			continue
		}
		request, err := t.recoverTask(ctx, u)
		if err != nil {
			return nil, err
		}
		done = append(done, Recovered{u.workspaceID, u.taskID, u.agentID, request})
	}
	if len(done) == 0 {
		return nil, nil
	}
	return done, t.note(ctx, entry{workspaceID: workspaceID, code: domain.ActivityCodeRecoverySweepComplete, by: system("recovery"),
		summary: fmt.Sprintf("The recovery sweep dispatched %d unstarted tasks.", len(done)), data: map[string]any{"dispatchedCount": len(done), "dispatched_count": len(done)}})
}

func (t *tx) recoverTask(ctx context.Context, u unstarted) (xid.ID, error) {
	basis, causation := domain.WakeBasisAssignee, xid.New("cau")
	id, _, err := t.insertRequest(ctx, newRequest{
		workspaceID: u.workspaceID, agentID: u.agentID, taskID: u.taskID, causationID: causation, scope: domain.TaskScope(string(u.taskID)),
		source: domain.WakeupSourceTaskAssigned, basis: &basis, class: domain.WakeClassEvent, reason: "the assigned task was never started",
		payload: &domain.TaskPayload{TaskID: string(u.taskID), Basis: basis}, key: u.key, recovered: true,
	})
	if err != nil {
		return "", err
	}
	t.onCommit(func(s *base) {
		s.log.Info("unstarted task dispatched", "task_id", u.taskID, "agent_id", u.agentID, "workspace_id", u.workspaceID, "wakeup_id", id, "causation_id", causation)
	})
	return id, t.note(ctx, entry{workspaceID: u.workspaceID, code: domain.ActivityCodeRecoveryDispatch, by: system("recovery"),
		summary: "The assigned task was never started; its agent is woken again.", subjectID: u.taskID, agentID: u.agentID, taskID: u.taskID, causationID: causation,
		data: map[string]any{"task_id": u.taskID, "agent": u.agentID, "wakeupRequestId": id}})
}

// unstarted is a task that the sweep looks at. key is the idempotency key of its recovery.
type unstarted struct {
	taskID, workspaceID, agentID, projectID xid.ID
	createdAt                               time.Time
	key                                     string
	facts                                   domain.RecoveryFacts
}

func scanUnstarted(rows *sql.Rows) (u unstarted, err error) {
	err = rows.Scan(&u.taskID, &u.workspaceID, &u.agentID, &u.projectID, &u.createdAt, &u.key, &u.facts.AgentHeld, &u.facts.Started, &u.facts.Waiting,
		&u.facts.Blocked, &u.facts.CancelledByPerson, &u.facts.Tried)
	return u, err
}

// unstartedQuery selects office tasks in TODO that have an assignee and were made inside their workspace's lookback, with
// the facts of domain.Recover but the budgets. The last assignment is the newest TASK_ASSIGNED of the assignee, or the
// task itself where there was none.
var unstartedQuery = `
SELECT t.id, t.workspace_id, t.assignee_id, t.project_id, t.created_at,
  'recovery:' || t.id || ':' || t.assignment_version,
  a.deleted_at IS NOT NULL OR l.status IN ('PAUSED', 'STOPPED'),
  -- started: it has a run that works or worked; one that a guard ended without launching it does not count
  EXISTS (
    SELECT 1
    FROM runs r
    WHERE r.task_id = t.id
      AND (r.status IN ('QUEUED', 'CLAIMED')
        OR r.status = 'FINISHED' AND coalesce(r.outcome, '') NOT IN ('` + strings.Join(domain.SkipOutcomes, "', '") + `'))),
  -- waiting: a wake is on its way, or is sent again when the task is free
  EXISTS (
    SELECT 1
    FROM wakeup_requests q
    WHERE q.task_id = t.id
      AND (q.status IN ('QUEUED', 'CLAIMED') OR q.status = 'SKIPPED' AND q.end_reason = 'CHECKOUT_HELD')),
  ` + guard.HasOpenBlocker + `,
  -- cancelled by a person since the task was assigned, who does not want it back
  EXISTS (
    SELECT 1
    FROM runs r
    WHERE r.task_id = t.id
      AND r.status = 'CANCELLED'
      AND r.end_reason = 'CANCELLED_BY_USER'
      AND r.finished_at >= coalesce((
        SELECT max(q.requested_at)
        FROM wakeup_requests q
        WHERE q.task_id = t.id
          AND q.source = 'TASK_ASSIGNED'
          AND q.basis = 'ASSIGNEE'
          AND q.agent_id = t.assignee_id
          AND NOT q.recovered), t.created_at)),
  -- tried: this assignment was recovered before
  EXISTS (
    SELECT 1
    FROM wakeup_requests q
    WHERE q.workspace_id = t.workspace_id
      AND q.idempotency_key = 'recovery:' || t.id || ':' || t.assignment_version)
FROM tasks t JOIN workspaces w ON w.id = t.workspace_id JOIN workflows f ON f.id = t.workflow_id
JOIN agents a ON a.id = t.assignee_id JOIN agent_lanes l ON l.agent_id = t.assignee_id
WHERE t.state = 'TODO' AND t.assignee_id IS NOT NULL AND t.archived_at IS NULL AND t.deleted_at IS NULL
  AND ` + officeTask + `
  AND t.created_at >= clock_timestamp() - w.recovery_lookback_hours * interval '1 hour'`

// recoveryAfter goes through them page by page.
const recoveryAfter = ` AND (t.created_at, t.id) > ($1, $2) ORDER BY t.created_at, t.id LIMIT $3`
