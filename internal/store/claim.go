package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// Owner identifies a process on the leases it holds. Started is the kernel's start time of the process, in clock ticks
// since boot, so that a pid used again is not taken for it.
type Owner struct {
	ID           xid.ID
	Host, BootID string
	PID          int
	Started      int64
}

// Attempt names one try at a run and its owner: the fence of every report (SPEC S7.7).
type Attempt struct {
	RunID  xid.ID
	Number int
	Owner  xid.ID
}

// Claimed is a run taken for execution, or, with a Queue, offered to the workers of that queue and owned by nobody. Lease is
// set where it is another one than the owner asked for.
type Claimed struct {
	Attempt
	WorkspaceID, AgentID xid.ID
	CausationID          xid.ID // "" for what a remote worker knows of a run
	Queue                string
	Lease                time.Duration
}

// Bounds of one claim.
const (
	claimBatch        = 16  // runs in one transaction
	settlesPerLane    = 100 // heads of one lane that a claim settles before it goes on
	passesBeforeWait  = 3   // passes a lane is found due but locked before it is claimed alone, waiting
	promotionsPerPass = 64  // lanes whose parked runs one pass makes due
)

// Claim takes up to max due runs of agents with a free session, oldest first, settles what a guard refuses, and leases
// the rest to owner (SPEC S6.1, S6.2). Fewer than max may come although more are due: call it again until none comes.
// None means that nothing is due: a lane that is only locked is looked at again, and in the end waited for. Runs that
// workers execute are offered to their queue, and are not among those that come (SPEC S7.1).
func (s *Store) Claim(ctx context.Context, owner Owner, max int, lease time.Duration) ([]Claimed, error) {
	if err := s.promoteDue(ctx); err != nil {
		return nil, wrap("promote parked runs", err)
	}
	limit := min(max, claimBatch)
	for {
		lanes, err := s.dueLanes(ctx, limit)
		if err != nil || len(lanes) == 0 {
			return nil, wrap("list due lanes", err)
		}
		batch, err := s.claimLanes(ctx, claimOrder{owner: owner, agents: lanes, limit: limit, lease: lease})
		if err != nil {
			return nil, wrap("claim", err)
		}
		claimed := batch.claimed
		for _, agentID := range s.starved.update(lanes, batch.locked) {
			alone, err := s.claimLanes(ctx, claimOrder{owner: owner, agents: []xid.ID{agentID}, limit: min(1, limit-len(claimed)), lease: lease, wait: true})
			if err != nil {
				return claimed, wrap("claim a busy lane", err)
			}
			claimed = append(claimed, alone.claimed...)
			batch.settled += alone.settled + alone.offered
		}
		batch.settled += batch.offered
		if len(claimed) > 0 || batch.settled == 0 && len(batch.locked) == len(lanes) {
			return claimed, nil
		}
	}
}

// workspacesDue is the workspaces that have a due lane, found by a loose index scan: one probe for each of them, however
// many lanes or idle workspaces there are. It is a part of a WITH RECURSIVE.
const workspacesDue = `
due_workspaces AS (
  (SELECT workspace_id FROM agent_lanes WHERE head_at IS NOT NULL AND running < max_sessions ORDER BY workspace_id LIMIT 1)
  UNION ALL
  SELECT (SELECT l.workspace_id FROM agent_lanes l WHERE l.head_at IS NOT NULL AND l.running < l.max_sessions AND l.workspace_id > d.workspace_id
          ORDER BY l.workspace_id LIMIT 1)
  FROM due_workspaces d WHERE d.workspace_id IS NOT NULL),
open_workspaces AS (
  SELECT w.workspace_id FROM due_workspaces d JOIN workspace_lanes w ON w.workspace_id = d.workspace_id
  WHERE w.max_running IS NULL OR w.running < w.max_running)`

// dueLanes finds the lanes whose heads are oldest, without locks: a full workspace in front costs the others one probe,
// and resting lanes are told from others in the index (a stable clock makes that possible; the lock looks again).
func (s *Store) dueLanes(ctx context.Context, limit int) ([]xid.ID, error) {
	return collect(ctx, s.db, scanOne[xid.ID], dueLanesQuery, limit)
}

const dueLanesQuery = `
WITH RECURSIVE ` + workspacesDue + `
SELECT l.agent_id FROM open_workspaces w CROSS JOIN LATERAL (
  SELECT agent_id, head_at, head_id FROM agent_lanes
  WHERE workspace_id = w.workspace_id AND head_at IS NOT NULL AND running < max_sessions AND eligible_at <= statement_timestamp()
  ORDER BY head_at, head_id LIMIT $1) l
ORDER BY l.head_at, l.head_id LIMIT $1`

