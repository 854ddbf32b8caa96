package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of the facts that Waiting reads.
const (
	waitingSettles = 50  // due runs of a lane that guards may end on the way to those asked about
	waitingLanes   = 400 // lanes of other agents in front, in workspaces with a ceiling
)

// Waiting says why runs and requests wait (SPEC S3.9), as the next pass of the claim would find them: all facts are of one
// snapshot. What does not wait is not in the answer. It takes seventeen statements at most for any number of ids; the rows they read
// are bounded by the ids, the sessions of their agents and, in a workspace with a ceiling, the free places.
func (s *Store) Waiting(ctx context.Context, runIDs, requestIDs []xid.ID) (map[xid.ID]domain.Waiting, error) {
	out, _, err := s.waiting(ctx, runIDs, requestIDs)
	return out, err
}

// WaitingNow is Waiting in view of whether a scheduler runs that makes a next pass at all.
func (s *Store) WaitingNow(ctx context.Context, runIDs, requestIDs []xid.ID) (map[xid.ID]domain.Waiting, error) {
	out, signs, err := s.waiting(ctx, runIDs, requestIDs)
	for id, w := range out {
		out[id] = w.Under(signs)
	}
	return out, err
}

func (s *Store) waiting(ctx context.Context, runIDs, requestIDs []xid.ID) (out map[xid.ID]domain.Waiting, signs domain.SchedulerSigns, err error) {
	err = s.atOneMoment(ctx, func(q querier) error {
		f := waitFacts{q: q, lanes: map[xid.ID]*waitLane{}, places: map[xid.ID]*int{}}
		out, err = f.answer(ctx, runIDs, requestIDs)
		signs = f.signs
		return err
	})
	return out, signs, wrap("read why runs wait", err)
}

// atOneMoment lets f read from one snapshot, which ends whatever f does: its connection does not stay in a transaction.
func (s *Store) atOneMoment(ctx context.Context, f func(querier) error) (err error) {
	t, err := s.reads.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("begin a snapshot: %w", err)
	}
	defer func() { // nothing was written
		if end := t.Rollback(); end != nil && !errors.Is(end, sql.ErrTxDone) && err == nil {
			err = fmt.Errorf("end the snapshot: %w", end)
		}
	}()
	return f(t)
}

// waitFacts gathers the facts of one question.
type waitFacts struct {
	q      querier
	now    time.Time
	signs  domain.SchedulerSigns
	asked  []waitRun
	lanes  map[xid.ID]*waitLane
	places map[xid.ID]*int     // free places of the workspaces asked about; nil: no ceiling
	ledger domain.BudgetLedger // their budgets that pause agents
}

// waitLane is a lane with what its guards look at.
type waitLane struct {
	domain.PassLane
	workspaceID xid.ID
	guards      domain.AdmitFacts
	known       map[string]bool
}

// waitRun is a queued or live run.
type waitRun struct {
	domain.PassRun
	agentID, workspaceID xid.ID
	class                domain.WakeClass
	cancelled, retry     bool
}

func (f *waitFacts) answer(ctx context.Context, runIDs, requestIDs []xid.ID) (map[xid.ID]domain.Waiting, error) {
	out := map[xid.ID]domain.Waiting{}
	requests, err := f.requests(ctx, requestIDs)
	if err != nil {
		return nil, err
	}
	if err := f.checkedOut(ctx, requestIDs, out); err != nil {
		return nil, err
	}
	for request, run := range requests {
		if run == "" {
			out[request] = domain.WaitsForRouting
		} else {
			runIDs = append(runIDs[:len(runIDs):len(runIDs)], run)
		}
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return f.readAsked(ctx, runIDs) }, f.readPlaces, f.readBudgets, f.readLanes, f.readLines, f.readScopes, f.readCharges,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	passes := f.foresee()
	for _, run := range f.asked {
		out[xid.ID(run.ID)] = passes[run.workspaceID].Waiting(string(run.agentID), run.ID)
	}
	if err := f.nameBlockers(ctx, out); err != nil {
		return nil, err
	}
	if err := f.nameLive(ctx, out); err != nil {
		return nil, err
	}
	for request, run := range requests {
		if w, waits := out[run]; waits {
			out[request] = w
		}
	}
	return out, nil
}

