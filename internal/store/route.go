package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

const (
	routeBatch  = 500 // the requests that one transaction routes
	routeRounds = 10  // the transactions of one call for the same agents: the next pass goes on
)

// Route turns every unrouted request of the agents into a run or merges it into one, under their lanes' locks (SPEC
// S3.2). It returns how many it routed; routing again is a no-op (C58). Several agents are routed in one transaction,
// those whose lanes others hold after the rest. An agent that fails is found by bisecting, and does not stop the
// others. Of some thousand requests it leaves the newest to the next call. The error joins one for each agent that
// failed.
func (s *Queue) Route(ctx context.Context, agents ...xid.ID) (int, error) {
	total := 0
	failed := pgtx.Bisect(ctx, agents, func(some []xid.ID) error {
		rounds, wait := 0, len(some) == 1
		for {
			b := routing{}
			err := s.inTx(ctx, func(t *tx) (err error) {
				b, err = t.route(ctx, wait, some)
				return err
			})
			if err != nil {
				return err
			}
			total, rounds = total+b.requests, rounds+1
			if b.requests < routeBatch || rounds == routeRounds {
				if some = pgtx.Remaining(some, b.locked); len(some) == 0 || wait {
					return nil
				}
				wait = true
			}
		}
	}, func(some []xid.ID, err error) error {
		return fmt.Errorf("route %s: %w", pgtx.Named("agent", some), err)
	})
	return total, errors.Join(failed...)
}

// routing is what one transaction routed, and whose lanes it had.
type routing struct {
	requests int
	locked   []xid.ID
}

// UnroutedAgents lists agents that have unrouted requests, at most limit.
func (s *Queue) UnroutedAgents(ctx context.Context, limit int) ([]xid.ID, error) {
	agents, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], unroutedAgentsQuery, limit)
	if err != nil {
		return nil, fmt.Errorf("list agents with unrouted requests: %w", err)
	}
	return agents, nil
}

// A loose index scan: one probe for each agent, however many requests it has.
const unroutedAgentsQuery = `
WITH RECURSIVE agents AS (
  (SELECT agent_id FROM wakeup_requests WHERE ` + guard.Unrouted + ` ORDER BY agent_id LIMIT 1)
  UNION ALL
  SELECT (
    SELECT q.agent_id
    FROM wakeup_requests q
    WHERE ` + guard.Unrouted + ` AND q.agent_id > a.agent_id
    ORDER BY q.agent_id
    LIMIT 1)
  FROM agents a
  WHERE a.agent_id IS NOT NULL)
SELECT agent_id FROM agents WHERE agent_id IS NOT NULL LIMIT $1`

func (t *tx) route(ctx context.Context, wait bool, agents []xid.ID) (out routing, err error) {
	if out.locked, err = t.lockToRoute(ctx, wait, agents); err != nil || len(out.locked) == 0 {
		return out, err
	}
	out.requests, err = t.routeLocked(ctx, out.locked)
	return out, err
}

// routeLocked routes what agents have unrouted, whose lanes are locked, and says how many requests that were.
func (t *tx) routeLocked(ctx context.Context, agents []xid.ID) (int, error) {
	r := t.router()
	requests, err := r.unrouted(ctx, agents)
	if err != nil || len(requests) == 0 {
		return 0, err
	}
	if err := r.decide(ctx, requests); err != nil {
		return 0, err
	}
	return len(requests), r.write(ctx)
}

// lockToRoute takes the lanes, those of several agents in the order of their ids, and returns whose it got.
func (t *tx) lockToRoute(ctx context.Context, wait bool, agents []xid.ID) (locked []xid.ID, err error) {
	query := `SELECT ` + laneColumns + ` FROM agent_lanes WHERE agent_id = ANY($1) ORDER BY agent_id FOR NO KEY UPDATE`
	if !wait {
		query += ` SKIP LOCKED`
	}
	lanes, err := t.lockLanes(ctx, query, pgtx.IDs(agents))
	if err != nil {
		return nil, fmt.Errorf("lock lanes: %w", err)
	}
	for _, l := range lanes {
		locked = append(locked, l.agentID)
	}
	if wait && len(lanes) < len(agents) {
		return nil, fmt.Errorf("lock lanes: agent %s has none", pgtx.Remaining(agents, locked)[0])
	}
	return locked, nil
}

