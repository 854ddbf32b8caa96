package reads

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

func (f *waitFacts) readPlaces(ctx context.Context) error {
	for _, run := range f.asked {
		f.places[run.workspaceID] = nil
	}
	_, err := pgtx.Collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		var id xid.ID
		var places *int
		var held *time.Time
		err := rows.Scan(&id, &places, &held)
		f.places[id], f.held[id] = places, pgtx.OrZero(held)
		return struct{}{}, err
	}, `SELECT workspace_id, `+guard.Places+`, held_at FROM workspace_lanes w WHERE workspace_id = ANY($1)`, pgtx.IDs(pgtx.Keys(f.places)))
	return pgtx.Wrap("read the ceilings", err)
}

// readBudgets reads the workspaces' budgets as they are now, as far as they hold runs up.
func (f *waitFacts) readBudgets(ctx context.Context) error {
	const query = `
SELECT ` + guard.BudgetColumns + `
FROM budget_policies b
WHERE workspace_id = ANY($1) AND on_exceed = 'PAUSE_AGENT'
ORDER BY id`
	found, err := pgtx.Collect(ctx, f.q, guard.ScanBudget, query, pgtx.IDs(pgtx.Keys(f.places)))
	for _, b := range found {
		f.ledger.Budgets = append(f.ledger.Budgets, b.At(f.now))
	}
	return pgtx.Wrap("read the budgets", err)
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
	projects, err := guard.ProjectsOf(ctx, f.q, tasks)
	if err != nil {
		return err
	}
	for _, l := range f.lanes {
		for i := range l.Runs {
			l.Runs[i].ProjectID = string(projects[xid.ID(l.Runs[i].TaskID)])
		}
	}
	f.ledger.Expected, err = guard.ExpectedCosts(ctx, f.q, pgtx.Keys(f.lanes))
	return err
}

// waitLanesQuery reads the lanes asked about, those of others that have a due run about a task of theirs, and, in workspaces
// with a ceiling or budgets that have room left ($2), those that may take it before them: the oldest due ones, more of them
// than there are places, and those where a parking is over.
const waitLanesQuery = `
-- $1 agents, $2 workspaces that have room, $3 how many lanes of each are looked at, $4 now, $5 how many runs
-- of a lane are looked at
WITH front AS (
  SELECT l.agent_id FROM unnest($2::text[], $3::bigint[]) AS w(workspace_id, places) CROSS JOIN LATERAL (
    SELECT agent_id FROM agent_lanes
    WHERE workspace_id = w.workspace_id AND ` + guard.LaneDue + ` AND eligible_at <= $4
    ORDER BY head_at, head_id LIMIT w.places) l),
-- a parking that is over is made due by the next claim, and then counts as the others
promoted AS (
  SELECT agent_id
  FROM (
    SELECT agent_id, workspace_id
    FROM runs
    WHERE status = 'QUEUED' AND parked_until <= $4 AND cardinality($2::text[]) > 0
    ORDER BY parked_until
    LIMIT 200) p
  WHERE workspace_id = ANY($2)),
-- only one of those about the same task is launched
rivals AS (
  SELECT DISTINCT o.agent_id FROM unnest($1::text[]) AS a (id) CROSS JOIN LATERAL (
    SELECT task_id FROM runs WHERE agent_id = a.id AND ` + guard.Due + ` ORDER BY requested_at, id LIMIT $5) r
  JOIN runs o ON o.task_id = r.task_id AND o.status = 'QUEUED' AND o.agent_id <> a.id)
SELECT l.agent_id, l.workspace_id, l.max_sessions, l.running, l.eligible_at, l.status, l.launches_since, l.launches,
  ` + guard.AgentColumns + `
FROM (
  SELECT unnest($1::text[]) AS agent_id
  UNION SELECT agent_id FROM front
  UNION SELECT agent_id FROM promoted
  UNION SELECT agent_id FROM rivals) wanted
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
	_, err := pgtx.Collect(ctx, f.q, func(rows *sql.Rows) (struct{}, error) {
		l := waitLane{known: map[string]bool{}}
		var since *time.Time
		lane := []any{&l.AgentID, &l.workspaceID, &l.MaxSessions, &l.Running, &l.EligibleAt, &l.guards.AgentStatus, &since, &l.Window.Launches}
		err := rows.Scan(append(lane, guard.AgentInto(&l.guards)...)...)
		l.Window.Limit, l.Window.Since = l.guards.LaunchLimit.OrNone(), pgtx.OrZero(since)
		l.Held, l.Deleted = domain.AgentHold{Status: l.guards.AgentStatus}.Held(), l.guards.AgentDeleted
		f.lanes[xid.ID(l.AgentID)] = &l
		return struct{}{}, err
	}, waitLanesQuery, pgtx.IDs(pgtx.Keys(agents)), pgtx.IDs(bounded), pgtx.IntArray(room), f.now, waitingSettles)
	return pgtx.Wrap("read the lanes", err)
}
