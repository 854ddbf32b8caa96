package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// candidate is a due run of a locked lane with what its guards look at.
type candidate struct {
	run   runRow
	facts domain.AdmitFacts
	busy  bool // somebody holds its task
}

// claimAhead claims what no guard refuses in a few statements for the whole batch: the usual case. It stops before the
// first run that a guard refuses.
func (c *claimer) claimAhead(ctx context.Context, lanes []lane, limit int) ([]Claimed, error) {
	candidates, err := c.readAhead(ctx, lanes, limit)
	if err != nil {
		return nil, err
	}
	runs := c.admitted(candidates, lanes, limit)
	if len(runs) == 0 {
		return nil, nil
	}
	claimed, err := c.take(ctx, runs)
	if err != nil {
		return nil, err
	}
	return claimed, c.moveLanes(ctx, lanes, runs, claimed)
}

// readAhead reads the oldest due runs of the lanes, as many as each has room for, the oldest of all first.
func (c *claimer) readAhead(ctx context.Context, lanes []lane, limit int) ([]candidate, error) {
	agents, places := make([]xid.ID, len(lanes)), make([]int64, len(lanes))
	statuses := map[xid.ID]domain.AgentStatus{}
	for i, l := range lanes {
		agents[i], places[i] = l.agentID, int64(min(limit, l.maxSessions-l.running))
		if c.busy[l.agentID] {
			places[i] = 0
		}
		statuses[l.agentID] = l.status
	}
	candidates, err := pgtx.Collect(ctx, c, func(rows *sql.Rows) (x candidate, err error) {
		var queue string
		x.run, err = scanRunAnd(rows, append(guard.AgentInto(&x.facts), &queue)...)
		x.run.queue = queue
		x.facts.AgentStatus, x.facts.WakeClass, x.facts.CancelRequested = statuses[x.run.agentID], x.run.class, x.run.cancelRequestedAt != nil
		return x, err
	}, readAheadQuery, pgtx.IDs(agents), pgtx.IntArray(places), c.candidates(limit, lanes))
	if err != nil {
		return nil, fmt.Errorf("read the lanes' due runs: %w", err)
	}
	runs := make([]runRow, len(candidates))
	for i, x := range candidates {
		runs[i] = x.run
	}
	if err := c.readProjects(ctx, runs...); err != nil {
		return nil, err
	}
	return candidates, c.readTasksAhead(ctx, candidates, runs)
}

// readTasksAhead locks the tasks of candidates that nobody holds, and reads what their guards look at.
func (c *claimer) readTasksAhead(ctx context.Context, candidates []candidate, runs []runRow) error {
	locked, err := c.tryTasks(ctx, tasksOf(runs))
	if err != nil {
		return err
	}
	guards, err := c.readGuards(ctx, runs)
	if err != nil {
		return err
	}
	for i := range candidates {
		x := &candidates[i]
		if x.run.taskID != "" {
			guards[x.run.id].Into(&x.facts, x.run.retryCount > 0)
			x.busy = !locked[x.run.taskID]
		}
	}
	return nil
}

const readAheadQuery = `
-- $1 agents, $2 how many runs each has room for, $3 most of all
SELECT ` + runColumns + `, ` + guard.AgentColumns + `, coalesce(` + queueOfRun + `, '')
FROM unnest($1::text[], $2::bigint[]) AS l (agent_id, places)
JOIN agents a ON a.id = l.agent_id
CROSS JOIN LATERAL (
  SELECT *
  FROM runs
  WHERE agent_id = l.agent_id AND ` + guard.Due + `
  ORDER BY requested_at, id
  LIMIT l.places) r
ORDER BY r.requested_at, r.id
LIMIT $3`

// candidates is how many of the oldest due runs are looked at: as many as are wanted, unless a workspace's ceiling may leave some out.
func (c *claimer) candidates(limit int, lanes []lane) int {
	if len(c.free) > 0 {
		return limit * len(lanes)
	}
	return limit
}

