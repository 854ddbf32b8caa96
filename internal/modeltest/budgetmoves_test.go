package modeltest

import (
	"context"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/modeltest/model"
	"rouse.dev/rouse/internal/store"
)

// budgetMoves are what happens to money besides what runs cost.
var budgetMoves = []move{
	{"set a budget", 6, (*sequence).setAnyBudget},
	{"delete a budget", 2, (*sequence).dropAnyBudget},
	{"a new period", 2, (*sequence).turnPeriod},
	{"budget sweep", 4, (*sequence).sweepBudgets},
}

func (q *sequence) setAnyBudget(ctx context.Context) (bool, error) {
	b := model.Budget{Limit: (1 + q.rand.IntN(8)) * 250_000, Pauses: q.rand.IntN(4) > 0, Periodic: q.rand.IntN(3) > 0}
	in := store.UpsertBudget{WorkspaceID: q.workspace, SubjectKind: domain.BudgetSubjectKindWorkspace, SubjectID: q.workspace,
		LimitUSD: domain.Money(b.Limit).String(), Period: domain.BudgetPeriodTotal, OnExceed: domain.BudgetActionNotify}
	switch n := q.rand.IntN(6); {
	case n < 3:
		b.Agent, in.SubjectKind, in.SubjectID = q.model.Agents[n], domain.BudgetSubjectKindAgent, q.agents[n]
	case n < 5:
		b.Project, in.SubjectKind, in.SubjectID = n-2, domain.BudgetSubjectKindProject, q.office.projects[n-3]
	}
	if q.rand.IntN(2) == 0 {
		b.Thresholds = []int{50, 100}
		in.Thresholds = b.Thresholds
	}
	if b.Pauses {
		in.OnExceed = domain.BudgetActionPauseAgent
	}
	if b.Periodic {
		in.Period = domain.BudgetPeriodMonth
	}
	q.note("budget %+v", in)
	q.model.SetBudget(b)
	_, _, err := q.UpsertBudget(ctx, in)
	return true, err
}

func (q *sequence) dropAnyBudget(ctx context.Context) (bool, error) {
	if len(q.office.budgets) == 0 {
		return false, nil
	}
	return true, q.dropBudget(ctx, q.rand.IntN(len(q.office.budgets)))
}

// dropBudget deletes one of the budgets that are there.
func (q *sequence) dropBudget(ctx context.Context, i int) error {
	n := i
	for _, b := range q.model.Budgets {
		if b.Gone {
			continue
		}
		if n == 0 {
			q.note("delete budget %d", i+1)
			q.model.DropBudget(b)
			_, err := q.DeleteBudget(ctx, q.workspace, q.office.budgets[i])
			return err
		}
		n--
	}
	return fmt.Errorf("the model has no budget %d", i+1)
}

// turnPeriod lets a month begin: what was spent, and told of, was in another one.
func (q *sequence) turnPeriod(ctx context.Context) (bool, error) {
	q.note("a month begins")
	q.model.Turn()
	if err := q.ageCosts(ctx); err != nil {
		return true, err
	}
	for _, statement := range []string{
		`UPDATE budget_policies SET period_start = period_start - interval '1 month' WHERE workspace_id = $1 AND period = 'MONTH' AND $2 <> ''`,
		`UPDATE wakeup_requests SET idempotency_key = idempotency_key || $2 WHERE workspace_id = $1 AND source = 'BUDGET_ALERT'
 AND idempotency_key NOT LIKE 'budget:%:1970-%'`,
	} {
		if err := q.sql(ctx, statement, q.workspace, fmt.Sprint(" before step ", len(q.log))); err != nil {
			return true, err
		}
	}
	return true, nil
}

// ageCosts makes the costs older, and lets the hours be counted again that have others now.
func (q *sequence) ageCosts(ctx context.Context) error {
	tx, err := q.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it is committed by then
	_, err = tx.ExecContext(ctx, `UPDATE cost_entries SET created_at = created_at - interval '40 days' WHERE workspace_id = $1`, q.workspace)
	for _, statement := range []string{`UPDATE cost_tally_mark SET until = 'epoch'`, `DELETE FROM cost_tallies`} {
		if err == nil {
			_, err = tx.ExecContext(ctx, statement)
		}
	}
	if err != nil {
		return err
	}
	return tx.Commit()
}

func (q *sequence) sweepBudgets(ctx context.Context) (bool, error) {
	q.note("budget sweep")
	q.model.SweepBudgets()
	if _, err := q.TallyCosts(ctx); err != nil {
		return true, err
	}
	_, err := q.SweepBudgets(ctx)
	return true, err
}
