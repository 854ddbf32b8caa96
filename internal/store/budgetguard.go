package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// budgets is what a claim knows of the budgets that its runs may be charged to: nothing in a workspace without budgets,
// where the guards cost no statement.
type budgets struct {
	workspaces []xid.ID                // that have a budget
	rows       []*budgetRow            // locked, as they are now, with what this claim reserved
	holds      map[xid.ID]domain.Money // what a run of each agent reserves
	projects   map[xid.ID]xid.ID       // of tasks; "" for none
}

// readBudgets locks the budgets that runs of the lanes may be charged to and reads what such a run reserves. The
// workspaces' lanes are locked already; budgets come after them.
func (c *claimer) readBudgets(ctx context.Context, lanes []lane) error {
	if len(c.budgets.workspaces) == 0 {
		return nil
	}
	var agents []xid.ID
	for _, l := range lanes {
		if slices.Contains(c.budgets.workspaces, l.workspaceID) {
			agents = append(agents, l.agentID)
		}
	}
	const lock = `
SELECT ` + budgetColumns + ` FROM budget_policies b WHERE workspace_id = ANY($1) AND (subject_kind <> 'AGENT' OR subject_id = ANY($2))
ORDER BY id FOR NO KEY UPDATE`
	found, err := collect(ctx, c, scanBudget, lock, ids(c.budgets.workspaces), ids(agents))
	if err != nil {
		return fmt.Errorf("lock budgets: %w", err)
	}
	for _, b := range found {
		b.Budget = b.At(c.now)
		c.budgets.rows = append(c.budgets.rows, &b)
	}
	c.budgets.projects = map[xid.ID]xid.ID{}
	return c.readHoldAmounts(ctx, agents)
}

// readHoldAmounts reads what each agent's last launched runs cost; runs that guards settled are no runs in this sense, and
// not more than 200 of them are looked through.
func (c *claimer) readHoldAmounts(ctx context.Context, agents []xid.ID) error {
	const query = `
SELECT a.id, (SELECT least(greatest(coalesce(sum(e.cost_usd), 0), 0), 999999999999)::text FROM cost_entries e WHERE e.run_id = r.id)
FROM unnest($1::text[]) AS a (id) CROSS JOIN LATERAL (
  SELECT id FROM (SELECT id, started_at, finished_at FROM runs WHERE agent_id = a.id AND finished_at IS NOT NULL ORDER BY finished_at DESC LIMIT 200) ended
  WHERE started_at IS NOT NULL ORDER BY finished_at DESC LIMIT $2) r`
	costs := map[xid.ID][]domain.Money{}
	_, err := collect(ctx, c, func(rows *sql.Rows) (struct{}, error) {
		var agent xid.ID
		var text string
		if err := rows.Scan(&agent, &text); err != nil {
			return struct{}{}, err
		}
		cost, err := domain.ParseMoney(text)
		costs[agent] = append(costs[agent], cost)
		return struct{}{}, err
	}, query, ids(agents), domain.HoldRuns)
	if err != nil {
		return fmt.Errorf("read what the agents' last runs cost: %w", err)
	}
	c.budgets.holds = map[xid.ID]domain.Money{}
	for agent, list := range costs {
		c.budgets.holds[agent] = domain.HoldAmount(list)
	}
	return nil
}

