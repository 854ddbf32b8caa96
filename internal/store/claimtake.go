package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// take claims runs of locked lanes, and starts them where the order says so. All of them come, unless the claim is full.
func (c *claimer) take(ctx context.Context, runs []runRow) ([]Claimed, error) {
	if c.launch != nil {
		return c.launch(ctx, c, runs)
	}
	return c.takeAll(ctx, runs)
}

// takeAll claims runs of locked lanes: their rows, checkouts, attempts, leases, events and requests in one statement. All or
// none. The tasks are locked, free, and each of one run only. A run with a queue is offered: its lease has no owner.
func (c *claimer) takeAll(ctx context.Context, runs []runRow) ([]Claimed, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	const query = `
-- $1 runs, $2 ids of the attempts, $3 ids of the entries, $4 queues, or "", $5 now, $6 owner, $7 end of the
-- owner's leases, $8 its host, $9 id of the host's boot, $10 its process, $11 when that began, $12 end of the
-- offers
WITH n AS (
  SELECT *
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS n (run_id, attempt_id, activity_id, queue)),
r AS (
  UPDATE runs
  SET status = 'CLAIMED', attempt = attempt + 1, claimed_at = $5, started_at = NULL, session_id = NULL,
    revision = revision + 1, event_seq = event_seq + 1
  FROM n
  WHERE id = n.run_id AND status = 'QUEUED'
  RETURNING id, workspace_id, agent_id, task_id, causation_id, attempt, event_seq, attempt_id, activity_id,
    NULLIF(queue, '') AS queue),
co AS (
  UPDATE tasks t
  SET checkout_agent_id = r.agent_id, checkout_run_id = r.id, checkout_at = $5
  FROM r
  WHERE t.id = r.task_id),
act AS (` + activityInto + `
  SELECT activity_id, workspace_id, '` + string(domain.ActivityCodeRunClaimed) + `',
    CASE WHEN queue IS NULL THEN 'The run was claimed.' ELSE 'The run was offered to workers.' END,
    'SYSTEM', 'queue', id, agent_id, task_id,
    jsonb_strip_nulls(jsonb_build_object('agent', agent_id, 'task_id', task_id, 'attempt', attempt, 'queue', queue)),
    causation_id, $5
  FROM r),
att AS (
  INSERT INTO run_attempts (id, workspace_id, run_id, number, status, owner, started_at)
  SELECT attempt_id, workspace_id, id, attempt,
    CASE WHEN queue IS NULL THEN '` + string(domain.RunAttemptStatusLaunching) + `' ELSE 'OFFERED' END,
    CASE WHEN queue IS NULL THEN $6::text ELSE '' END, $5
  FROM r),
lease AS (
  INSERT INTO attempt_leases (run_id, workspace_id, agent_id, attempt, owner, queue, lease_until,
    host, boot_id, owner_pid, owner_started)
  SELECT id, workspace_id, agent_id, attempt, $6, NULL, $7::timestamptz, $8, $9, $10::bigint, $11::bigint
  FROM r
  WHERE queue IS NULL
  UNION ALL
  SELECT id, workspace_id, agent_id, attempt, NULL, queue, $12, NULL, NULL, NULL, NULL
  FROM r
  WHERE queue IS NOT NULL),
evt AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, 'CLAIMED', attempt,
    CASE WHEN queue IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('queue', queue) END, $5
  FROM r),
req AS (
  UPDATE wakeup_requests q
  SET status = 'CLAIMED', claimed_at = $5
  FROM r
  WHERE q.run_id = r.id AND q.status = 'QUEUED')
SELECT id, attempt FROM r`
	runIDs, queues := make([]xid.ID, len(runs)), make([]string, len(runs))
	for i, run := range runs {
		runIDs[i], queues[i] = run.id, run.queue
	}
	numbers := map[xid.ID]int{}
	_, err := pgtx.Collect(ctx, c, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var number int
		err := rows.Scan(&id, &number)
		numbers[id] = number
		return struct{}{}, err
	}, query, pgtx.IDs(runIDs), pgtx.IDs(newIDs("att", len(runs))), pgtx.IDs(newIDs("act", len(runs))), pgtx.TextArray(queues),
		c.Now, c.owner.ID, c.Now.Add(c.lease), c.owner.Host, c.owner.BootID, c.owner.PID, c.owner.Started, c.Now.Add(domain.OfferPatience))
	if err != nil {
		return nil, fmt.Errorf("claim runs %v: %w", runIDs, err)
	}
	if len(numbers) != len(runs) {
		return nil, fmt.Errorf("claim runs %v: only %d were queued", runIDs, len(numbers))
	}
	if err := c.reserve(ctx, runs, numbers); err != nil {
		return nil, err
	}
	taken := make([]Claimed, len(runs))
	for i, run := range runs {
		taken[i] = c.took(run, numbers[run.id])
	}
	return taken, nil
}