// unroutedQuery reads agents' unrouted requests, oldest first, with what routing asks of the agent and its workspace.
var unroutedQuery = `
SELECT q.*, a.id, a.deleted_at IS NOT NULL, w.coalescing_window_ms, w.max_hops
FROM unnest($1::text[]) AS x (id) JOIN agents a ON a.id = x.id JOIN workspaces w ON w.id = a.workspace_id
CROSS JOIN LATERAL (
  SELECT ` + requestColumns(`'{}'::jsonb`) + ` FROM wakeup_requests
  WHERE agent_id = x.id AND ` + guard.Unrouted + ` ORDER BY requested_at, id LIMIT $2 FOR NO KEY UPDATE) AS q
LIMIT $2`

// unroutedRequest is a request to route.
type unroutedRequest struct {
	requestRow
	fresh        *newRequest // it is not written yet; nil: it is stored
	agentID      xid.ID
	agentDeleted bool
	window       time.Duration
	maxHops      int
}

func (r *router) unrouted(ctx context.Context, agents []xid.ID) ([]unroutedRequest, error) {
	if len(agents) == 0 {
		return nil, nil
	}
	requests, err := pgtx.Collect(ctx, r, func(rows *sql.Rows) (q unroutedRequest, err error) {
		var windowMs int64
		q.requestRow, err = scanRequest(rows, &q.agentID, &q.agentDeleted, &windowMs, &q.maxHops)
		q.window = time.Duration(windowMs) * time.Millisecond
		return q, err
	}, unroutedQuery, pgtx.IDs(agents), routeBatch)
	if err != nil {
		return nil, fmt.Errorf("read unrouted requests: %w", err)
	}
	slices.SortFunc(requests, func(a, b unroutedRequest) int {
		return cmp.Or(a.requestedAt.Compare(b.requestedAt), cmp.Compare(a.id, b.id))
	})
	return requests, nil
}

// router routes a batch of requests of one or several agents, whose lanes it holds. It decides in memory and writes at the
// end, new runs, changed parkings and merges each in one statement: the last of 2,000 merges costs as much as the first.
type router struct {
	*tx
	scopes  map[scopeKey][]domain.ScopeRun
	blocked map[xid.ID]bool // tasks with an open blocker, of those whose assignment is routed

	fresh  []*newRequest        // requests that are to be written
	agents map[xid.ID]recipient // their recipients, as far as they were read

	runs    []newRun
	parked  map[string]domain.ScopeRun // runs whose parking a merge changed, as it is now
	merges  []*merge
	byRun   map[string]*merge
	touched map[xid.ID]bool     // agents whose lane may have any other head
	orphans map[xid.ID][]xid.ID // requests whose agents were deleted, by workspace
}

// scopeKey is a scope of an agent.
type scopeKey struct {
	agentID xid.ID
	scope   string
}

func (q *unroutedRequest) key() scopeKey { return scopeKey{q.agentID, q.scope} }

// merge is what a batch adds to one run.
type merge struct {
	run, workspaceID xid.ID
	requests         []unroutedRequest
	promote          bool
	hops             int  // most of the requests
	attended         bool // a person or a schedule asked for one of them
}

func (t *tx) router() *router {
	return &router{tx: t, scopes: map[scopeKey][]domain.ScopeRun{}, byRun: map[string]*merge{}, parked: map[string]domain.ScopeRun{},
		touched: map[xid.ID]bool{}, orphans: map[xid.ID][]xid.ID{}}
}

// decide decides what becomes of requests, in this order.
func (r *router) decide(ctx context.Context, requests []unroutedRequest) error {
	if err := r.prepare(ctx, requests); err != nil {
		return err
	}
	for _, request := range requests {
		if err := r.route(ctx, request); err != nil {
			return fmt.Errorf("route %s: %w", request.id, err)
		}
	}
	return nil
}

func (r *router) prepare(ctx context.Context, requests []unroutedRequest) error {
	if err := r.readBlocked(ctx, requests); err != nil {
		return err
	}
	return r.readScopes(ctx, requests)
}

// readBlocked looks which of the tasks whose assignments are routed have an open blocker. No task is locked: a blocker that
// ends now sends what is routed after this, and unparks.
func (r *router) readBlocked(ctx context.Context, requests []unroutedRequest) error {
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
	blocked, err := pgtx.Collect(ctx, r, pgtx.ScanOne[xid.ID], guard.BlockedTasks, pgtx.IDs(assigned))
	for _, id := range blocked {
		r.blocked[id] = true
	}
	return pgtx.Wrap("read which tasks are blocked", err)
}

