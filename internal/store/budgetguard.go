package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// budgets is what a claim knows of the budgets that its runs may be charged to: nothing in a workspace without budgets,
// where the guards cost no statement.
type budgets struct {
	workspaces []xid.ID            // that have a budget
	byProject  []xid.ID            // those of them that have one of a project
	ledger     domain.BudgetLedger // locked, as they are now, with what this claim reserved
	looked     map[xid.ID]bool     // projects whose budgets are locked, if they have one
	projects   map[xid.ID]xid.ID   // of tasks; "" for none
}

// errProjectNew says that a run is of a project whose budget was not locked with the others: the next claim does.
var errProjectNew = errors.New("the run's project came up during the claim")

// readBudgets locks the budgets that runs of the lanes may be charged to and reads what such a run will cost. The
// workspaces' lanes are locked already; budgets come after them. Lanes whose budget somebody holds are left out, unless the
// claim is to wait.
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
	if err := c.lookForProjects(ctx, lanes); err != nil {
		return err
	}
	lock := `
SELECT ` + guard.BudgetColumns + `
FROM budget_policies b
WHERE ` + budgetsOfClaim + `
ORDER BY id
FOR NO KEY UPDATE`
	if !c.wait {
		lock += ` SKIP LOCKED`
	}
	found, err := pgtx.Collect(ctx, c, guard.ScanBudget, lock, pgtx.IDs(c.budgets.workspaces), pgtx.IDs(agents), pgtx.IDs(pgtx.Keys(c.budgets.looked)))
	if err != nil {
		return fmt.Errorf("lock budgets: %w", err)
	}
	var locked []xid.ID
	for _, b := range found {
		c.budgets.ledger.Budgets = append(c.budgets.ledger.Budgets, b.At(c.Now))
		locked = append(locked, xid.ID(b.ID))
	}
	if err := c.leaveOutHeld(ctx, lanes, agents, locked); err != nil {
		return err
	}
	c.budgets.projects = map[xid.ID]xid.ID{}
	c.budgets.ledger.Expected, err = guard.ExpectedCosts(ctx, c, agents)
	return err
}

const budgetsOfClaim = `workspace_id = ANY($1)
  AND (subject_kind = 'WORKSPACE'
    OR subject_kind = 'AGENT' AND subject_id = ANY($2)
    OR subject_kind = 'PROJECT' AND subject_id = ANY($3))`

// leaveOutHeld makes lanes busy whose budget could not be locked: an agent's own, or all of a workspace. A project whose
// budget could not be locked is as one that was not looked at: only lanes whose next run is of it are left out.
func (c *claimer) leaveOutHeld(ctx context.Context, lanes []lane, agents, locked []xid.ID) error {
	if c.wait {
		return nil
	}
	query := `
SELECT b.workspace_id, subject_kind, subject_id
FROM budget_policies b
WHERE ` + budgetsOfClaim + ` AND id <> ALL($4)`
	_, err := pgtx.Collect(ctx, c, func(rows *sql.Rows) (struct{}, error) {
		var workspaceID, subject xid.ID
		var kind domain.BudgetSubjectKind
		err := rows.Scan(&workspaceID, &kind, &subject)
		if kind == domain.BudgetSubjectKindProject {
			delete(c.budgets.looked, subject)
			return struct{}{}, err
		}
		for _, l := range lanes {
			if l.agentID == subject || kind == domain.BudgetSubjectKindWorkspace && l.workspaceID == workspaceID {
				c.busy[l.agentID] = true
			}
		}
		return struct{}{}, err
	}, query, pgtx.IDs(c.budgets.workspaces), pgtx.IDs(agents), pgtx.IDs(pgtx.Keys(c.budgets.looked)), pgtx.IDs(locked))
	return pgtx.Wrap("look for budgets that somebody holds", err)
}

// lookForProjects finds the projects of the lanes' oldest due runs, as far as the claim may come to them: only their
// budgets are locked, so that claims of other projects' runs do not wait for this one.
func (c *claimer) lookForProjects(ctx context.Context, lanes []lane) error {
	c.budgets.looked = map[xid.ID]bool{}
	var agents []xid.ID
	for _, l := range lanes {
		if slices.Contains(c.budgets.byProject, l.workspaceID) {
			agents = append(agents, l.agentID)
		}
	}
	if len(agents) == 0 {
		return nil
	}
	found, err := pgtx.Collect(ctx, c, pgtx.ScanOne[xid.ID], dueProjectsQuery, pgtx.IDs(agents), settlesPerPass+claimBatch)
	if err != nil {
		return fmt.Errorf("look for the projects of due runs: %w", err)
	}
	for _, id := range found {
		c.budgets.looked[id] = true
	}
	return nil
}