// took notes what follows from the claim of a run.
func (c *claimer) took(run runRow, number int) Claimed {
	c.taken[run.workspaceID]++
	if _, bound := c.free[run.workspaceID]; bound {
		c.free[run.workspaceID]--
	}
	c.fed(run.workspaceID)
	c.Count(func(m *metrics.Counters) {
		m.RunClaimed(run.workspaceID)
		if number == 1 { // a retry waits because it must
			m.RunWaited(run.workspaceID, c.Now.Sub(run.requestedAt))
		}
	})
	c.Publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id})
	if run.queue != "" {
		c.Publish(event.Event{Kind: event.Offer, WorkspaceID: run.workspaceID, ID: run.workspaceID})
	}
	return Claimed{Attempt: Attempt{RunID: run.id, Number: number, Owner: c.owner.ID}, WorkspaceID: run.workspaceID, AgentID: run.agentID,
		CausationID: run.causationID, Queue: run.queue}
}

// countTaken adds what was claimed to the workspaces' counts; their lanes are locked already.
func (c *claimer) countTaken(ctx context.Context) error {
	for workspaceID, n := range c.taken {
		if _, err := c.countWorkspace(ctx, workspaceID, n); err != nil {
			return err
		}
	}
	return nil
}

// countWorkspace changes how many live runs a workspace has, and says whether it has budgets.
func (t *tx) countWorkspace(ctx context.Context, workspaceID xid.ID, by int) (budgeted bool, err error) {
	const query = `
UPDATE workspace_lanes
SET running = running + $2,
  released_at = CASE WHEN $2 < 0 AND running >= max_running THEN $3 ELSE released_at END
WHERE workspace_id = $1
RETURNING EXISTS (SELECT 1 FROM budget_policies b WHERE b.workspace_id = $1)`
	if budgeted, err = pgtx.QueryOne[bool](ctx, t, query, workspaceID, by, t.Now); err != nil {
		return false, fmt.Errorf("count the workspace's live runs: %w", err)
	}
	return budgeted, nil
}

func (c *claimer) parkGuardError(ctx context.Context, run runRow, cause error) error {
	count := run.guardErrors + 1
	const park = `
UPDATE runs
SET parked_reason = 'GUARD_ERROR', parked_until = $2, guard_errors = $3, revision = revision + 1
WHERE id = $1 AND status = 'QUEUED'`
	if err := pgtx.ExecOne(ctx, c, park, run.id, c.Now.Add(domain.GuardBackoff(count)), count); err != nil {
		return fmt.Errorf("park run after a guard error: %w", err)
	}
	if err := c.runEvent(ctx, run, domain.RunEventKindGuard, 0, map[string]any{"parked": domain.ParkedReasonGuardError, "errors": count}); err != nil {
		return err
	}
	c.onCommit(func(s *base) {
		s.log.Error("guard could not be evaluated", keysOf(run, "errors", count, "error", cause)...)
	})
	if err := c.releaseScope(ctx, run.agentID, run.scope); err != nil || count != domain.GuardErrorsForInbox {
		return err
	}
	return c.inbox(ctx, item{workspaceID: run.workspaceID, kind: domain.InboxKindAgentError, dedupe: "guard_error:" + string(run.id), title: "A run of {agent} cannot be judged",
		body:    fmt.Sprintf("The guards of run %s failed %d times. The server's log has the cause.", run.id, count),
		subject: run.id, causationID: run.causationID, about: run.agentID, taskID: run.taskID})
}