const scopeColumns = `
SELECT id, status, started_at IS NOT NULL AS started, coalesce(parked_reason::text, '') AS reason,
  coalesce(parked_until, '0001-01-01Z') AS until, wake_class,
  coalesce(routine_id, '') AS routine, coalesce(fingerprint, '') AS fingerprint, requested_at
FROM runs WHERE agent_id = x.agent AND scope = x.scope AND `

// scopesQuery reads the live runs of scopes, each kind by its partial index.
const scopesQuery = `
SELECT x.agent, x.scope, r.*
FROM unnest($1::text[], $2::text[]) AS x (agent, scope)
CROSS JOIN LATERAL (` + scopeColumns + `status = 'QUEUED'
  UNION ALL ` + scopeColumns + `status = 'CLAIMED') AS r`

func (r *router) readScopes(ctx context.Context, requests []unroutedRequest) error {
	var agents []xid.ID
	var scopes []string
	for _, q := range requests {
		if _, seen := r.scopes[q.key()]; !seen {
			r.scopes[q.key()] = nil
			if to, known := r.agents[q.agentID]; known && to.idle() {
				continue
			}
			agents, scopes = append(agents, q.agentID), append(scopes, q.scope)
		}
	}
	if len(agents) == 0 {
		return nil
	}
	_, err := pgtx.Collect(ctx, r, func(rows *sql.Rows) (_ struct{}, err error) {
		var key scopeKey
		var run domain.ScopeRun
		err = rows.Scan(&key.agentID, &key.scope, &run.ID, &run.Status, &run.Started, &run.ParkedReason, &run.ParkedUntil, &run.WakeClass,
			&run.RoutineID, &run.Fingerprint, &run.RequestedAt)
		r.scopes[key] = append(r.scopes[key], run)
		return struct{}{}, err
	}, scopesQuery, pgtx.IDs(agents), pgtx.TextArray(scopes))
	return pgtx.Wrap("read the scopes' runs", err)
}

func (r *router) route(ctx context.Context, q unroutedRequest) error {
	if q.agentDeleted {
		r.orphans[q.workspaceID] = append(r.orphans[q.workspaceID], q.id)
		return nil
	}
	if reason := domain.HopLimit(q.hops, q.maxHops); reason != "" {
		if err := r.endUnrouted(ctx, []xid.ID{q.id}, domain.WakeupStatusSkipped, reason); err != nil {
			return err
		}
		return r.inbox(ctx, item{workspaceID: q.workspaceID, kind: domain.InboxKindLoopBreaker, dedupe: "hop_limit:" + string(q.causationID), title: "A chain of wakes was stopped at {agent}",
			body:    fmt.Sprintf("Wakes caused one another %d times. The last one was not delivered; look whether agents answer each other for ever.", q.hops),
			subject: q.id, causationID: q.causationID, about: q.agentID, taskID: q.taskID})
	}
	asked := q.coalesce()
	asked.TaskBlocked = r.blocked[q.taskID]
	plan := domain.Coalesce(domain.CoalesceFacts{Runs: r.scopes[q.key()], Request: asked, Window: q.window, Now: r.Now})
	if plan.Action == domain.CoalesceNew {
		r.add(q, plan)
	} else {
		r.join(q, plan)
	}
	return nil
}

func (q requestRow) coalesce() domain.CoalesceRequest {
	c := domain.CoalesceRequest{
		Class: q.class, Source: q.source, PersonWaiting: q.personWaiting, Resend: q.resends > 0, PersonSpoke: q.source == domain.WakeupSourceComment && q.hops == 0, RequestedAt: q.requestedAt, RoutineID: string(q.routineID),
	}
	if q.basis != nil {
		c.Basis = *q.basis
	}
	if q.fingerprint != nil {
		c.Fingerprint = *q.fingerprint
	}
	return c
}

// add notes a new run for a request. Its place in the order is now, under the lane lock; a re-send keeps its own.
func (r *router) add(q unroutedRequest, plan domain.CoalescePlan) {
	requestedAt := r.Now
	if q.resends > 0 {
		requestedAt = q.requestedAt
	}
	run := domain.ScopeRun{ID: string(xid.New("run")), Status: domain.RunStatusQueued, ParkedReason: plan.ParkedReason, ParkedUntil: plan.ParkedUntil,
		WakeClass: q.class, RoutineID: string(q.routineID), Fingerprint: pgtx.OrZero(q.fingerprint), RequestedAt: requestedAt}
	r.runs = append(r.runs, newRun{unroutedRequest: q, run: run})
	if q.fresh != nil {
		q.fresh.runID = xid.ID(run.ID)
	}
	r.scopes[q.key()] = append(r.scopes[q.key()], run)
}