// admitted is the runs to claim, in their order and within the workspaces' ceilings. It ends before the first run that
// a guard refuses, and at the newest head that was looked at. Where nothing may be settled any more, it goes past the
// lane of one that is refused.
func (c *claimer) admitted(candidates []candidate, lanes []lane, most int) (runs []runRow) {
	launches := map[xid.ID]*lane{} // as they become
	for _, l := range lanes {
		launches[l.agentID] = &l
	}
	taken, tasks, ledger := map[xid.ID]int{}, map[xid.ID]bool{}, c.budgets.ledger.Clone()
	refused := map[xid.ID]bool{}
	for _, x := range candidates {
		places, bound := c.free[x.run.workspaceID]
		l, limit := launches[x.run.agentID], x.facts.LaunchLimit.OrNone()
		if bound && taken[x.run.workspaceID] >= places || refused[x.run.agentID] {
			continue
		}
		if len(runs) == most || c.beyond(x.run) {
			break
		}
		if x.busy || tasks[x.run.taskID] || !domain.Admit(x.facts).Launches() ||
			x.run.unattended && l.braked(limit, c.Now) || c.budgets.unlocked(x.run) || ledger.Admit(c.budgets.charge(x.run)) != (domain.BudgetAnswer{}) {
			if c.settles > 0 {
				break
			}
			refused[x.run.agentID] = true
			continue
		}
		if x.run.taskID != "" {
			tasks[x.run.taskID] = true
		}
		ledger.Reserve(c.budgets.charge(x.run))
		x.run.launchLimit = limit
		if x.run.unattended {
			l.launched(limit, c.Now)
		}
		taken[x.run.workspaceID]++
		runs = append(runs, x.run)
	}
	return runs
}

// beyond says whether a run is newer than the newest head that was looked at, so that one of another lane may be older.
func (c *claimer) beyond(run runRow) bool {
	id := string(run.id)
	return c.newest != nil && c.newest.headBefore(&lane{headAt: &run.requestedAt, headID: &id})
}

// noteLaunches counts the claimed runs that nobody attends to in their lanes.
func (c *claimer) noteLaunches(lanes []lane, runs []runRow, claimed []Claimed) {
	of := map[xid.ID]*lane{}
	for i := range lanes {
		of[lanes[i].agentID] = &lanes[i]
	}
	claims := map[xid.ID]bool{}
	for _, x := range claimed {
		claims[x.RunID] = true
	}
	for _, run := range runs {
		if run.unattended && claims[run.id] {
			of[run.agentID].launched(run.launchLimit, c.Now)
		}
	}
}

// instant is a time as a statement's text; "" for none.
func instant(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// moveLanes counts claimed runs in their lanes, and in the workspace of the first one, and recomputes the heads; lanes is what
// they became.
func (c *claimer) moveLanes(ctx context.Context, lanes []lane, runs []runRow, claimed []Claimed) error {
	if len(claimed) == 0 {
		return nil
	}
	c.noteLaunches(lanes, runs, claimed)
	taken := map[xid.ID]int64{}
	for _, x := range claimed {
		taken[x.AgentID]++
	}
	var launches []int64
	var since []string
	var agents []xid.ID
	var counts []int64
	byAgent := map[xid.ID]*lane{}
	for i := range lanes {
		if n := taken[lanes[i].agentID]; n > 0 {
			agents, counts = append(agents, lanes[i].agentID), append(counts, n)
			byAgent[lanes[i].agentID] = &lanes[i]
			launches, since = append(launches, int64(lanes[i].launches)), append(since, instant(lanes[i].launchesSince))
		}
	}
	workspaceID := claimed[0].WorkspaceID // the others are counted at the end
	moved, err := pgtx.Collect(ctx, c, func(rows *sql.Rows) (l lane, err error) {
		return l, rows.Scan(&l.agentID, &l.running, &l.headAt, &l.headID)
	}, moveLanesQuery, pgtx.IDs(agents), pgtx.IntArray(counts), workspaceID, c.taken[workspaceID],
		pgtx.IntArray(launches), pgtx.TextArray(since))
	if err == nil && len(moved) != len(agents) {
		err = fmt.Errorf("changed %d of %d", len(moved), len(agents))
	}
	if err != nil {
		return fmt.Errorf("change the lanes: %w", err)
	}
	delete(c.taken, workspaceID)
	for _, m := range moved {
		l := byAgent[m.agentID]
		l.running, l.headAt, l.headID = m.running, m.headAt, m.headID
		c.tellHead(*l)
	}
	return nil
}

var moveLanesQuery = `
-- $1 agents, $2 how many runs of each are taken, $3 a workspace, $4 how many of it are taken, $5 unattended
-- launches of each, $6 since when they are counted, or ""
WITH workspace AS (
  UPDATE workspace_lanes SET running = running + $4 WHERE workspace_id = $3 RETURNING 1)
UPDATE agent_lanes l
SET running = l.running + n.taken, head_at = h.requested_at, head_id = h.id,
  launches = n.launches, launches_since = NULLIF(n.since, '')::timestamptz
FROM unnest($1::text[], $2::bigint[], $5::bigint[], $6::text[]) AS n (agent_id, taken, launches, since)
LEFT JOIN LATERAL (
  ` + guard.Head("n.agent_id") + `) h ON true
WHERE l.agent_id = n.agent_id AND l.agent_id = ANY($1) AND EXISTS (SELECT 1 FROM workspace)
RETURNING l.agent_id, l.running, l.head_at, l.head_id`
