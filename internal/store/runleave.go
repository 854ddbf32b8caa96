package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// leaveClaimed is every way out of CLAIMED (docs/queue.md rule 5). The run's own row is changed by the caller; what else
// follows is written for all runs of the transaction together, at its end (leaveAll).
func (t *tx) leaveClaimed(run runRow, e leave) { t.departed = append(t.departed, departure{run, e}) }

// leaveAll writes what follows when runs leave CLAIMED: their attempts ended, their leases gone, their scopes released, their
// tasks free, and the counts of live runs down. Budgets are charged last.
//
// The workspaces' lanes come after the runs, though the lock order has them before. That is safe, because nobody who holds one
// waits for a run of a lane that he does not hold. It keeps the time short for which everybody else waits for these rows.
func (t *tx) leaveAll(ctx context.Context) error {
	left := t.departed
	t.departed = nil
	if len(left) == 0 {
		return nil
	}
	slices.SortFunc(left, func(a, b departure) int { return cmp.Compare(a.run.id, b.run.id) })
	attempts, err := t.endAttempts(ctx, left)
	if err != nil {
		return err
	}
	if err := t.freeCheckouts(ctx, left); err != nil {
		return err
	}
	if err := t.restSessions(ctx, left); err != nil {
		return err
	}
	charged, err := t.leaveLanes(ctx, left)
	if err != nil {
		return err
	}
	for _, d := range left {
		ended := attempts[d.run.id]
		t.traceAttempt(d.run, d.leave, ended.claimedAt, ended.executor)
		t.Publish(event.Event{Kind: event.Run, WorkspaceID: d.run.workspaceID, ID: d.run.id}, event.Event{Kind: event.Queue, WorkspaceID: d.run.workspaceID, ID: d.run.agentID})
	}
	return t.chargeBudgets(ctx, charged)
}

// endedAttempt is what the trace of an attempt tells of it.
type endedAttempt struct {
	run       xid.ID
	claimedAt time.Time
	executor  string
}

// endAttempts ends attempts and leases, and releases the scopes of their runs. What a run that goes on was launched with is
// kept for its next attempt's mask (SPEC S7.6).
func (t *tx) endAttempts(ctx context.Context, left []departure) (map[xid.ID]endedAttempt, error) {
	n := len(left)
	runs, agents, scopes, statuses, codes, messages, sessions := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	numbers := make([]int64, n)
	for i, d := range left {
		runs[i], agents[i], scopes[i], numbers[i], statuses[i], sessions[i] = string(d.run.id), string(d.run.agentID), d.run.scope, int64(d.run.attempt), string(d.attempt), d.session
		if d.failure != nil {
			codes[i], messages[i] = string(d.failure.Code), d.failure.Message
		}
	}
	found := map[xid.ID]endedAttempt{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (a endedAttempt, err error) {
		err = rows.Scan(&a.run, &a.claimedAt, &a.executor)
		found[a.run] = a
		return a, err
	}, endAttemptsQuery, pgtx.TextArray(runs), pgtx.IntArray(numbers), pgtx.TextArray(statuses), pgtx.TextArray(codes), pgtx.TextArray(messages), t.Now,
		pgtx.TextArray(agents), pgtx.TextArray(scopes), pgtx.TextArray(sessions))
	if err != nil {
		return nil, fmt.Errorf("end attempts: %w", err)
	}
	for _, d := range left {
		// somebody deleted the row of a live attempt by hand: its run must be able to end all the same
		if _, there := found[d.run.id]; !there {
			t.onCommit(func(s *base) {
				s.log.Warn("a live attempt had no row any more, so its end is on the run alone", keysOf(d.run)...)
			})
		}
	}
	return found, nil
}

var endAttemptsQuery = `
-- $1 runs, $2 attempts, $3 how they ended, $4 codes of errors, or "", $5 their messages, $6 now, $7 agents,
-- $8 scopes, $9 sessions that are recorded with it, or ""
WITH n AS (
  SELECT *
  FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $9::text[])
    AS n (run, attempt, status, code, message, session)),
gone AS (
  DELETE FROM attempt_leases l
  USING n
  WHERE l.run_id = n.run AND l.attempt = n.attempt AND l.run_id = ANY($1)
  RETURNING l.run_id, l.workspace_id, l.secrets),
-- a run that goes on may still show what was secret in this attempt
lease AS (SELECT gone.* FROM gone JOIN runs r ON r.id = gone.run_id WHERE r.status = 'QUEUED'),
former AS (` + keepFormer + `),
ended AS (
  UPDATE run_attempts a
  SET status = n.status, finished_at = $6, error_code = NULLIF(n.code, ''),
    error_message = CASE WHEN n.code <> '' THEN n.message END, session_id = coalesce(NULLIF(n.session, ''), a.session_id)
  FROM n
  WHERE a.run_id = n.run AND a.number = n.attempt AND a.run_id = ANY($1)
  RETURNING a.run_id, a.started_at, coalesce(a.executor, '') AS executor),
released AS (` + releaseScopesSQL("$7", "$8") + `)
SELECT run_id, started_at, executor FROM ended`