// requests finds the run of each request that is QUEUED; "" when it is unrouted.
func (f *waitFacts) requests(ctx context.Context, requestIDs []xid.ID) (map[xid.ID]xid.ID, error) {
	found := map[xid.ID]xid.ID{}
	if len(requestIDs) == 0 {
		return found, nil
	}
	_, err := collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var request, run xid.ID
		err := rows.Scan(&request, &run)
		found[request] = run
		return struct{}{}, err
	}, `SELECT id, coalesce(run_id, '') FROM wakeup_requests WHERE id = ANY($1) AND status = 'QUEUED'`, ids(requestIDs))
	return found, wrap("read the requests", err)
}

const waitColumns = `r.id, r.agent_id, r.workspace_id, r.scope, r.status, coalesce(r.parked_reason, ''), coalesce(r.parked_until, '0001-01-01Z'),
  r.requested_at, r.wake_class, r.cancel_requested_at IS NOT NULL, r.retry_count > 0, r.task_id`

func scanWaitRun(rows *sql.Rows) (r waitRun, err error) {
	var taskID xid.ID
	err = rows.Scan(&r.ID, &r.agentID, &r.workspaceID, &r.Scope, &r.Status, &r.ParkedReason, &r.ParkedUntil, &r.RequestedAt, &r.class, &r.cancelled,
		&r.retry, &taskID)
	r.TaskID = string(taskID)
	return r, err
}

func (f *waitFacts) readAsked(ctx context.Context, runIDs []xid.ID) error {
	var seen *time.Time
	err := queryRow(ctx, f.q, []any{&f.now, &seen}, `SELECT clock_timestamp(), (SELECT value::timestamptz FROM instance_facts WHERE name = $1)`, factScheduler)
	if err != nil {
		return wrap("read the database's clock", err)
	}
	f.signs = domain.SchedulerSigns{Last: orZero(seen), Now: f.now}
	f.asked, err = collect(ctx, f.q, scanWaitRun, `SELECT `+waitColumns+` FROM runs r WHERE r.id = ANY($1) AND r.status = 'QUEUED'`, ids(runIDs))
	return wrap("read the runs", err)
}

func (f *waitFacts) readPlaces(ctx context.Context) error {
	for _, run := range f.asked {
		f.places[run.workspaceID] = nil
	}
	_, err := collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var places *int
		err := rows.Scan(&id, &places)
		f.places[id] = places
		return struct{}{}, err
	}, `SELECT workspace_id, max_running - running FROM workspace_lanes WHERE workspace_id = ANY($1)`, ids(keys(f.places)))
	return wrap("read the ceilings", err)
}

// readBudgets reads the workspaces' budgets as they are now, as far as they hold runs up.
func (f *waitFacts) readBudgets(ctx context.Context) error {
	const query = `SELECT ` + budgetColumns + ` FROM budget_policies b WHERE workspace_id = ANY($1) AND on_exceed = 'PAUSE_AGENT' ORDER BY id`
	found, err := collect(ctx, f.q, scanBudget, query, ids(keys(f.places)))
	for _, b := range found {
		f.ledger.Budgets = append(f.ledger.Budgets, b.At(f.now))
	}
	return wrap("read the budgets", err)
}

// contended says whether a workspace has a budget whose room others may take before those asked about.
func (f *waitFacts) contended(workspaceID xid.ID) bool {
	return slices.ContainsFunc(f.ledger.Budgets, func(b domain.Budget) bool {
		return b.SubjectKind == domain.BudgetSubjectKindProject || b.Applies(domain.BudgetCharge{WorkspaceID: string(workspaceID)})
	})
}

