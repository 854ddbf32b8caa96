package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// claimer claims the heads of locked lanes.
type claimer struct {
	*tx
	claimOrder
	free    map[xid.ID]int  // free places of workspaces that have a ceiling
	taken   map[xid.ID]int  // runs claimed, by workspace
	foreign map[xid.ID]bool // lanes whose head is not for the queue that the claim is about
	newest  *lane           // the newest head that may be taken; nil: there are no other lanes
	// busy are lanes whose head is about a task that somebody holds, or of a project that was not looked at, or whose budget
	// somebody holds.
	busy    map[xid.ID]bool
	budgets budgets
	room    int // bytes of prompts that may still be assembled
}

// promptBytesPerClaim bounds the prompts that one claim assembles, and so how long it holds its lanes and what it keeps in
// memory. What is beyond it is claimed next.
const promptBytesPerClaim = 1 << 20

func newClaimer(t *tx, o claimOrder) *claimer {
	return &claimer{tx: t, claimOrder: o, taken: map[xid.ID]int{}, foreign: map[xid.ID]bool{}, busy: map[xid.ID]bool{}, room: promptBytesPerClaim}
}

// full says that the claim has assembled as many prompts as it may.
func (c *claimer) full() bool { return c.room <= 0 }

// claimPatience is how long a claim waits for a row that somebody holds: then its lane fails, and rests if that goes on.
const claimPatience = `1s`

// lockCeilings locks the workspaces' lanes, in id order, waits no longer than claimPatience from then on, and notes how many runs
// those with a ceiling may still take, none of those that a person holds, and which of them have budgets.
func (c *claimer) lockCeilings(ctx context.Context, lanes []lane) error {
	var workspaces []xid.ID
	for _, l := range lanes {
		workspaces = append(workspaces, l.workspaceID)
	}
	const query = `
WITH bound AS MATERIALIZED (SELECT set_config('lock_timeout', $2, true) AS lock_timeout)
SELECT workspace_id, ` + guard.Places + `,
  EXISTS (SELECT 1 FROM budget_policies b WHERE b.workspace_id = w.workspace_id),
  EXISTS (SELECT 1 FROM budget_policies b WHERE b.workspace_id = w.workspace_id AND b.subject_kind = 'PROJECT')
FROM workspace_lanes w
CROSS JOIN bound
WHERE workspace_id = ANY($1)
ORDER BY workspace_id
FOR NO KEY UPDATE OF w`
	c.free = map[xid.ID]int{}
	_, err := pgtx.Collect(ctx, c, func(rows *sql.Rows) (struct{}, error) {
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
	}, query, pgtx.IDs(workspaces), claimPatience)
	return pgtx.Wrap("lock workspace lanes", err)
}

// oldest is the lane with the oldest head among those that may still give a run; nil: none may.
func (c *claimer) oldest(lanes []lane) *lane {
	var first *lane
	for i := range lanes {
		l := &lanes[i]
		places, bound := c.free[l.workspaceID]
		if l.headAt == nil || l.held() || c.busy[l.agentID] || c.foreign[l.agentID] || l.running >= l.maxSessions || bound && places <= 0 {
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
	before := l.launches
	if found {
		var foreign bool
		got, foreign, err = c.admit(ctx, l, run)
		if errors.Is(err, errTaskBusy) || errors.Is(err, errProjectNew) {
			c.busy[l.agentID] = true
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if foreign {
			c.foreign[l.agentID] = true // the lane's next turn is not this claim's
			return nil, nil
		}
	}
	if got != nil {
		taken = 1
	}
	if l.launches != before {
		if err := c.countLaunches(ctx, l); err != nil {
			return nil, err
		}
	}
	return got, c.moveLane(ctx, l, taken)
}

func (c *claimer) head(ctx context.Context, l lane) (runRow, bool, error) {
	runs, err := pgtx.Collect(ctx, c, scanRun, headQuery, l.agentID)
	if err != nil || len(runs) == 0 {
		return runRow{}, false, pgtx.Wrap("read the lane's head", err)
	}
	return runs[0], true, nil
}

const headQuery = `
SELECT ` + runColumns + ` FROM runs r WHERE r.agent_id = $1 AND ` + guard.Due + `
ORDER BY r.requested_at, r.id LIMIT 1 FOR NO KEY UPDATE`

// admit runs the guards on one due run and does what they decide, in a savepoint: a guard that cannot be evaluated parks
// that run and stops nothing else (SPEC S6.2, C318). It does so once runs are no longer started with their claim, because then
// the guards alone can be at fault. foreign: the run is not for the queue that the claim is about.
func (c *claimer) admit(ctx context.Context, l *lane, run runRow) (got *Claimed, foreign bool, err error) {
	before, launches := l.status, *l
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
		limit := facts.LaunchLimit.OrNone()
		if run.unattended && l.braked(limit, c.Now) {
			return c.parkBraked(ctx, *l, run, *limit)
		}
		if refused, err := c.admitBudget(ctx, l, run); err != nil || refused {
			return err
		}
		run.queue = queue
		taken, err := c.take(ctx, []runRow{run})
		if len(taken) > 0 {
			got = &taken[0]
			if run.unattended {
				l.launched(limit, c.Now)
			}
		}
		return err
	})
	if err == nil || c.launch != nil || ctx.Err() != nil || errors.Is(err, errTaskBusy) || errors.Is(err, errProjectNew) || postgres.Away(err) || pgtx.Retryable(err) || pgtx.LockTimeout(err) {
		return got, foreign, err
	}
	l.status = before // that the agent is held is undone, too, and so is what it launched
	l.launchesSince, l.launches = launches.launchesSince, launches.launches
	return nil, false, c.parkGuardError(ctx, run, err)
}

// admitFacts reads what the guards need to know about a run of a locked lane, and the queue of its executor.
func (t *tx) admitFacts(ctx context.Context, l lane, run runRow) (f domain.AdmitFacts, queue string, err error) {
	f = domain.AdmitFacts{AgentStatus: l.status, WakeClass: run.class, CancelRequested: run.cancelRequestedAt != nil}
	const agent = `
SELECT ` + guard.AgentColumns + `, coalesce(` + queueOfRun + `, '')
FROM runs r
JOIN agents a ON a.id = r.agent_id
WHERE r.id = $1`
	if err := pgtx.QueryRow(ctx, t, append(guard.AgentInto(&f), &queue), agent, run.id); err != nil {
		return f, "", fmt.Errorf("read the agent: %w", err)
	}
	if run.taskID != "" {
		if err := t.admitTask(ctx, run, &f); err != nil {
			return f, "", err
		}
	}
	return f, queue, nil
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
	guards[run.id].Into(f, run.retryCount > 0)
	return nil
}