// leaveLanes takes runs off the counts of live runs of their agents and workspaces, and recomputes the heads. The cooldown begins
// where one of them was launched (SPEC S6.1). It returns the runs of workspaces that have budgets.
func (t *tx) leaveLanes(ctx context.Context, left []departure) (charged []runRow, err error) {
	lanes, workspaces := countDepartures(left)
	first := workspaces[0]
	budgeted := map[xid.ID]bool{}
	moved, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (l lane, err error) {
		var has bool
		err = rows.Scan(&l.agentID, &l.workspaceID, &l.headAt, &l.headID, &has)
		budgeted[l.workspaceID] = has
		return l, err
	}, leaveLanesQuery, pgtx.TextArray(lanes.agents), pgtx.IntArray(lanes.gone), pgtx.BoolArray(lanes.launched), first.id, first.gone, t.Now)
	if err == nil && len(moved) != len(lanes.agents) {
		err = fmt.Errorf("changed %d of %d lanes", len(moved), len(lanes.agents))
	}
	if err != nil {
		return nil, fmt.Errorf("take runs off their lanes: %w", err)
	}
	for _, w := range workspaces[1:] {
		if budgeted[w.id], err = t.countWorkspace(ctx, w.id, -w.gone); err != nil {
			return nil, err
		}
	}
	for _, l := range moved {
		t.tellHead(l)
	}
	for _, d := range left {
		if budgeted[d.run.workspaceID] {
			charged = append(charged, d.run)
		}
	}
	return charged, nil
}

var leaveLanesQuery = `
-- $1 agents, $2 how many runs leave each, $3 whether one of them was launched, $4 the first workspace, $5 how
-- many runs leave it, $6 now
WITH n AS (SELECT * FROM unnest($1::text[], $2::bigint[], $3::boolean[]) AS n (agent, gone, launched)),
workspace AS (
  UPDATE workspace_lanes
  SET running = running - $5, released_at = CASE WHEN running >= max_running THEN $6 ELSE released_at END
  WHERE workspace_id = $4 RETURNING 1)
-- a cooldown that was made shorter meanwhile lets none end sooner that has begun
UPDATE agent_lanes l
SET head_at = h.requested_at, head_id = h.id, running = l.running - n.gone,
  last_finished_at = CASE WHEN n.launched THEN $6 ELSE l.last_finished_at END,
  released_at = CASE WHEN l.running >= l.max_sessions THEN $6 ELSE l.released_at END,
  eligible_at = CASE WHEN n.launched
    THEN greatest(l.eligible_at, $6::timestamptz + l.cooldown_ms * interval '1 millisecond') ELSE l.eligible_at END
FROM n LEFT JOIN LATERAL (` + guard.Head("n.agent") + `) h ON true
WHERE l.agent_id = n.agent AND l.agent_id = ANY($1) AND EXISTS (SELECT 1 FROM workspace)
RETURNING l.agent_id, l.workspace_id, l.head_at, l.head_id,
  EXISTS (SELECT 1 FROM budget_policies b WHERE b.workspace_id = l.workspace_id)`

// departedLanes is how many runs leave the lanes of agents, and whether one of them was launched.
type departedLanes struct {
	agents   []string
	gone     []int64
	launched []bool
}

type departedWorkspace struct {
	id   xid.ID
	gone int
}

// countDepartures counts departures by agent, and by workspace in the order of their ids, in which their lanes are locked.
func countDepartures(left []departure) (lanes departedLanes, workspaces []departedWorkspace) {
	of, in := map[xid.ID]int{}, map[xid.ID]int{}
	for _, d := range left {
		i, seen := of[d.run.agentID]
		if !seen {
			i = len(lanes.agents)
			of[d.run.agentID] = i
			lanes.agents, lanes.gone, lanes.launched = append(lanes.agents, string(d.run.agentID)), append(lanes.gone, 0), append(lanes.launched, false)
		}
		lanes.gone[i]++
		lanes.launched[i] = lanes.launched[i] || d.launched
		in[d.run.workspaceID]++
	}
	for id, n := range in {
		workspaces = append(workspaces, departedWorkspace{id, n})
	}
	slices.SortFunc(workspaces, func(a, b departedWorkspace) int { return cmp.Compare(a.id, b.id) })
	return lanes, workspaces
}