// readCharges reads what the budgets' guards look at of the runs that the pass may come to: what they will cost, and the
// projects of their tasks.
func (f *waitFacts) readCharges(ctx context.Context) error {
	if len(f.ledger.Budgets) == 0 {
		return nil
	}
	var tasks []xid.ID
	for _, l := range f.lanes {
		for _, run := range l.Runs {
			if run.TaskID != "" {
				tasks = append(tasks, xid.ID(run.TaskID))
			}
		}
	}
	projects, err := projectsOf(ctx, f.q, tasks)
	if err != nil {
		return err
	}
	for _, l := range f.lanes {
		for i := range l.Runs {
			l.Runs[i].ProjectID = string(projects[xid.ID(l.Runs[i].TaskID)])
		}
	}
	f.ledger.Expected, err = expectedCosts(ctx, f.q, keys(f.lanes))
	return err
}

// waitLanesQuery reads the lanes asked about, those of others that have a due run about a task of theirs, and, in workspaces
// with a ceiling or budgets that have room left ($2), those that may take it before them: the oldest due ones, more of them
// than there are places, and those where a parking is over.
const waitLanesQuery = `
WITH front AS (
  SELECT l.agent_id FROM unnest($2::text[], $3::bigint[]) AS w(workspace_id, places) CROSS JOIN LATERAL (
    SELECT agent_id FROM agent_lanes
    WHERE workspace_id = w.workspace_id AND ` + laneDue + ` AND eligible_at <= $4
    ORDER BY head_at, head_id LIMIT w.places) l),
promoted AS (
  SELECT agent_id FROM (SELECT agent_id, workspace_id FROM runs WHERE status = 'QUEUED' AND parked_until <= $4 AND cardinality($2::text[]) > 0
                        ORDER BY parked_until LIMIT 200) p WHERE workspace_id = ANY($2)),
rivals AS (
  SELECT DISTINCT o.agent_id FROM unnest($1::text[]) AS a (id) CROSS JOIN LATERAL (
    SELECT task_id FROM runs WHERE agent_id = a.id AND status = 'QUEUED' AND parked_reason IS NULL ORDER BY requested_at, id LIMIT $5) r
  JOIN runs o ON o.task_id = r.task_id AND o.status = 'QUEUED' AND o.agent_id <> a.id)
SELECT l.agent_id, l.workspace_id, l.max_sessions, l.running, l.eligible_at, l.status, a.deleted_at IS NOT NULL, a.skip_idle_wakeups,
  CASE WHEN EXISTS (SELECT 1 FROM tasks x WHERE x.assignee_id = l.agent_id AND ` + isActionable + `) THEN 1 ELSE 0 END
FROM (SELECT unnest($1::text[]) AS agent_id UNION SELECT agent_id FROM front UNION SELECT agent_id FROM promoted UNION SELECT agent_id FROM rivals) wanted
JOIN agent_lanes l ON l.agent_id = wanted.agent_id JOIN agents a ON a.id = l.agent_id`

func (f *waitFacts) readLanes(ctx context.Context) error {
	agents := map[xid.ID]bool{}
	for _, run := range f.asked {
		agents[run.agentID] = true
	}
	var bounded []xid.ID
	var room []int64
	for id, places := range f.places {
		switch {
		case places != nil && *places > 0:
			bounded, room = append(bounded, id), append(room, int64(min(*places+waitingSettles, waitingLanes)))
		case places == nil && f.contended(id):
			bounded, room = append(bounded, id), append(room, waitingLanes)
		}
	}
	_, err := collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		l := waitLane{known: map[string]bool{}}
		err := rows.Scan(&l.AgentID, &l.workspaceID, &l.MaxSessions, &l.Running, &l.EligibleAt, &l.guards.AgentStatus, &l.guards.AgentDeleted,
			&l.guards.SkipIdleWakeups, &l.guards.ActionableTasks)
		l.Held, l.Deleted = domain.AgentHold{Status: l.guards.AgentStatus}.Held(), l.guards.AgentDeleted
		f.lanes[xid.ID(l.AgentID)] = &l
		return struct{}{}, err
	}, waitLanesQuery, ids(keys(agents)), ids(bounded), intArray(room), f.now, waitingSettles)
	return wrap("read the lanes", err)
}