// readProjects reads the projects of the runs' tasks, where a project has a budget.
func (c *claimer) readProjects(ctx context.Context, runs ...runRow) error {
	if !slices.ContainsFunc(c.budgets.rows, func(b *budgetRow) bool { return b.SubjectKind == domain.BudgetSubjectKindProject }) {
		return nil
	}
	var tasks []xid.ID
	for _, run := range runs {
		if _, known := c.budgets.projects[run.taskID]; run.taskID != "" && !known {
			tasks = append(tasks, run.taskID)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	found := map[xid.ID]xid.ID{}
	_, err := collect(ctx, c, func(rows *sql.Rows) (struct{}, error) {
		var task, project xid.ID
		err := rows.Scan(&task, &project)
		found[task] = project
		return struct{}{}, err
	}, `SELECT id, project_id FROM tasks WHERE id = ANY($1)`, ids(tasks))
	if err != nil {
		return fmt.Errorf("read the projects of the tasks: %w", err)
	}
	maps.Copy(c.budgets.projects, found)
	return nil
}

// of is the budgets that a run is charged to.
func (b *budgets) of(run runRow) []*budgetRow {
	var list []*budgetRow
	for _, row := range b.rows {
		if row.applies(run.workspaceID, run.agentID, b.projects[run.taskID]) {
			list = append(list, row)
		}
	}
	return list
}

// admit runs the budget guards on a run, given what the claim has reserved so far besides.
func (b *budgets) admit(run runRow, besides map[string]domain.Money) domain.BudgetAnswer {
	if len(b.rows) == 0 {
		return domain.BudgetAnswer{}
	}
	var list []domain.Budget
	for _, row := range b.of(run) {
		now := row.Budget
		now.Reserved += besides[now.ID]
		list = append(list, now)
	}
	return domain.AdmitBudgets(list)
}

// reserve adds what a run will hold to what the claim has reserved besides.
func (b *budgets) reserve(run runRow, besides map[string]domain.Money) {
	for _, row := range b.of(run) {
		besides[row.ID] += b.holds[run.agentID]
	}
}

// hold writes the holds of claimed runs and what they reserve of each budget.
func (c *claimer) hold(ctx context.Context, runs []runRow, numbers map[xid.ID]int) error {
	var policies, runIDs, workspaces []xid.ID
	var attempts []int64
	var amounts []string
	reserved := map[string]domain.Money{}
	for _, run := range runs {
		for _, row := range c.budgets.of(run) {
			policies, runIDs, workspaces = append(policies, xid.ID(row.ID)), append(runIDs, run.id), append(workspaces, run.workspaceID)
			attempts, amounts = append(attempts, int64(numbers[run.id])), append(amounts, c.budgets.holds[run.agentID].String())
		}
		c.budgets.reserve(run, reserved)
	}
	if len(policies) == 0 {
		return nil
	}
	const query = `
WITH n AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::numeric[]) AS n (id, workspace_id, policy_id, run_id, attempt, amount)),
held AS (
  INSERT INTO budget_holds (id, workspace_id, policy_id, run_id, attempt, amount_usd, status, created_at)
  SELECT id, workspace_id, policy_id, run_id, attempt, amount, 'HELD', $7 FROM n)
UPDATE budget_policies b SET reserved_usd = b.reserved_usd + s.amount FROM (SELECT policy_id, sum(amount) AS amount FROM n GROUP BY policy_id) s WHERE b.id = s.policy_id`
	_, err := exec(ctx, c, query, ids(newIDs("hld", len(policies))), ids(workspaces), ids(policies), ids(runIDs), intArray(attempts), pq.Array(amounts), c.now)
	if err != nil {
		return fmt.Errorf("reserve of the budgets: %w", err)
	}
	for _, row := range c.budgets.rows {
		row.Reserved += reserved[row.ID]
	}
	return nil
}

// judgeBudget does what the budgets say about a run that no other guard refuses: false: it may be taken.
func (c *claimer) judgeBudget(ctx context.Context, l *lane, run runRow) (refused bool, err error) {
	if err := c.readProjects(ctx, run); err != nil {
		return false, err
	}
	switch answer := c.budgets.admit(run, nil); {
	case answer.Blocked != nil:
		return true, c.blockByBudget(ctx, l, run, answer.Blocked)
	case answer.Reserved != nil:
		return true, c.parkReserved(ctx, run, answer.Reserved)
	}
	return false, nil
}

// blockByBudget ends a run whose budget is spent and holds its agent until no budget of it is exceeded any more.
func (c *claimer) blockByBudget(ctx context.Context, l *lane, run runRow, b *domain.Budget) error {
	now, err := c.readHold(ctx, l.agentID)
	if err != nil {
		return err
	}
	next, problems := now.Pause(domain.AgentPauseReasonBudget, c.now)
	if err := domain.AsUserError(problems); err != nil {
		return err
	}
	if err := c.settle(ctx, run, domain.BudgetBlocked); err != nil {
		return err
	}
	if next.Same(now) {
		return nil
	}
	if err := c.writeHold(ctx, *l, next); err != nil {
		return err
	}
	l.status = next.Status
	return c.noteHold(ctx, *l, next, fmt.Sprintf("The budget %s is spent: %s of %s US dollars.", b.ID, b.Spent, b.Limit))
}

// parkReserved lets a run wait until live runs have told what they really cost.
func (c *claimer) parkReserved(ctx context.Context, run runRow, b *domain.Budget) error {
	const park = `
UPDATE runs SET parked_reason = 'BUDGET_RESERVED', parked_until = $2, revision = revision + 1 WHERE id = $1 AND status = 'QUEUED'`
	if err := execOne(ctx, c, park, run.id, c.now.Add(domain.BudgetRetry)); err != nil {
		return fmt.Errorf("park run until the budget is free: %w", err)
	}
	if err := c.runEvent(ctx, run, domain.RunEventKindGuard, 0, map[string]any{"parked": domain.ParkedReasonBudgetReserved, "budget": b.ID}); err != nil {
		return err
	}
	return c.releaseScope(ctx, run.agentID, run.scope)
}
