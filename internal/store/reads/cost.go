package reads

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
	groups, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (g CostGroup, err error) {
		var cost string
		if err := rows.Scan(&g.SubjectID, &g.Day, &cost, &g.InputTokens, &g.OutputTokens, &g.Runs); err != nil {
			return g, err
		}
		g.Cost, err = domain.ParseMoney(cost)
		return g, err
	}, CostsQuery(by), workspaceID, from, until, by, maxCostGroups)
	if err != nil {
		return nil, fmt.Errorf("add up costs: %w", err)
	}
	return groups, nil
}

// CostsQuery adds up costs of workspace $1 from $2 on and before $3, by $4, at most $5 groups. Whole days and hours that are
// counted stand for their entries. A run of an entry beside them is counted unless they count it in the same group.
func CostsQuery(by domain.CostGrouping) string {
	key, day, order := `e.agent_id`, `'0001-01-01Z'::timestamptz`, `cost DESC, subject`
	counted, since := day, `(SELECT lo FROM spans)`
	switch by {
	case domain.CostGroupingProject:
		key = `coalesce(e.project_id, '')`
	case domain.CostGroupingDay:
		key, day, order = `''`, `date_trunc('day', e.created_at, 'UTC')`, `day`
		counted = `date_trunc('day', t.begins, 'UTC')`
		since = `greatest((SELECT lo FROM spans), date_trunc('day', t.begins, 'UTC'))`
	}
	return `
-- $1 workspace, $2 from, $3 until, $4 what it is grouped by, $5 most groups
WITH ` + guard.CostSpans + `,
uncounted AS (
  SELECT run_id, subject, day, sum(cost_usd) AS cost_usd, sum(input_tokens) AS input_tokens,
    sum(output_tokens) AS output_tokens
  FROM (` + guard.UncountedCosts(`e.run_id, `+key+` AS subject, `+day+` AS day, e.cost_usd, e.input_tokens, e.output_tokens`, `e.workspace_id = $1`) + `) entries
  GROUP BY 1, 2, 3),
sums AS (` + guard.CountedCosts(`t.subject, `+counted+` AS day, t.cost_usd, t.input_tokens, t.output_tokens,
    CASE WHEN t.since < `+since+` THEN t.runs ELSE 0 END AS runs`, `t.kind = $4`) + `
  UNION ALL
  SELECT u.subject, u.day, u.cost_usd, u.input_tokens, u.output_tokens,
    CASE WHEN again.yes IS NULL THEN 1 ELSE 0 END
  FROM uncounted u
  LEFT JOIN LATERAL (
    SELECT true AS yes
    FROM cost_entries e
    WHERE e.run_id = u.run_id
      AND (SELECT lo FROM spans) < 'infinity'
      AND e.created_at >= (SELECT lo FROM spans)
      AND e.created_at < (SELECT hi FROM spans)
      AND (` + key + `, ` + day + `) = (u.subject, u.day)
    LIMIT 1) again ON true)
SELECT subject, day, least(greatest(sum(cost_usd), 0), 999999999999) AS cost, sum(input_tokens)::bigint,
  sum(output_tokens)::bigint, sum(runs)::bigint
FROM sums
GROUP BY 1, 2
ORDER BY ` + order + `
LIMIT $5`
}