// waitLinesQuery reads the front of each lane's line, what will join it because its parking is over, and its live runs.
const waitLinesQuery = `
SELECT r.* FROM agent_lanes l CROSS JOIN LATERAL (
  (SELECT ` + waitColumns + ` FROM runs r WHERE r.agent_id = l.agent_id AND r.status = 'QUEUED' AND r.parked_reason IS NULL
   ORDER BY r.requested_at, r.id LIMIT greatest(l.max_sessions - l.running, 0) + $2)
  UNION ALL
  (SELECT ` + waitColumns + ` FROM runs r WHERE r.agent_id = l.agent_id AND r.status = 'QUEUED' AND r.parked_until <= $3 ORDER BY r.parked_until LIMIT $2)
  UNION ALL
  (SELECT ` + waitColumns + ` FROM runs r WHERE r.agent_id = l.agent_id AND r.status = 'CLAIMED')) r
WHERE l.agent_id = ANY($1)`

func (f *waitFacts) readLines(ctx context.Context) error {
	runs, err := collect(ctx, f.q, scanWaitRun, waitLinesQuery, ids(keys(f.lanes)), waitingSettles, f.now)
	if err != nil {
		return wrap("read the lines", err)
	}
	return f.add(ctx, append(slices.Clone(f.asked), runs...))
}

// readScopes reads the rest of the scopes in which a run may fall due or be parked: those asked about, those of a run
// whose parking is over, and those of a run that will be settled.
func (f *waitFacts) readScopes(ctx context.Context) error {
	var agents []xid.ID
	var scopes []string
	for id, l := range f.lanes {
		seen := map[string]bool{}
		for _, run := range l.Runs {
			if !seen[run.Scope] && run.Status == domain.RunStatusQueued && (run.ParkedReason != "" || run.Settles) {
				seen[run.Scope] = true
				agents, scopes = append(agents, id), append(scopes, run.Scope)
			}
		}
	}
	const query = `
SELECT ` + waitColumns + ` FROM unnest($1::text[], $2::text[]) AS s(agent_id, scope)
JOIN runs r ON r.agent_id = s.agent_id AND r.scope = s.scope AND r.status = 'QUEUED'`
	runs, err := collect(ctx, f.q, scanWaitRun, query, ids(agents), textArray(scopes))
	if err != nil {
		return wrap("read the scopes", err)
	}
	return f.add(ctx, runs)
}

// add notes runs of known lanes, each once, and whether the guards would end or park them.
func (f *waitFacts) add(ctx context.Context, runs []waitRun) error {
	guarded, err := f.readGuards(ctx, runs)
	if err != nil {
		return err
	}
	for _, run := range runs {
		l := f.lanes[run.agentID]
		if l == nil || l.known[run.ID] {
			continue
		}
		l.known[run.ID] = true
		guards := l.guards
		guards.WakeClass, guards.CancelRequested = run.class, run.cancelled
		if run.TaskID != "" {
			guarded[xid.ID(run.ID)].into(&guards, runRow{retryCount: btoi(run.retry)})
		}
		admission := domain.Admit(guards)
		run.Settles, run.Blocked = admission.Settle != nil, admission.Park != ""
		if run.ParkedUntil.Year() == 1 {
			run.ParkedUntil = time.Time{}
		}
		l.Runs = append(l.Runs, run.PassRun)
	}
	return nil
}

// readGuards reads what the guards look at of those of the queued runs that are about tasks.
func (f *waitFacts) readGuards(ctx context.Context, runs []waitRun) (map[xid.ID]taskGuards, error) {
	var about []xid.ID
	for _, run := range runs {
		if run.TaskID != "" && run.Status == domain.RunStatusQueued {
			about = append(about, xid.ID(run.ID))
		}
	}
	if len(about) == 0 {
		return nil, nil
	}
	return readGuards(ctx, f.q, about)
}

// maxCeilingRuns bounds the runs that are named as those which fill a workspace.
const maxCeilingRuns = 50

