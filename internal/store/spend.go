package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/xid"
)

// Usage is what one attempt used by its agent's own account. CostUSD is a decimal, "" when unknown.
type Usage struct {
	InputTokens, OutputTokens int64
	CostUSD                   string
}

// spend notes what an attempt used, on its run and in the ledger that budgets are reckoned from (SPEC S6.5), once for each
// attempt, whatever became of it. The run is locked.
func (t *tx) spend(ctx context.Context, run runRow, u *Usage) error {
	if u == nil || *u == (Usage{}) {
		return nil
	}
	const query = `
WITH r AS (
  UPDATE runs SET input_tokens = input_tokens + $3, output_tokens = output_tokens + $4,
    cost_usd = CASE WHEN $5 = '' THEN cost_usd ELSE coalesce(cost_usd, 0) + NULLIF($5, '')::numeric END
  WHERE id = $1 RETURNING id, workspace_id, agent_id, task_id, causation_id)
INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, project_id, input_tokens, output_tokens, cost_usd, created_at)
SELECT $6, workspace_id, causation_id, id, $2, agent_id, (SELECT project_id FROM tasks WHERE id = r.task_id), $3, $4, coalesce(NULLIF($5, '')::numeric, 0), $7
FROM r`
	if err := execOne(ctx, t, query, run.id, run.attempt, u.InputTokens, u.OutputTokens, u.CostUSD, xid.New("cst"), t.now); err != nil {
		return fmt.Errorf("note what the attempt used: %w", err)
	}
	return nil
}