// batch is what one transaction of the claim did.
type batch struct {
	claimed []Claimed
	locked  []xid.ID // lanes that nobody held, whose head's task nobody held
	settled int      // runs that a guard ended or parked
	offered int      // runs that wait for a worker now
}

// claimOrder says what one transaction of the claim is to take. With a queue it only offers runs to that queue's workers.
type claimOrder struct {
	owner  Owner
	agents []xid.ID
	limit  int
	lease  time.Duration
	wait   bool // for lanes that somebody holds; else they are left out
	queue  string
}

// claimLanes claims up to limit runs of the lanes in one transaction, the oldest first: an agent with several free
// sessions has several turns. Since the lanes are those with the oldest heads, these are the oldest runs of all; where
// more lanes may be due than were listed, it stops before a run that is newer than the newest of their heads.
func (s *Store) claimLanes(ctx context.Context, o claimOrder) (done batch, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		done = batch{}
		lanes, err := t.lockDueLanes(ctx, o.agents, o.wait)
		if err != nil || len(lanes) == 0 {
			return err
		}
		c := claimer{tx: t, claimOrder: o, taken: map[xid.ID]int{}, settled: map[xid.ID]int{}, busy: map[xid.ID]bool{}}
		if len(o.agents) >= o.limit {
			c.newest = ptr(lanes[len(lanes)-1])
		}
		if o.wait {
			if err := t.waitForHeads(ctx, lanes); err != nil {
				return err
			}
		}
		if err := c.lockCeilings(ctx, lanes); err != nil {
			return err
		}
		if err := c.readBudgets(ctx, lanes); err != nil {
			return err
		}
		if err := c.claimAll(ctx, lanes, &done); err != nil {
			return err
		}
		for _, l := range lanes {
			if !c.busy[l.agentID] {
				done.locked = append(done.locked, l.agentID)
			}
		}
		return c.countTaken(ctx)
	})
	done.keepOwned()
	return done, err
}

// claimAll takes what the order asks for from locked lanes.
func (c *claimer) claimAll(ctx context.Context, lanes []lane, done *batch) (err error) {
	if c.queue == "" {
		if done.claimed, err = c.claimAhead(ctx, lanes, c.limit); err != nil {
			return err
		}
	}
	for l := c.oldest(lanes); l != nil && len(done.claimed) < c.limit; l = c.oldest(lanes) {
		got, err := c.claimHead(ctx, l)
		if err != nil {
			return err
		}
		switch {
		case got != nil:
			done.claimed = append(done.claimed, *got)
		case !c.busy[l.agentID]:
			done.settled++
		}
	}
	return nil
}

// keepOwned takes out what was offered to workers.
func (b *batch) keepOwned() {
	all := len(b.claimed)
	b.claimed = slices.DeleteFunc(b.claimed, func(c Claimed) bool { return c.Queue != "" })
	b.offered = all - len(b.claimed)
}

func (t *tx) lockDueLanes(ctx context.Context, agents []xid.ID, wait bool) ([]lane, error) {
	skip := ` SKIP LOCKED`
	if wait {
		skip = ``
	}
	lanes, err := t.lockLanes(ctx, lockDueQuery+skip, ids(agents))
	if err != nil {
		return nil, fmt.Errorf("lock due lanes: %w", err)
	}
	return lanes, nil
}

const lockDueQuery = `
SELECT ` + laneColumns + ` FROM agent_lanes
WHERE agent_id = ANY($1) AND head_at IS NOT NULL AND running < max_sessions AND eligible_at <= clock_timestamp()
ORDER BY head_at, head_id FOR NO KEY UPDATE`

// claimer claims the heads of locked lanes.
type claimer struct {
	*tx
	claimOrder
	free    map[xid.ID]int  // free places of workspaces that have a ceiling
	taken   map[xid.ID]int  // runs claimed, by workspace
	settled map[xid.ID]int  // runs ended or parked by a guard, by lane
	newest  *lane           // the newest head that may be taken; nil: there are no other lanes
	busy    map[xid.ID]bool // lanes whose head is about a task that somebody holds, or of a project that was not looked at
	budgets budgets
}

