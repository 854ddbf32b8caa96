package guard

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Budget is a stored budget policy.
type Budget struct {
	domain.Budget
	Stored      domain.Budget // as it was read
	WorkspaceID xid.ID
	Revision    int
}

// BudgetColumns are what ScanBudget reads of a budget policy b.
const BudgetColumns = `b.id, b.workspace_id, b.revision, b.subject_kind, b.subject_id, b.limit_usd::text, b.spent_usd::text, b.reserved_usd::text,
  b.period, b.period_start, b.on_exceed, b.alert_thresholds, b.told_thresholds`

// ScanBudget reads a budget policy.
func ScanBudget(rows *sql.Rows) (b Budget, err error) {
	var limit, spent, reserved string
	var thresholds, told []byte
	err = rows.Scan(&b.ID, &b.WorkspaceID, &b.Revision, &b.SubjectKind, &b.SubjectID, &limit, &spent, &reserved,
		&b.Period, &b.PeriodStart, &b.OnExceed, &thresholds, &told)
	if err != nil {
		return b, err
	}
	for _, amount := range []struct {
		to   *domain.Money
		text string
	}{{&b.Limit, limit}, {&b.Spent, spent}, {&b.Reserved, reserved}} {
		if *amount.to, err = domain.ParseMoney(amount.text); err != nil {
			return b, fmt.Errorf("budget %s: %w", b.ID, err)
		}
	}
	if err := json.Unmarshal(thresholds, &b.Thresholds); err != nil {
		return b, fmt.Errorf("thresholds of budget %s: %w", b.ID, err)
	}
	if err := json.Unmarshal(told, &b.Told); err != nil {
		return b, fmt.Errorf("thresholds of budget %s that were told of: %w", b.ID, err)
	}
	b.Stored = b.Budget
	return b, nil
}

// ChargedWith says whether a run of this agent, and of a task of this project ("" for none), is charged to the budget.
func (b Budget) ChargedWith(workspaceID, agentID, projectID xid.ID) bool {
	return b.Applies(domain.BudgetCharge{WorkspaceID: string(workspaceID), AgentID: string(agentID), ProjectID: string(projectID)})
}

// ExpectedCosts reads what a run of each agent will cost, by the agent's own last launched runs, else by the last attempts
// of its workspace. Runs that guards settled are no runs in this sense, and not more than 200 of them are looked through.
func ExpectedCosts(ctx context.Context, q pgtx.Querier, agents []xid.ID) (map[string]domain.Money, error) {
	const ofAgents = `
SELECT a.id, (
  SELECT least(greatest(coalesce(sum(e.cost_usd), 0), 0), 999999999999)::text
  FROM cost_entries e
  WHERE e.run_id = r.id)
FROM unnest($1::text[]) AS a (id) CROSS JOIN LATERAL (
  SELECT id
  FROM (
    SELECT id, started_at, finished_at
    FROM runs
    WHERE agent_id = a.id AND finished_at IS NOT NULL
    ORDER BY finished_at DESC
    LIMIT 200) ended
  WHERE started_at IS NOT NULL ORDER BY finished_at DESC LIMIT $2) r`
	own, err := costsBy(ctx, q, ofAgents, agents)
	if err != nil {
		return nil, fmt.Errorf("read what the agents' last runs cost: %w", err)
	}
	strangers := slices.DeleteFunc(slices.Clone(agents), func(id xid.ID) bool { return len(own[string(id)]) > 0 })
	around := map[string][]domain.Money{}
	if len(strangers) > 0 {
		const ofWorkspaces = `
SELECT a.id, least(greatest(e.cost_usd, 0), 999999999999)::text
FROM unnest($1::text[]) AS n (id)
JOIN agents a ON a.id = n.id
CROSS JOIN LATERAL (
  SELECT cost_usd FROM cost_entries WHERE workspace_id = a.workspace_id ORDER BY created_at DESC LIMIT $2) e`
		if around, err = costsBy(ctx, q, ofWorkspaces, strangers); err != nil {
			return nil, fmt.Errorf("read what the workspaces' last attempts cost: %w", err)
		}
	}
	expected := map[string]domain.Money{}
	for _, id := range agents {
		if amount, known := domain.ExpectedCost(own[string(id)], around[string(id)]); known {
			expected[string(id)] = amount
		}
	}
	return expected, nil
}

func costsBy(ctx context.Context, q pgtx.Querier, query string, agents []xid.ID) (map[string][]domain.Money, error) {
	costs := map[string][]domain.Money{}
	_, err := pgtx.Collect(ctx, q, func(rows *sql.Rows) (struct{}, error) {
		var agent, text string
		if err := rows.Scan(&agent, &text); err != nil {
			return struct{}{}, err
		}
		cost, err := domain.ParseMoney(text)
		costs[agent] = append(costs[agent], cost)
		return struct{}{}, err
	}, query, pgtx.IDs(agents), domain.HoldRuns)
	return costs, err
}

// ProjectsOf reads the projects of tasks, "" for none.
func ProjectsOf(ctx context.Context, q pgtx.Querier, tasks []xid.ID) (map[xid.ID]xid.ID, error) {
	found := map[xid.ID]xid.ID{}
	_, err := pgtx.Collect(ctx, q, func(rows *sql.Rows) (struct{}, error) {
		var task, project xid.ID
		err := rows.Scan(&task, &project)
		found[task] = project
		return struct{}{}, err
	}, `SELECT id, project_id FROM tasks WHERE id = ANY($1)`, pgtx.IDs(tasks))
	if err != nil {
		return nil, fmt.Errorf("read the projects of the tasks: %w", err)
	}
	return found, nil
}