const dueProjectsQuery = `
SELECT DISTINCT t.project_id FROM unnest($1::text[]) AS a (id) CROSS JOIN LATERAL (
  SELECT task_id FROM runs WHERE agent_id = a.id AND ` + guard.Due + ` ORDER BY requested_at, id LIMIT $2) r
JOIN tasks t ON t.id = r.task_id WHERE t.project_id IS NOT NULL`

// readProjects reads the projects of the runs' tasks, where a project has a budget.
func (c *claimer) readProjects(ctx context.Context, runs ...runRow) error {
	var tasks []xid.ID
	for _, run := range runs {
		if _, known := c.budgets.projects[run.taskID]; run.taskID != "" && !known && slices.Contains(c.budgets.byProject, run.workspaceID) {
			tasks = append(tasks, run.taskID)
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	found, err := guard.ProjectsOf(ctx, c, tasks)
	maps.Copy(c.budgets.projects, found)
	return err
}

// unlocked says whether a run may be charged to a budget of a project that this claim has not locked.
func (b *budgets) unlocked(run runRow) bool {
	project := b.projects[run.taskID]
	return project != "" && !b.looked[project]
}

func (b *budgets) charge(run runRow) domain.BudgetCharge {
	return domain.BudgetCharge{WorkspaceID: string(run.workspaceID), AgentID: string(run.agentID), ProjectID: string(b.projects[run.taskID])}
}

// reserve writes the holds of claimed runs and what they reserve of each budget.
func (c *claimer) reserve(ctx context.Context, runs []runRow, numbers map[xid.ID]int) error {
	var policies, runIDs, workspaces []xid.ID
	var attempts []int64
	var amounts []string
	ledger := c.budgets.ledger.Clone()
	for _, run := range runs {
		for _, h := range ledger.Reserve(c.budgets.charge(run)) {
			policies, runIDs, workspaces = append(policies, xid.ID(h.BudgetID)), append(runIDs, run.id), append(workspaces, run.workspaceID)
			attempts, amounts = append(attempts, int64(numbers[run.id])), append(amounts, h.Amount.String())
		}
	}
	if len(policies) == 0 {
		return nil
	}
	const query = `
-- $1 ids of the holds, $2 workspaces, $3 budgets, $4 runs, $5 their attempts, $6 amounts, $7 now
WITH n AS (
  SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::numeric[])
    AS n (id, workspace_id, policy_id, run_id, attempt, amount)),
held AS (
  INSERT INTO budget_holds (id, workspace_id, policy_id, run_id, attempt, amount_usd, status, created_at)
  SELECT id, workspace_id, policy_id, run_id, attempt, amount, 'HELD', $7 FROM n)
UPDATE budget_policies b
SET reserved_usd = b.reserved_usd + s.amount
FROM (SELECT policy_id, sum(amount) AS amount FROM n GROUP BY policy_id) s
WHERE b.id = s.policy_id`
	_, err := pgtx.Exec(ctx, c, query, pgtx.IDs(newIDs("hld", len(policies))), pgtx.IDs(workspaces), pgtx.IDs(policies), pgtx.IDs(runIDs), pgtx.IntArray(attempts), pq.Array(amounts), c.Now)
	if err != nil {
		return fmt.Errorf("reserve of the budgets: %w", err)
	}
	c.budgets.ledger = ledger
	return nil
}

// admitBudget does what the budgets say about a run that no other guard refuses: false: it may be taken.
func (c *claimer) admitBudget(ctx context.Context, l *lane, run runRow) (refused bool, err error) {
	if err := c.readProjects(ctx, run); err != nil {
		return false, err
	}
	if c.budgets.unlocked(run) {
		return false, errProjectNew
	}
	switch answer := c.budgets.ledger.Admit(c.budgets.charge(run)); {
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
	next, problems := now.Pause(domain.AgentPauseReasonBudget, c.Now)
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
UPDATE runs
SET parked_reason = 'BUDGET_RESERVED', parked_until = $2, revision = revision + 1
WHERE id = $1 AND status = 'QUEUED'`
	if err := pgtx.ExecOne(ctx, c, park, run.id, c.Now.Add(domain.BudgetRetry)); err != nil {
		return fmt.Errorf("park run until the budget is free: %w", err)
	}
	if err := c.runEvent(ctx, run, domain.RunEventKindGuard, 0, map[string]any{"parked": domain.ParkedReasonBudgetReserved, "budget": b.ID}); err != nil {
		return err
	}
	return c.releaseScope(ctx, run.agentID, run.scope)
}