// lockCeilings locks the workspaces' lanes, in id order, and notes how many runs those with a ceiling may still take, and
// which of them have budgets.
func (c *claimer) lockCeilings(ctx context.Context, lanes []lane) error {
	var workspaces []xid.ID
	for _, l := range lanes {
		workspaces = append(workspaces, l.workspaceID)
	}
	const query = `
SELECT workspace_id, max_running - running, EXISTS (SELECT 1 FROM budget_policies b WHERE b.workspace_id = w.workspace_id),
  EXISTS (SELECT 1 FROM budget_policies b WHERE b.workspace_id = w.workspace_id AND b.subject_kind = 'PROJECT')
FROM workspace_lanes w WHERE workspace_id = ANY($1) ORDER BY workspace_id FOR NO KEY UPDATE OF w`
	c.free = map[xid.ID]int{}
	_, err := collect(ctx, c, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var places *int
		var budgeted, byProject bool
		err := rows.Scan(&id, &places, &budgeted, &byProject)
		if budgeted {
			c.budgets.workspaces = append(c.budgets.workspaces, id)
		}
		if byProject {
			c.budgets.byProject = append(c.budgets.byProject, id)
		}
		if places != nil {
			c.free[id] = *places
		}
		return struct{}{}, err
	}, query, ids(workspaces))
	return wrap("lock workspace lanes", err)
}

// oldest is the lane with the oldest head among those that may still give a run; nil: none may.
func (c *claimer) oldest(lanes []lane) *lane {
	var first *lane
	for i := range lanes {
		l := &lanes[i]
		places, bound := c.free[l.workspaceID]
		if l.headAt == nil || c.busy[l.agentID] || l.running >= l.maxSessions || c.settled[l.agentID] >= settlesPerLane || bound && places <= 0 {
			continue
		}
		if first == nil || l.headBefore(first) {
			first = l
		}
	}
	if first != nil && c.newest != nil && c.newest.headBefore(first) {
		return nil
	}
	return first
}

