package store

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// spending is a live run with what its attempt used; usage nil means that the agent did not say.
type spending struct {
	run   *runRow
	usage *Usage
}

// spendAll notes what attempts used, on their runs and in the ledger that budgets are reckoned from (SPEC S6.5), once for each
// attempt, whatever became of it. A cost that was said and cannot be read is what the budgets reserved. The runs tell what could
// not be read. They are locked.
func (t *tx) spendAll(ctx context.Context, list []spending) error {
	var runs, costs, entries []string
	var attempts, input, output []int64
	for _, x := range list {
		u := x.usage
		if u == nil || *u == (Usage{}) {
			continue
		}
		cost := u.CostUSD
		x.run.unread = u.Unread
		if u.CostUnread {
			var err error
			if cost, err = t.reservedFor(ctx, *x.run); err != nil {
				return err
			}
			x.run.charged = cost
		}
		runs, attempts = append(runs, string(x.run.id)), append(attempts, int64(x.run.attempt))
		input, output = append(input, int64(u.InputTokens)), append(output, int64(u.OutputTokens))
		costs, entries = append(costs, cost), append(entries, string(xid.New("cst")))
		t.countCost(x.run.workspaceID, cost)
	}
	if len(runs) == 0 {
		return nil
	}
	const query = `
-- $1 runs, $2 attempts, $3 input tokens, $4 output tokens, $5 costs, "" where not known, $6 ids of the entries,
-- $7 now
WITH n AS (
  SELECT run, attempt, input, output, NULLIF(cost, '')::numeric AS cost, entry
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
    AS n (run, attempt, input, output, cost, entry)),
r AS (
  UPDATE runs SET input_tokens = input_tokens + n.input, output_tokens = output_tokens + n.output,
    cost_usd = CASE WHEN n.cost IS NULL THEN cost_usd ELSE coalesce(cost_usd, 0) + n.cost END
  FROM n
  WHERE id = n.run AND id = ANY($1)
  RETURNING id, workspace_id, agent_id, task_id, causation_id, n.attempt AS number, n.input, n.output, n.cost, n.entry)
INSERT INTO cost_entries (id, workspace_id, causation_id, run_id, attempt, agent_id, project_id,
    input_tokens, output_tokens, cost_usd, created_at)
SELECT entry, workspace_id, causation_id, id, number, agent_id,
  (SELECT project_id FROM tasks WHERE id = r.task_id), input, output, coalesce(cost, 0), $7
FROM r`
	noted, err := pgtx.Exec(ctx, t, query, pgtx.TextArray(runs), pgtx.IntArray(attempts), pgtx.IntArray(input), pgtx.IntArray(output), pgtx.TextArray(costs),
		pgtx.TextArray(entries), t.Now)
	if err == nil && int(noted) != len(runs) {
		err = fmt.Errorf("noted %d of %d", noted, len(runs))
	}
	return pgtx.Wrap("note what the attempts used", err)
}

// countCost notes an attempt's cost once it is stored; "" is not known and not counted.
func (t *tx) countCost(workspaceID xid.ID, cost string) {
	if amount, err := domain.ParseMoney(cost); err == nil {
		t.Count(func(c *metrics.Counters) { c.AttemptCost(workspaceID, amount) })
	}
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