// nameLive names the live runs of the workspaces whose ceiling holds a run up, those that were claimed first before others.
func (f *waitFacts) nameLive(ctx context.Context, out map[xid.ID]domain.Waiting) error {
	full := map[xid.ID]bool{}
	for _, run := range f.asked {
		if out[xid.ID(run.ID)].Hold == domain.QueueHoldWorkspaceCeiling {
			full[run.workspaceID] = true
		}
	}
	if len(full) == 0 {
		return nil
	}
	const query = `
SELECT w.id, r.id FROM unnest($1::text[]) AS w (id) CROSS JOIN LATERAL (
  SELECT r.id FROM agent_lanes l JOIN runs r ON r.agent_id = l.agent_id AND r.status = 'CLAIMED'
  WHERE l.workspace_id = w.id AND l.running > 0 ORDER BY r.claimed_at, r.id LIMIT $2) r`
	live := map[xid.ID][]string{}
	_, err := collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var workspace xid.ID
		var run string
		err := rows.Scan(&workspace, &run)
		live[workspace] = append(live[workspace], run)
		return struct{}{}, err
	}, query, ids(keys(full)), maxCeilingRuns)
	for _, run := range f.asked {
		if w := out[xid.ID(run.ID)]; w.Hold == domain.QueueHoldWorkspaceCeiling {
			w.BlockedBy = live[run.workspaceID]
			out[xid.ID(run.ID)] = w
		}
	}
	return wrap("read what fills the workspaces", err)
}

// nameBlockers names the open blockers of what waits for them.
func (f *waitFacts) nameBlockers(ctx context.Context, out map[xid.ID]domain.Waiting) error {
	var blocked []xid.ID
	for id, w := range out {
		if w.Hold == domain.QueueHoldTaskBlocked {
			blocked = append(blocked, id)
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	query := `
SELECT r.id, x.id FROM runs r JOIN task_blockers b ON b.task_id = r.task_id JOIN tasks x ON x.id = b.blocker_id
WHERE r.id = ANY($1) AND ` + isOpen("x") + ` ORDER BY x.id`
	_, err := collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var run xid.ID
		var blocker string
		err := rows.Scan(&run, &blocker)
		w := out[run]
		w.BlockedBy = append(w.BlockedBy, blocker)
		out[run] = w
		return struct{}{}, err
	}, query, ids(blocked))
	return wrap("read the blockers", err)
}

// checkedOut answers for requests that were skipped because another run holds their task.
func (f *waitFacts) checkedOut(ctx context.Context, requestIDs []xid.ID, out map[xid.ID]domain.Waiting) error {
	if len(requestIDs) == 0 {
		return nil
	}
	const query = `
SELECT q.id, coalesce(t.checkout_run_id, '') FROM wakeup_requests q JOIN tasks t ON t.id = q.task_id
WHERE q.id = ANY($1) AND q.status = 'SKIPPED' AND q.end_reason = 'CHECKOUT_HELD'`
	_, err := collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var request xid.ID
		var holder string
		err := rows.Scan(&request, &holder)
		w := domain.Waiting{Hold: domain.QueueHoldTaskCheckedOut}
		if holder != "" {
			w.BlockedBy = []string{holder}
		}
		out[request] = w
		return struct{}{}, err
	}, query, ids(requestIDs))
	return wrap("read who holds the tasks", err)
}

func (f *waitFacts) foresee() map[xid.ID]*domain.Pass {
	facts := map[xid.ID]*domain.PassFacts{}
	for id, places := range f.places {
		facts[id] = &domain.PassFacts{WorkspaceID: string(id), Now: f.now, Places: places, Ledger: f.ledger}
	}
	for _, l := range f.lanes {
		w := facts[l.workspaceID]
		w.Lanes = append(w.Lanes, l.PassLane)
	}
	passes := make(map[xid.ID]*domain.Pass, len(facts))
	for id, w := range facts {
		passes[id] = domain.Foresee(*w)
	}
	return passes
}