// dueFrom is due_at of a run that is parked so from now on: an instant unless it is parked.
func dueFrom(parked domain.ParkedReason, now time.Time) any {
	if parked != "" {
		return nil
	}
	return now
}

// join notes a request that is merged into a run of its scope, and what the run gains.
func (r *router) join(q unroutedRequest, plan domain.CoalescePlan) {
	m := r.byRun[plan.RunID]
	if m == nil {
		m = &merge{run: xid.ID(plan.RunID), workspaceID: q.workspaceID}
		r.byRun[plan.RunID] = m
		r.merges = append(r.merges, m)
	}
	m.requests = append(m.requests, q)
	if q.fresh != nil {
		q.fresh.runID, q.fresh.merged = m.run, true
	}
	m.promote = m.promote || plan.Promote
	m.attended = m.attended || !q.unattended
	m.hops = max(m.hops, q.hops) // else a chain that merges into a younger run would never be stopped (SPEC S3.10)
	if plan.Promote {
		r.scopeRun(q.key(), plan.RunID).WakeClass = domain.WakeClassEvent
	}
	if plan.MakeDue || plan.ParkedReason != "" {
		r.park(q.key(), plan.RunID, plan.ParkedReason, plan.ParkedUntil)
	}
	for _, u := range plan.Unblocked {
		r.park(q.key(), u.RunID, u.ParkedReason, time.Time{})
	}
}

// park notes that a run of a scope is parked otherwise from now on, or due.
func (r *router) park(key scopeKey, runID string, reason domain.ParkedReason, until time.Time) {
	run := r.scopeRun(key, runID)
	run.ParkedReason, run.ParkedUntil = reason, until
	r.parked[runID] = *run
	r.touched[key.agentID] = true
}

func (r *router) scopeRun(key scopeKey, runID string) *domain.ScopeRun {
	runs := r.scopes[key]
	return &runs[slices.IndexFunc(runs, func(run domain.ScopeRun) bool { return run.ID == runID })]
}

// endOrphans ends the requests whose agents were deleted.
func (r *router) endOrphans(ctx context.Context) error {
	for workspaceID, requests := range r.orphans {
		if err := r.endUnrouted(ctx, requests, domain.WakeupStatusCancelled, domain.EndReasonAgentDeleted); err != nil {
			return err
		}
		err := r.noteRequests(ctx, workspaceID, requests, domain.ActivityCodeWakeupStaleCancelled, system("router"), "The wakeup was cancelled: its agent was deleted.", domain.EndReasonAgentDeleted)
		if err != nil {
			return err
		}
	}
	return nil
}

// endUnrouted ends requests that no run is to be made for, and the fires behind them.
func (r *router) endUnrouted(ctx context.Context, requests []xid.ID, status domain.WakeupStatus, reason domain.EndReason) error {
	const query = `
UPDATE wakeup_requests
SET status = $2, end_reason = $3, finished_at = $4
WHERE id = ANY($1)
RETURNING routine_run_id, task_id`
	var fires, tasks []xid.ID
	_, err := pgtx.Collect(ctx, r, func(rows *sql.Rows) (_ struct{}, err error) {
		var fire, task xid.ID
		err = rows.Scan(&fire, &task)
		fires, tasks = append(fires, fire), append(tasks, task)
		return struct{}{}, err
	}, query, pgtx.IDs(requests), status, reason, r.Now)
	if err != nil {
		return fmt.Errorf("end requests: %w", err)
	}
	return r.endFires(ctx, fires, tasks, routineRunEnd{status: settledFire(status), reason: &reason})
}

// RouteRequests routes requests that were just made, with all else that their agents have unrouted. One agent's failure
// does not keep the others from it; the dispatcher comes back to what is left.
func (s *Queue) RouteRequests(ctx context.Context, requests []xid.ID) error {
	if len(requests) == 0 {
		return nil
	}
	agents, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], `
SELECT DISTINCT agent_id FROM wakeup_requests WHERE id = ANY($1) ORDER BY 1`, pgtx.IDs(requests))
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
