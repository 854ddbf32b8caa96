package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/xid"
	"time"
)

// routeBatch bounds the requests that one transaction routes.
const routeBatch = 500

// Route turns every unrouted request of the agent into a run or merges it into one, under the agent's lane lock (SPEC
// S3.2). It returns how many it routed; routing again is a no-op (C58).
func (s *Store) Route(ctx context.Context, agentID xid.ID) (int, error) {
	total := 0
	for {
		n := 0
		err := s.inTx(ctx, func(t *tx) error {
			var err error
			n, err = t.route(ctx, agentID)
			return err
		})
		total += n
		if err != nil || n < routeBatch {
			return total, wrap("route wakeup requests", err)
		}
	}
}

// UnroutedAgents lists agents that have unrouted requests, at most limit.
func (s *Store) UnroutedAgents(ctx context.Context, limit int) ([]xid.ID, error) {
	agents, err := collect(ctx, s.db, scanOne[xid.ID], unroutedAgentsQuery, limit)
	if err != nil {
		return nil, fmt.Errorf("list agents with unrouted requests: %w", err)
	}
	return agents, nil
}

// A loose index scan: one probe for each agent, however many requests it has.
const unroutedAgentsQuery = `
WITH RECURSIVE agents AS (
  (SELECT agent_id FROM wakeup_requests WHERE status = 'QUEUED' AND run_id IS NULL ORDER BY agent_id LIMIT 1)
  UNION ALL
  SELECT (SELECT q.agent_id FROM wakeup_requests q WHERE q.status = 'QUEUED' AND q.run_id IS NULL AND q.agent_id > a.agent_id ORDER BY q.agent_id LIMIT 1)
  FROM agents a WHERE a.agent_id IS NOT NULL)
SELECT agent_id FROM agents WHERE agent_id IS NOT NULL LIMIT $1`

func (t *tx) route(ctx context.Context, agentID xid.ID) (int, error) {
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return 0, err
	}
	unrouted := `
SELECT ` + requestColumns(`'{}'::jsonb`) + ` FROM wakeup_requests
WHERE agent_id = $1 AND status = 'QUEUED' AND run_id IS NULL ORDER BY requested_at, id LIMIT $2 FOR NO KEY UPDATE`
	requests, err := collect(ctx, t, scanRequest, unrouted, agentID, routeBatch)
	if err != nil {
		return 0, fmt.Errorf("read unrouted requests: %w", err)
	}
	if len(requests) == 0 {
		return 0, nil
	}
	r := router{tx: t, lane: l, scopes: map[string][]domain.ScopeRun{}}
	if err := r.prepare(ctx, requests); err != nil {
		return 0, err
	}
	for _, request := range requests {
		if err := r.route(ctx, request); err != nil {
			return 0, fmt.Errorf("route %s: %w", request.id, err)
		}
	}
	if err := r.writeMerges(ctx); err != nil {
		return 0, err
	}
	return len(requests), t.fixHead(ctx, l)
}

// router routes a batch of one agent's requests. Merges are gathered and written once for each run, so that the last of
// 2,000 merges costs as much as the first.
type router struct {
	*tx
	lane    lane
	deleted bool
	window  time.Duration
	scopes  map[string][]domain.ScopeRun
	merges  []*merge
	byRun   map[string]*merge
	blocked map[xid.ID]bool // tasks with an open blocker, of those whose assignment is routed
}

// merge is what a batch adds to one run.
type merge struct {
	run      xid.ID
	requests []xid.ID
	promote  bool
}

func (r *router) prepare(ctx context.Context, requests []requestRow) error {
	r.byRun = map[string]*merge{}
	var windowMs int64
	const facts = `SELECT a.deleted_at IS NOT NULL, w.coalescing_window_ms FROM agents a JOIN workspaces w ON w.id = a.workspace_id WHERE a.id = $1`
	if err := queryRow(ctx, r, []any{&r.deleted, &windowMs}, facts, r.lane.agentID); err != nil {
		return fmt.Errorf("read the agent: %w", err)
	}
	r.window = time.Duration(windowMs) * time.Millisecond
	if err := r.readBlocked(ctx, requests); err != nil {
		return err
	}
	return r.readScopes(ctx, requests)
}

// readBlocked looks which of the tasks whose assignments are routed have an open blocker. No task is locked: a blocker that
// ends now sends what is routed after this, and unparks.
func (r *router) readBlocked(ctx context.Context, requests []requestRow) error {
	r.blocked = map[xid.ID]bool{}
	var assigned []xid.ID
	for _, q := range requests {
		if q.source == domain.WakeupSourceTaskAssigned && q.basis != nil && *q.basis == domain.WakeBasisAssignee {
			assigned = append(assigned, q.taskID)
		}
	}
	if len(assigned) == 0 {
		return nil
	}
	blocked, err := collect(ctx, r, scanOne[xid.ID], blockedTasksQuery, ids(assigned))
	for _, id := range blocked {
		r.blocked[id] = true
	}
	return wrap("read which tasks are blocked", err)
}

