package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// spend notes what an attempt used, on its run and in the ledger that budgets are reckoned from (SPEC S6.5), once for each
// attempt, whatever became of it. A cost that was said and cannot be read is what the budgets reserved. The run that is
// returned tells what could not be read. The run is locked.
func (t *tx) spend(ctx context.Context, run runRow, u *Usage) (runRow, error) {
	if u == nil || *u == (Usage{}) {
		return run, nil
	}
	run.unread = u.Unread
	cost := u.CostUSD
	if u.CostUnread {
		var err error
		if cost, err = t.reservedFor(ctx, run); err != nil {
			return run, err
		}
		run.charged = cost
	}
	const query = `
-- $1 run, $2 attempt, $3 input tokens, $4 output tokens, $5 cost, or "" when it is not known, $6 id of the
-- entry, $7 now
WITH r AS (
  UPDATE runs SET input_tokens = input_tokens + $3, output_tokens = output_tokens + $4,
    cost_usd = CASE WHEN $5 = '' THEN cost_usd ELSE coalesce(cost_usd, 0) + NULLIF($5, '')::numeric END
  WHERE id = $1 RETURNING id, workspace_id, agent_id, task_id, causation_id)
INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, project_id,
    input_tokens, output_tokens, cost_usd, created_at)
SELECT $6, workspace_id, causation_id, id, $2, agent_id,
  (SELECT project_id FROM tasks WHERE id = r.task_id), $3, $4, coalesce(NULLIF($5, '')::numeric, 0), $7
FROM r`
	if err := pgtx.ExecOne(ctx, t, query, run.id, run.attempt, u.InputTokens, u.OutputTokens, cost, xid.New("cst"), t.Now); err != nil {
		return run, fmt.Errorf("note what the attempt used: %w", err)
	}
	return run, nil
}

// reservedFor is what budgets reserved for a live attempt; "" when no budget did. When they reserved different amounts,
// as for a run of unknown cost, it is the least. That uses up the budget that had least left, and no other budget is
// charged with more.
func (t *tx) reservedFor(ctx context.Context, run runRow) (string, error) {
	const query = `
SELECT coalesce(min(amount_usd)::text, '')
FROM budget_holds
WHERE run_id = $1 AND attempt = $2 AND status = 'HELD' AND amount_usd > 0`
	reserved, err := pgtx.QueryOne[string](ctx, t, query, run.id, run.attempt)
	return reserved, pgtx.Wrap("read what is reserved for the attempt", err)
}
