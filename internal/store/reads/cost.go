package reads

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// maxCostGroups bounds what Costs returns.
const maxCostGroups = 1000

// CostGroup is a sum of costs. SubjectID is an agent or a project, "" for days and for runs of no project; Day is zero
// for agents and projects. Runs counts each run once, however many attempts it took.
type CostGroup struct {
	SubjectID                       xid.ID
	Day                             time.Time
	Cost                            domain.Money
	InputTokens, OutputTokens, Runs int
}

// Costs adds up what a workspace spent from an instant until just before another: what cost most first, days in their
// order.
func (s *Reads) Costs(ctx context.Context, workspaceID xid.ID, from, until time.Time, by domain.CostGrouping) ([]CostGroup, error) {
	key, order := `agent_id`, `cost DESC, subject`
	switch by {
	case domain.CostGroupingProject:
		key = `project_id`
	case domain.CostGroupingDay:
		key, order = `NULL`, `day`
	}
	day := `'0001-01-01Z'::timestamptz`
	if by == domain.CostGroupingDay {
		day = `date_trunc('day', created_at, 'UTC')`
	}
	query := `
SELECT ` + key + ` AS subject, ` + day + ` AS day, least(greatest(sum(cost_usd), 0), 999999999999) AS cost,
  sum(input_tokens)::bigint, sum(output_tokens)::bigint, count(DISTINCT run_id)
FROM cost_entries
WHERE workspace_id = $1 AND created_at >= $2 AND created_at < $3
GROUP BY 1, 2
ORDER BY ` + order + `
LIMIT $4`
	groups, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (g CostGroup, err error) {
		var cost string
		if err := rows.Scan(&g.SubjectID, &g.Day, &cost, &g.InputTokens, &g.OutputTokens, &g.Runs); err != nil {
			return g, err
		}
		g.Cost, err = domain.ParseMoney(cost)
		return g, err
	}, query, workspaceID, from, until, maxCostGroups)
	if err != nil {
		return nil, fmt.Errorf("add up costs: %w", err)
	}
	return groups, nil
}