func (r *router) readScopes(ctx context.Context, requests []requestRow) error {
	var scopes []string
	for _, q := range requests {
		if _, seen := r.scopes[q.scope]; !seen {
			r.scopes[q.scope] = nil
			scopes = append(scopes, q.scope)
		}
	}
	const columns = `
SELECT scope, id, status, started_at IS NOT NULL, coalesce(parked_reason, ''), coalesce(parked_until, '0001-01-01Z'), wake_class,
  coalesce(routine_id, ''), coalesce(fingerprint, ''), requested_at
FROM runs WHERE agent_id = $1 AND scope = ANY($2) AND `
	const query = columns + `status = 'QUEUED' UNION ALL ` + columns + `status = 'CLAIMED'` // each by its partial index
	type entry struct {
		scope string
		run   domain.ScopeRun
	}
	runs, err := collect(ctx, r, func(rows *sql.Rows) (e entry, err error) {
		return e, rows.Scan(&e.scope, &e.run.ID, &e.run.Status, &e.run.Started, &e.run.ParkedReason, &e.run.ParkedUntil, &e.run.WakeClass,
			&e.run.RoutineID, &e.run.Fingerprint, &e.run.RequestedAt)
	}, query, r.lane.agentID, textArray(scopes))
	if err != nil {
		return fmt.Errorf("read the scopes' runs: %w", err)
	}
	for _, e := range runs {
		r.scopes[e.scope] = append(r.scopes[e.scope], e.run)
	}
	return nil
}

func (r *router) route(ctx context.Context, q requestRow) error {
	if r.deleted {
		return r.endUnrouted(ctx, q, domain.WakeupStatusCancelled, domain.EndReasonAgentDeleted)
	}
	if reason := domain.HopLimit(q.hops); reason != "" {
		if err := r.endUnrouted(ctx, q, domain.WakeupStatusSkipped, reason); err != nil {
			return err
		}
		return r.inbox(ctx, q.workspaceID, domain.InboxKindLoopBreaker, "hop_limit:"+string(q.causationID),
			"A chain of wakes was stopped", fmt.Sprintf("Wakes caused one another %d times. The last one was not delivered; look whether agents answer each other for ever.", q.hops), q.id, q.causationID)
	}
	asked := q.coalesce()
	asked.TaskBlocked = r.blocked[q.taskID]
	plan := domain.Coalesce(domain.CoalesceFacts{Runs: r.scopes[q.scope], Request: asked, Window: r.window, Now: r.now})
	if plan.Action == domain.CoalesceNew {
		return r.newRun(ctx, q, plan)
	}
	return r.join(ctx, q, plan)
}

func (q requestRow) coalesce() domain.CoalesceRequest {
	c := domain.CoalesceRequest{
		Class: q.class, Source: q.source, PersonWaiting: q.personWaiting, Resend: q.resends > 0, RequestedAt: q.requestedAt, RoutineID: string(q.routineID),
	}
	if q.basis != nil {
		c.Basis = *q.basis
	}
	if q.fingerprint != nil {
		c.Fingerprint = *q.fingerprint
	}
	return c
}

// newRun makes a run for a request. Its place in the order is now, under the lane lock; a re-send keeps its own.
func (r *router) newRun(ctx context.Context, q requestRow, plan domain.CoalescePlan) error {
	requestedAt := r.now
	if q.resends > 0 {
		requestedAt = q.requestedAt
	}
	run := domain.ScopeRun{ID: string(xid.New("run")), Status: domain.RunStatusQueued, ParkedReason: plan.ParkedReason, ParkedUntil: plan.ParkedUntil,
		WakeClass: q.class, RoutineID: string(q.routineID), RequestedAt: requestedAt}
	if q.fingerprint != nil {
		run.Fingerprint = *q.fingerprint
	}
	const query = `
WITH run AS (
  INSERT INTO runs (id, workspace_id, agent_id, task_id, routine_id, causation_id, scope, source, wake_class, fingerprint, status,
    parked_reason, parked_until, due_at, retry_count, hops, requested_at, event_seq)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'QUEUED', $11, $12, $21, $13, $14, $15, 1) RETURNING id, workspace_id, agent_id, task_id, causation_id),
act AS (` + activityInto + `
  SELECT $19, workspace_id, 'WAKEUP_QUEUED', 'The wakeup was queued.', 'SYSTEM', 'router', $16, agent_id, task_id, jsonb_build_object('runId', id), causation_id, $18 FROM run
  WHERE $20),
linked AS (UPDATE wakeup_requests SET run_id = $1 WHERE id = $16)
INSERT INTO run_events (workspace_id, run_id, seq, kind, data, occurred_at)
SELECT workspace_id, id, 1, 'CREATED', $17, $18 FROM run`
	data, err := encodeData(map[string]any{"wakeupRequestId": q.id, "source": q.source, "parked": nullable(plan.ParkedReason)})
	if err != nil {
		return err
	}
	err = execOne(ctx, r, query, run.ID, q.workspaceID, r.lane.agentID, q.taskID, q.routineID, q.causationID, q.scope, q.source, q.class, q.fingerprint,
		nullable(plan.ParkedReason), nullableTime(plan.ParkedUntil), q.retryCount, q.hops, requestedAt, q.id, data, r.now,
		xid.New("act"), q.resends == 0, dueFrom(plan.ParkedReason, r.now)) // a re-send is in the feed already
	if err != nil {
		return fmt.Errorf("insert run: %w", err)
	}
	r.fed(q.workspaceID)
	r.scopes[q.scope] = append(r.scopes[q.scope], run)
	r.publish(event.Event{Kind: event.Run, WorkspaceID: q.workspaceID, ID: xid.ID(run.ID)})
	return nil
}