// claimHead claims the lane's head; nil when a guard settled or parked it instead, or it was gone.
func (c *claimer) claimHead(ctx context.Context, l *lane) (*Claimed, error) {
	run, found, err := c.head(ctx, *l)
	if err != nil {
		return nil, err
	}
	taken := 0
	var got *Claimed
	if found {
		var foreign bool
		got, foreign, err = c.judge(ctx, l, run)
		if errors.Is(err, errTaskBusy) || errors.Is(err, errProjectNew) {
			c.busy[l.agentID] = true
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if foreign {
			c.settled[l.agentID] = settlesPerLane // the lane's next turn is not this claim's
			return nil, nil
		}
	}
	if got != nil {
		taken = 1
	} else {
		c.settled[l.agentID]++
	}
	return got, c.moveLane(ctx, l, taken)
}

func (c *claimer) head(ctx context.Context, l lane) (runRow, bool, error) {
	runs, err := collect(ctx, c, scanRun, headQuery, l.agentID)
	if err != nil || len(runs) == 0 {
		return runRow{}, false, wrap("read the lane's head", err)
	}
	return runs[0], true, nil
}

const headQuery = `
SELECT ` + runColumns + ` FROM runs r WHERE r.agent_id = $1 AND r.status = 'QUEUED' AND r.parked_reason IS NULL
ORDER BY r.requested_at, r.id LIMIT 1 FOR NO KEY UPDATE`

// judge runs the guards on one due run and does what they decide, in a savepoint: a guard that cannot be evaluated parks
// that run and stops nothing else (SPEC S6.2, C318). foreign: the run is not for the queue that the claim is about.
func (c *claimer) judge(ctx context.Context, l *lane, run runRow) (got *Claimed, foreign bool, err error) {
	err = c.savepoint(ctx, func() error {
		facts, queue, err := c.admitFacts(ctx, *l, run)
		if err != nil {
			return err
		}
		if foreign = c.queue != "" && queue != c.queue; foreign {
			return nil
		}
		a := domain.Admit(facts)
		if err := c.dropStale(ctx, run, a.Stale, a.Settle != nil); err != nil {
			return err
		}
		switch {
		case a.Settle != nil:
			return c.settle(ctx, run, *a.Settle)
		case a.Park != "":
			return c.parkBlocked(ctx, run)
		}
		if refused, err := c.judgeBudget(ctx, l, run); err != nil || refused {
			return err
		}
		run.queue = queue
		got, err = c.take(ctx, *l, run)
		return err
	})
	if err == nil || ctx.Err() != nil || errors.Is(err, errTaskBusy) || errors.Is(err, errProjectNew) || isConnectionError(err) || isRetryable(err) {
		return got, foreign, err
	}
	return nil, false, c.parkGuardError(ctx, run, err)
}

// admitFacts reads what the guards need to know about a run of a locked lane, and the queue of its executor.
func (t *tx) admitFacts(ctx context.Context, l lane, run runRow) (f domain.AdmitFacts, queue string, err error) {
	f = domain.AdmitFacts{AgentStatus: l.status, WakeClass: run.class, CancelRequested: run.cancelRequestedAt != nil}
	const agent = `
SELECT a.deleted_at IS NOT NULL, a.skip_idle_wakeups, coalesce(` + queueOfRun + `, '') FROM runs r JOIN agents a ON a.id = r.agent_id WHERE r.id = $1`
	if err := queryRow(ctx, t, []any{&f.AgentDeleted, &f.SkipIdleWakeups, &queue}, agent, run.id); err != nil {
		return f, "", fmt.Errorf("read the agent: %w", err)
	}
	if run.taskID != "" {
		if err := t.admitTask(ctx, run, &f); err != nil {
			return f, "", err
		}
	}
	if !f.CountsIdle() {
		return f, queue, nil
	}
	const actionable = `SELECT count(*) FROM tasks WHERE assignee_id = $1 AND state IN ('TODO', 'IN_PROGRESS') AND archived_at IS NULL AND deleted_at IS NULL`
	f.ActionableTasks, err = queryOne[int](ctx, t, actionable, l.agentID)
	return f, queue, wrap("count the agent's tasks", err)
}

// admitTask locks the run's task, without waiting, and reads what the guards look at.
func (t *tx) admitTask(ctx context.Context, run runRow, f *domain.AdmitFacts) error {
	locked, err := t.tryTasks(ctx, []xid.ID{run.taskID})
	if err != nil {
		return err
	}
	if !locked[run.taskID] {
		return errTaskBusy
	}
	guards, err := t.readGuards(ctx, []runRow{run})
	if err != nil {
		return err
	}
	guards[run.id].into(f, run)
	return nil
}

// take claims one run.
func (c *claimer) take(ctx context.Context, l lane, run runRow) (*Claimed, error) {
	taken, err := c.takeAll(ctx, []runRow{run})
	if err != nil {
		return nil, err
	}
	return &taken[0], nil
}

// takeAll claims runs of locked lanes: their rows, checkouts, attempts, leases, events and requests in one statement. All or
// none. The tasks are locked, free, and each of one run only. A run with a queue is offered: its lease has no owner.
func (c *claimer) takeAll(ctx context.Context, runs []runRow) ([]Claimed, error) {
	const query = `
WITH n AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $11::text[]) AS n (run_id, attempt_id, activity_id, queue)),
r AS (
  UPDATE runs SET status = 'CLAIMED', attempt = attempt + 1, claimed_at = $4, started_at = NULL, session_id = NULL,
    revision = revision + 1, event_seq = event_seq + 1
  FROM n WHERE id = n.run_id AND status = 'QUEUED'
  RETURNING id, workspace_id, agent_id, task_id, causation_id, attempt, event_seq, attempt_id, activity_id, NULLIF(queue, '') AS queue),
co AS (
  UPDATE tasks t SET checkout_agent_id = r.agent_id, checkout_run_id = r.id, checkout_at = $4 FROM r WHERE t.id = r.task_id),
act AS (` + activityInto + `
  SELECT activity_id, workspace_id, 'RUN_CLAIMED', CASE WHEN queue IS NULL THEN 'The run was claimed.' ELSE 'The run was offered to workers.' END, 'SYSTEM', 'queue', id, agent_id, task_id, '{}', causation_id, $4 FROM r),
att AS (
  INSERT INTO run_attempts (id, workspace_id, run_id, number, status, owner, started_at)
  SELECT attempt_id, workspace_id, id, attempt, CASE WHEN queue IS NULL THEN 'LAUNCHING' ELSE 'OFFERED' END, CASE WHEN queue IS NULL THEN $5::text ELSE '' END, $4 FROM r),
lease AS (
  INSERT INTO attempt_leases (run_id, workspace_id, agent_id, attempt, owner, queue, lease_until, host, boot_id, owner_pid, owner_started)
  SELECT id, workspace_id, agent_id, attempt, $5, NULL, $6::timestamptz, $7, $8, $9::bigint, $10::bigint FROM r WHERE queue IS NULL
  UNION ALL SELECT id, workspace_id, agent_id, attempt, NULL, queue, $12, NULL, NULL, NULL, NULL FROM r WHERE queue IS NOT NULL),
evt AS (
  INSERT INTO run_events (workspace_id, run_id, seq, kind, attempt, data, occurred_at)
  SELECT workspace_id, id, event_seq, 'CLAIMED', attempt, CASE WHEN queue IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('queue', queue) END, $4 FROM r),
req AS (
  UPDATE wakeup_requests q SET status = 'CLAIMED', claimed_at = $4 FROM r WHERE q.run_id = r.id AND q.status = 'QUEUED')
SELECT id, attempt FROM r`
	runIDs, queues := make([]xid.ID, len(runs)), make([]string, len(runs))
	for i, run := range runs {
		runIDs[i], queues[i] = run.id, run.queue
	}
	numbers := map[xid.ID]int{}
	_, err := collect(ctx, c, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var number int
		err := rows.Scan(&id, &number)
		numbers[id] = number
		return struct{}{}, err
	}, query, ids(runIDs), ids(newIDs("att", len(runs))), ids(newIDs("act", len(runs))), c.now, c.owner.ID, c.now.Add(c.lease),
		c.owner.Host, c.owner.BootID, c.owner.PID, c.owner.Started, textArray(queues), c.now.Add(domain.OfferPatience))
	if err != nil {
		return nil, fmt.Errorf("claim runs %v: %w", runIDs, err)
	}
	if len(numbers) != len(runs) {
		return nil, fmt.Errorf("claim runs %v: only %d were queued", runIDs, len(numbers))
	}
	if err := c.hold(ctx, runs, numbers); err != nil {
		return nil, err
	}
	taken := make([]Claimed, len(runs))
	for i, run := range runs {
		taken[i] = Claimed{Attempt: Attempt{RunID: run.id, Number: numbers[run.id], Owner: c.owner.ID},
			WorkspaceID: run.workspaceID, AgentID: run.agentID, CausationID: run.causationID, Queue: run.queue}
		c.tookOne(run)
	}
	return taken, nil
}

