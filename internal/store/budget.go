package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// UpsertBudget is a limit of what a workspace, one of its projects or one of its agents may spend in a period. A subject
// has at most one budget.
type UpsertBudget struct {
	WorkspaceID      xid.ID
	SubjectKind      domain.BudgetSubjectKind
	SubjectID        xid.ID
	LimitUSD         string // a decimal above 0
	Period           domain.BudgetPeriod
	Thresholds       []int // percent
	OnExceed         domain.BudgetAction
	ExpectedRevision *int
}

// UpsertBudget makes or changes the budget of a subject and counts what was spent in the running period. Thresholds
// that are reached already make alerts at once. Agents that no budget holds any more are resumed. It returns what that
// sends.
func (s *Queue) UpsertBudget(ctx context.Context, in UpsertBudget) (id xid.ID, caused Released, err error) {
	limit, thresholds, problems := domain.BudgetSettings{LimitUSD: in.LimitUSD, Thresholds: in.Thresholds}.Check()
	if err := domain.AsUserError(problems); err != nil {
		return "", caused, err
	}
	in.Thresholds = thresholds
	var alerts, due []xid.ID
	err = s.inTx(ctx, func(t *tx) error {
		id, err = t.upsertBudget(ctx, in, limit)
		alerts, due = t.sent, t.due
		return err
	})
	if err != nil {
		return "", caused, pgtx.Wrap("set budget", err)
	}
	caused.Due = due
	caused.add(Resumed{Requests: alerts, Count: len(alerts)})
	s.releaseBudgets(ctx, in.WorkspaceID, &caused)
	return id, caused, nil
}

func (t *tx) upsertBudget(ctx context.Context, in UpsertBudget, limit domain.Money) (xid.ID, error) {
	if err := t.checkBudgetSubject(ctx, in); err != nil {
		return "", err
	}
	if err := t.ReadClock(ctx); err != nil {
		return "", err
	}
	const insert = `
-- $1 id, $2 workspace, $3 kind of subject, $4 subject, $5 limit, $6 period, $7 what happens when it is spent,
-- $8 begin of the period
INSERT INTO budget_policies (id, workspace_id, subject_kind, subject_id, limit_usd, period,
    alert_thresholds, on_exceed, period_start, spent_usd, reserved_usd)
VALUES ($1, $2, $3, $4, $5, $6, '[]', $7, $8, 0, 0)
ON CONFLICT (workspace_id, subject_kind, subject_id) DO NOTHING`
	made, err := pgtx.Exec(ctx, t, insert, xid.New("bud"), in.WorkspaceID, in.SubjectKind, in.SubjectID, limit.String(), in.Period, in.OnExceed, in.Period.Start(t.Now))
	if err != nil {
		return "", fmt.Errorf("insert budget: %w", err)
	}
	const lock = `
SELECT ` + guard.BudgetColumns + `
FROM budget_policies b
WHERE workspace_id = $1 AND subject_kind = $2 AND subject_id = $3
FOR NO KEY UPDATE`
	found, err := pgtx.Collect(ctx, t, guard.ScanBudget, lock, in.WorkspaceID, in.SubjectKind, in.SubjectID)
	if err != nil {
		return "", fmt.Errorf("lock budget: %w", err)
	}
	if len(found) == 0 {
		return "", pgtx.ErrChanged // it was there, and was deleted meanwhile
	}
	b := found[0]
	if made > 0 && in.ExpectedRevision != nil {
		return "", domain.RefuseField([]string{"expectedRevision"}, domain.UserErrorCodeConflict,
			"there is no such budget any more: it was deleted since revision %d; leave expectedRevision out to make one", *in.ExpectedRevision)
	}
	if made == 0 {
		if err := checkRevision(in.ExpectedRevision, b.Revision, "budget"); err != nil {
			return "", err
		}
		b.Revision++
	}
	return xid.ID(b.ID), t.changeBudget(ctx, b, in, limit, made > 0)
}

