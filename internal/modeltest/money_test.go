package modeltest

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// moneyLaws hold of budgets whenever nobody is in the middle of a transition, and the sweep has counted again those that
// were set while runs ended.
var moneyLaws = map[string]string{
	"a budget reserves what its holds add up to": `
SELECT count(*) FROM budget_policies b WHERE workspace_id = $1 AND reserved_usd <> (SELECT coalesce(sum(amount_usd), 0) FROM budget_holds WHERE policy_id = b.id AND status = 'HELD')`,
	"what is held is held by a live attempt": `
SELECT count(*) FROM budget_holds h WHERE workspace_id = $1 AND status = 'HELD' AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = h.run_id AND r.status = 'CLAIMED' AND r.attempt = h.attempt)`,
	"a budget has spent what its costs add up to": `
SELECT count(*) FROM budget_policies b WHERE workspace_id = $1 AND spent_usd <> (SELECT coalesce(sum(cost_usd), 0) FROM cost_entries e
  WHERE CASE b.subject_kind WHEN 'AGENT' THEN e.agent_id WHEN 'PROJECT' THEN e.project_id ELSE e.workspace_id END = b.subject_id AND e.created_at >= b.period_start)`,
	"hours that are counted have what their costs add up to": `
SELECT count(*) FROM cost_tally_mark m WHERE (SELECT coalesce(sum(e.cost_usd), 0) FROM cost_entries e WHERE e.created_at < m.until AND e.workspace_id = $1)
  <> (SELECT coalesce(sum(cost_usd), 0) FROM cost_tallies WHERE workspace_id = $1 AND kind = 'AGENT' AND NOT day)`,
	"an attempt's cost is on its run": `
SELECT count(*) FROM runs r WHERE workspace_id = $1 AND coalesce(cost_usd, 0) <> (SELECT coalesce(sum(cost_usd), 0) FROM cost_entries e WHERE e.run_id = r.id)`,
	"who was blocked by a budget is held, or was sent it again": `
SELECT count(*) FROM wakeup_requests q JOIN agent_lanes l ON l.agent_id = q.agent_id JOIN tasks t ON t.id = q.task_id
WHERE q.workspace_id = $1 AND q.end_reason = 'BUDGET_BLOCKED' AND q.wake_class = 'EVENT' AND l.status NOT IN ('PAUSED', 'STOPPED')
  AND q.basis = 'EXPLICIT' AND t.state NOT IN ('DONE', 'CANCELLED') AND t.archived_at IS NULL AND q.finished_at > t.updated_at`,
}

// onMoney sets and deletes budgets, and sweeps.
func (c *clerk) onMoney(ctx context.Context) error {
	switch k := c.rand.IntN(10); {
	case k < 5:
		in := store.UpsertBudget{WorkspaceID: c.workspace, SubjectKind: domain.BudgetSubjectKindWorkspace, SubjectID: c.workspace, LimitUSD: domain.Money(250_000 * (1 + c.rand.IntN(12))).String(),
			Period: domain.BudgetPeriodTotal, Thresholds: []int{50, 100}, OnExceed: domain.BudgetActionPauseAgent}
		switch n := c.rand.IntN(6); {
		case n < 3:
			in.SubjectKind, in.SubjectID = domain.BudgetSubjectKindAgent, c.agents[n%len(c.agents)]
		case n < 5 && len(c.projects) > 0:
			in.SubjectKind, in.SubjectID = domain.BudgetSubjectKindProject, c.projects[n%len(c.projects)]
		}
		_, _, err := c.UpsertBudget(ctx, in)
		return allowed(err)
	case k < 7:
		return c.dropBudget(ctx)
	case k < 9:
		_, err := c.SweepBudgets(ctx)
		return err
	}
	_, err := c.Recover(ctx)
	return err
}

// dropBudget deletes one of the workspace's budgets, if there is one.
func (w *place) dropBudget(ctx context.Context) error {
	var id xid.ID
	err := w.db.QueryRowContext(ctx, `SELECT coalesce((SELECT id FROM budget_policies WHERE workspace_id = $1 ORDER BY id LIMIT 1), '')`, w.workspace).Scan(&id)
	if err != nil || id == "" {
		return err
	}
	_, err = w.DeleteBudget(ctx, w.workspace, id)
	return allowed(err)
}

// freeMoney takes all budgets away.
func (w *place) freeMoney(ctx context.Context) error {
	for {
		var n int
		if err := w.db.QueryRowContext(ctx, `SELECT count(*) FROM budget_policies WHERE workspace_id = $1`, w.workspace).Scan(&n); err != nil || n == 0 {
			return err
		}
		if err := w.dropBudget(ctx); err != nil {
			return err
		}
	}
}

// price is what an attempt says that it cost.
func (p *player) price() *store.Usage {
	return &store.Usage{CostUSD: domain.Money(p.rand.IntN(4) * 250_000).String()}
}