// tookOne notes what follows from the claim of a run.
func (c *claimer) tookOne(run runRow) {
	c.taken[run.workspaceID]++
	if _, bound := c.free[run.workspaceID]; bound {
		c.free[run.workspaceID]--
	}
	c.fed(run.workspaceID)
	c.count(func(m *metrics.Counters) { m.RunClaimed(run.workspaceID) })
	c.publish(event.Event{Kind: event.Run, WorkspaceID: run.workspaceID, ID: run.id})
	if run.queue != "" {
		c.publish(event.Event{Kind: event.Offer, WorkspaceID: run.workspaceID, ID: run.workspaceID})
	}
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
UPDATE workspace_lanes SET running = running + $2, released_at = CASE WHEN $2 < 0 AND running >= max_running THEN $3 ELSE released_at END
WHERE workspace_id = $1 RETURNING EXISTS (SELECT 1 FROM budget_policies b WHERE b.workspace_id = $1)`
	if budgeted, err = queryOne[bool](ctx, t, query, workspaceID, by, t.now); err != nil {
		return false, fmt.Errorf("count the workspace's live runs: %w", err)
	}
	return budgeted, nil
}

func (c *claimer) parkGuardError(ctx context.Context, run runRow, cause error) error {
	count := run.guardErrors + 1
	const park = `
UPDATE runs SET parked_reason = 'GUARD_ERROR', parked_until = $2, guard_errors = $3, revision = revision + 1 WHERE id = $1 AND status = 'QUEUED'`
	if err := execOne(ctx, c, park, run.id, c.now.Add(domain.GuardBackoff(count)), count); err != nil {
		return fmt.Errorf("park run after a guard error: %w", err)
	}
	if err := c.runEvent(ctx, run, domain.RunEventKindGuard, 0, map[string]any{"parked": domain.ParkedReasonGuardError, "errors": count}); err != nil {
		return err
	}
	c.onCommit(func(s *Store) {
		s.log.Error("guard could not be evaluated", keysOf(run, "errors", count, "error", cause)...)
	})
	if err := c.releaseScope(ctx, run.agentID, run.scope); err != nil || count != domain.GuardErrorsForInbox {
		return err
	}
	return c.inbox(ctx, run.workspaceID, domain.InboxKindAgentError, "guard_error:"+string(run.id), "A run cannot be judged",
		fmt.Sprintf("The guards of run %s failed %d times. The server's log has the cause.", run.id, count), run.id, run.causationID)
}