// changeBudget gives a locked budget its settings, its spending and its alerts, and a new one what live runs reserve of it.
func (t *tx) changeBudget(ctx context.Context, b guard.Budget, in UpsertBudget, limit domain.Money, made bool) error {
	thresholds, err := json.Marshal(append([]int{}, in.Thresholds...))
	if err != nil {
		return fmt.Errorf("encode thresholds: %w", err)
	}
	const change = `
UPDATE budget_policies
SET limit_usd = $2, period = $3, alert_thresholds = $4, on_exceed = $5, revision = $6, updated_at = $7
WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, change, b.ID, limit.String(), in.Period, thresholds, in.OnExceed, b.Revision, t.Now); err != nil {
		return fmt.Errorf("change budget: %w", err)
	}
	if b.Period != in.Period || b.PeriodStart.Before(in.Period.Start(t.Now)) { // another period: nothing was told in it
		b.Told = nil
	}
	b.Limit, b.Thresholds, b.OnExceed, b.Period, b.PeriodStart = limit, in.Thresholds, in.OnExceed, in.Period, in.Period.Start(t.Now)
	if b.Spent, err = t.spentOf(ctx, b); err != nil {
		return err
	}
	if made {
		if err := t.holdLive(ctx, &b); err != nil {
			return err
		}
	}
	var subject xid.ID
	if b.SubjectKind == domain.BudgetSubjectKindAgent {
		subject = xid.ID(b.SubjectID)
	}
	if err := t.writeBudgets(ctx, []*guard.Budget{&b}, alertCause{agentID: subject, causationID: xid.New("cau"), hops: domain.NextHops(-1)}); err != nil {
		return err
	}
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: in.WorkspaceID})
	return t.noteBudget(ctx, b, "The budget was set.", withDue(map[string]any{"created": made}, t.due))
}

// withDue adds the runs that a change lets look again at once, if there are any: how many, and the first of them.
func withDue(data map[string]any, runs []xid.ID) map[string]any {
	if len(runs) > 0 {
		data["runsDue"], data["dueRunIds"] = len(runs), firstListed(runs)
	}
	return data
}

// holdLive reserves of a new budget what the live runs that are charged to it are expected to cost, as if the budget
// had been there when they were claimed. The same holds for a budget that was deleted and is made again. The runs are
// locked, because one that ends at this very moment would leave its hold behind. It ends before the lock and is no
// longer live, or after it and finds its hold.
func (t *tx) holdLive(ctx context.Context, b *guard.Budget) error {
	type live struct {
		runID, agentID, projectID xid.ID
		attempt                   int64
	}
	const query = `
SELECT r.id, r.attempt, r.agent_id, k.project_id
FROM agent_lanes l
JOIN runs r ON r.agent_id = l.agent_id AND r.status = 'CLAIMED'
LEFT JOIN tasks k ON k.id = r.task_id
WHERE l.workspace_id = $1 AND l.running > 0 ORDER BY r.id FOR SHARE OF r`
	runs, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (x live, err error) {
		return x, rows.Scan(&x.runID, &x.attempt, &x.agentID, &x.projectID)
	}, query, b.WorkspaceID)
	if err != nil {
		return fmt.Errorf("read live runs: %w", err)
	}
	runs = slices.DeleteFunc(runs, func(x live) bool { return !b.ChargedWith(b.WorkspaceID, x.agentID, x.projectID) })
	if len(runs) == 0 {
		return nil
	}
	var agents, runIDs []xid.ID
	for _, x := range runs {
		agents, runIDs = append(agents, x.agentID), append(runIDs, x.runID)
	}
	ledger := domain.BudgetLedger{Budgets: []domain.Budget{b.Budget}}
	if ledger.Expected, err = guard.ExpectedCosts(ctx, t, pgtx.Distinct(agents)); err != nil {
		return err
	}
	var attempts []int64
	var amounts []string
	for _, x := range runs {
		held := ledger.Reserve(domain.BudgetCharge{WorkspaceID: string(b.WorkspaceID), AgentID: string(x.agentID), ProjectID: string(x.projectID)})
		attempts, amounts = append(attempts, x.attempt), append(amounts, held[0].Amount.String())
	}
	b.Reserved = ledger.Budgets[0].Reserved
	const insert = `
-- $1 workspace, $2 budget, $3 ids of the holds, $4 runs, $5 their attempts, $6 amounts, $7 now
INSERT INTO budget_holds (id, workspace_id, policy_id, run_id, attempt, amount_usd, status, created_at)
SELECT n.id, $1, $2, n.run, n.attempt, n.amount, 'HELD', $7
FROM unnest($3::text[], $4::text[], $5::bigint[], $6::numeric[]) AS n (id, run, attempt, amount)`
	_, err = pgtx.Exec(ctx, t, insert, b.WorkspaceID, b.ID, pgtx.IDs(newIDs("hld", len(runs))), pgtx.IDs(runIDs), pgtx.IntArray(attempts), pgtx.TextArray(amounts), t.Now)
	return pgtx.Wrap("reserve of the budget for live runs", err)
}

// noteBudget says in the feed what became of a budget; data is what is special about this change.
func (t *tx) noteBudget(ctx context.Context, b guard.Budget, summary string, data map[string]any) error {
	maps.Copy(data, map[string]any{"budgetId": b.ID, "subjectKind": b.SubjectKind, "subjectId": b.SubjectID, "limitUsd": b.Limit.String(), "period": b.Period, "onExceed": b.OnExceed})
	e := entry{workspaceID: b.WorkspaceID, code: domain.ActivityCodeBudgetChanged, by: callerOr(ctx, "budget"), summary: summary, subjectID: xid.ID(b.ID), data: data}
	if b.SubjectKind == domain.BudgetSubjectKindAgent {
		e.agentID = xid.ID(b.SubjectID)
	}
	return t.note(ctx, e)
}

// checkBudgetSubject refuses a budget for something that is not there.
func (t *tx) checkBudgetSubject(ctx context.Context, in UpsertBudget) error {
	switch in.SubjectKind {
	case domain.BudgetSubjectKindAgent:
		return t.checkAgent(ctx, in.WorkspaceID, in.SubjectID, []string{"subject", "agentId"})
	case domain.BudgetSubjectKindProject:
		const query = `SELECT true FROM projects WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL`
		if _, err := pgtx.QueryOne[bool](ctx, t, query, in.SubjectID, in.WorkspaceID); err != nil {
			return pgtx.NotFound(err, []string{"subject", "projectId"}, "project", in.SubjectID)
		}
	}
	return nil
}

// spentOf sums what was spent in the budget's period. The budget is locked: an end that this statement does not see has
// not charged it yet.
func (t *tx) spentOf(ctx context.Context, b guard.Budget) (domain.Money, error) {
	kind, subject, entries := domain.CostGroupingDay, "", `e.workspace_id = $1`
	switch b.SubjectKind {
	case domain.BudgetSubjectKindAgent:
		kind, subject, entries = domain.CostGroupingAgent, b.SubjectID, `e.workspace_id = $1 AND e.agent_id = $5`
	case domain.BudgetSubjectKindProject:
		kind, subject, entries = domain.CostGroupingProject, b.SubjectID, `e.workspace_id = $1 AND e.project_id = $5`
	}
	query := `
-- $1 workspace, $2 begin of the period, $3 its end, $4 kind of sum, $5 whose
WITH ` + guard.CostSpans + `,
sums AS (` + guard.CountedCosts(`t.cost_usd`, `t.kind = $4 AND t.subject = $5`) + `
  UNION ALL` + guard.UncountedCosts(`e.cost_usd`, entries) + `)
SELECT least(greatest(coalesce(sum(cost_usd), 0), 0), 999999999999)::text FROM sums`
	sum, err := pgtx.QueryOne[string](ctx, t, query, b.WorkspaceID, b.PeriodStart, "infinity", kind, subject)
	if err != nil {
		return 0, fmt.Errorf("sum what was spent: %w", err)
	}
	return domain.ParseMoney(sum)
}

// DeleteBudget removes a budget with its holds; agents that only it held are resumed. It returns what that sends.
func (s *Queue) DeleteBudget(ctx context.Context, workspaceID, budgetID xid.ID) (caused Released, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		const lock = `SELECT ` + guard.BudgetColumns + ` FROM budget_policies b WHERE id = $1 AND workspace_id = $2 FOR UPDATE`
		found, err := pgtx.Collect(ctx, t, guard.ScanBudget, lock, budgetID, workspaceID)
		if err == nil && len(found) == 0 {
			err = sql.ErrNoRows
		}
		if err != nil {
			return pgtx.NotFound(err, []string{"budgetId"}, "budget", budgetID)
		}
		if _, err := pgtx.Exec(ctx, t, `DELETE FROM budget_holds WHERE policy_id = $1`, budgetID); err != nil {
			return fmt.Errorf("delete its holds: %w", err)
		}
		if err := pgtx.ExecOne(ctx, t, `DELETE FROM budget_policies WHERE id = $1`, budgetID); err != nil {
			return err
		}
		if found[0].OnExceed == domain.BudgetActionPauseAgent { // one that only tells held nothing up
			if err := t.wakeReserved(ctx, found); err != nil {
				return err
			}
		}
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: workspaceID})
		caused.Due = t.due
		return t.noteBudget(ctx, found[0], "The budget was deleted.", withDue(map[string]any{"deleted": true}, t.due))
	})
	if err != nil {
		return caused, pgtx.Wrap("delete budget", err)
	}
	s.releaseBudgets(ctx, workspaceID, &caused)
	return caused, nil
}