// dueFrom is due_at of a run that is parked so from now on: an instant unless it is parked.
func dueFrom(parked domain.ParkedReason, now time.Time) any {
	if parked != "" {
		return nil
	}
	return now
}

// join links a request to a run of its scope and notes what the run gains.
func (r *router) join(ctx context.Context, q requestRow, plan domain.CoalescePlan) error {
	m := r.byRun[plan.RunID]
	if m == nil {
		m = &merge{run: xid.ID(plan.RunID)}
		r.byRun[plan.RunID] = m
		r.merges = append(r.merges, m)
	}
	m.requests = append(m.requests, q.id)
	m.promote = m.promote || plan.Promote
	runs := r.scopes[q.scope]
	for i := range runs {
		if runs[i].ID == plan.RunID {
			return r.change(ctx, &runs[i], plan)
		}
	}
	return nil
}

// change applies to one run what a merge does besides linking: promotion and parking.
func (r *router) change(ctx context.Context, run *domain.ScopeRun, plan domain.CoalescePlan) error {
	if plan.Promote {
		run.WakeClass = domain.WakeClassEvent
	}
	if !plan.MakeDue && plan.ParkedReason == "" {
		return nil
	}
	run.ParkedReason, run.ParkedUntil = plan.ParkedReason, plan.ParkedUntil
	const park = `
UPDATE runs SET parked_reason = $2, parked_until = $3, due_at = $4, revision = revision + 1
WHERE id = $1 AND status = 'QUEUED'`
	if err := execOne(ctx, r, park, run.ID, nullable(plan.ParkedReason), nullableTime(plan.ParkedUntil), dueFrom(plan.ParkedReason, r.now)); err != nil {
		return fmt.Errorf("change the run's parking: %w", err)
	}
	return nil
}

func (r *router) writeMerges(ctx context.Context) error {
	for _, m := range r.merges {
		const link = `
WITH q AS (UPDATE wakeup_requests SET status = 'COALESCED', run_id = $1 WHERE id = ANY($2) RETURNING id, workspace_id, agent_id, task_id, causation_id, run_id)` +
			activityInto + `
SELECT n.id, q.workspace_id, 'WAKEUP_COALESCED', 'The wakeup was merged into a run.', 'SYSTEM', 'router', q.id, q.agent_id, q.task_id,
  jsonb_build_object('runId', q.run_id), q.causation_id, $4
FROM unnest($3::text[], $2::text[]) AS n (id, request) JOIN q ON q.id = n.request`
		if _, err := exec(ctx, r, link, m.run, ids(m.requests), ids(newIDs("act", len(m.requests))), r.now); err != nil {
			return fmt.Errorf("merge requests: %w", err)
		}
		r.fed(r.lane.workspaceID)
		const raise = `
UPDATE runs SET coalesced_count = coalesced_count + $2, revision = revision + 1,
  wake_class = CASE WHEN $3 THEN 'EVENT' ELSE wake_class END WHERE id = $1`
		if err := execOne(ctx, r, raise, m.run, len(m.requests), m.promote); err != nil {
			return fmt.Errorf("raise the run's count: %w", err)
		}
		run := runRow{id: m.run, workspaceID: r.lane.workspaceID}
		if err := r.runEvent(ctx, run, domain.RunEventKindCoalesced, 0, map[string]any{"requests": len(m.requests)}); err != nil {
			return err
		}
		if !m.promote {
			continue
		}
		if err := r.runEvent(ctx, run, domain.RunEventKindPromoted, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *router) endUnrouted(ctx context.Context, q requestRow, status domain.WakeupStatus, reason domain.EndReason) error {
	if err := execOne(ctx, r, `UPDATE wakeup_requests SET status = $2, end_reason = $3, finished_at = $4 WHERE id = $1`, q.id, status, reason, r.now); err != nil {
		return fmt.Errorf("end request: %w", err)
	}
	if err := r.endRoutineRuns(ctx, []xid.ID{q.routineRunID}, routineRunEnd{status: settledFire(status), reason: &reason}); err != nil {
		return err
	}
	if status != domain.WakeupStatusCancelled {
		return nil // a hop limit has no code: a person finds it in the inbox
	}
	return r.noteRequests(ctx, q.workspaceID, []xid.ID{q.id}, domain.ActivityCodeWakeupStaleCancelled, system("router"), "The wakeup was cancelled: its agent was deleted.", reason)
}
