package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/lib/pq"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// charge is what one ended attempt cost, and whom.
type charge struct {
	runID            xid.ID
	agentID, project xid.ID
	cost             domain.Money
}

// chargeBudgets gives the holds of ended attempts back and charges the budgets with what the attempts really cost (SPEC
// S6.5). It comes last in a transaction: budgets are locked after the workspaces' lanes, here as in the claim.
func (t *tx) chargeBudgets(ctx context.Context, runs []runRow) error {
	if len(runs) == 0 {
		return nil
	}
	runIDs, attempts := make([]xid.ID, len(runs)), make([]int64, len(runs))
	workspaces, byID := map[xid.ID]bool{}, map[xid.ID]runRow{}
	for i, run := range runs {
		runIDs[i], attempts[i] = run.id, int64(run.attempt)
		workspaces[run.workspaceID], byID[run.id] = true, run
	}
	charges, err := t.readCharges(ctx, runIDs, attempts)
	if err != nil {
		return err
	}
	changed, err := t.lockCharged(ctx, pgtx.Keys(workspaces), runIDs, attempts, charges)
	if err != nil || len(changed) == 0 {
		return err
	}
	if err := t.settleHolds(ctx, runIDs, attempts, changed); err != nil {
		return err
	}
	cause := alertCause{agentID: runs[0].agentID, causationID: runs[0].causationID, hops: domain.NextHops(runs[0].hops)}
	for _, b := range changed {
		b.Budget = b.At(t.Now)
		for _, x := range charges {
			run := byID[x.runID]
			if b.PeriodStart.After(t.Now) || !b.ChargedWith(run.workspaceID, x.agentID, x.project) { // counted in the period before
				continue
			}
			b.Spent = min(b.Spent+x.cost, domain.MaxMoney)
			if x.cost > 0 {
				cause = alertCause{agentID: run.agentID, causationID: run.causationID, hops: domain.NextHops(run.hops)}
			}
		}
	}
	return t.writeBudgets(ctx, changed, cause)
}

func (t *tx) readCharges(ctx context.Context, runIDs []xid.ID, attempts []int64) ([]charge, error) {
	const query = `
SELECT e.run_id, e.agent_id, e.project_id, greatest(e.cost_usd, 0)::text
FROM unnest($1::text[], $2::bigint[]) AS n (run_id, attempt)
JOIN cost_entries e ON e.run_id = n.run_id AND e.attempt = n.attempt`
	charges, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (x charge, err error) {
		var cost string
		if err := rows.Scan(&x.runID, &x.agentID, &x.project, &cost); err != nil {
			return x, err
		}
		x.cost, err = domain.ParseMoney(cost)
		return x, err
	}, query, pgtx.IDs(runIDs), pgtx.IntArray(attempts))
	if err != nil {
		return nil, fmt.Errorf("read what the attempts cost: %w", err)
	}
	return charges, nil
}

// lockCharged locks the budgets that hold something for the attempts or are charged with their cost.
func (t *tx) lockCharged(ctx context.Context, workspaces, runIDs []xid.ID, attempts []int64, charges []charge) ([]*guard.Budget, error) {
	var agents, projects []xid.ID
	for _, x := range charges {
		agents = append(agents, x.agentID)
		if x.project != "" {
			projects = append(projects, x.project)
		}
	}
	const query = `
-- $1 workspaces, $2 agents that were charged, $3 projects that were charged, $4 runs that let go of holds, $5
-- their attempts
SELECT ` + guard.BudgetColumns + ` FROM budget_policies b WHERE b.workspace_id = ANY($1) AND (
  cardinality($2::text[]) > 0 AND (b.subject_kind = 'WORKSPACE' OR b.subject_id = ANY($2) OR b.subject_id = ANY($3))
  OR b.id IN (SELECT h.policy_id FROM unnest($4::text[], $5::bigint[]) AS n (run_id, attempt)
              JOIN budget_holds h ON h.run_id = n.run_id AND h.attempt = n.attempt AND h.status = 'HELD'))
ORDER BY b.id -- as all who lock several budgets do
FOR NO KEY UPDATE OF b`
	found, err := pgtx.Collect(ctx, t, guard.ScanBudget, query, pgtx.IDs(workspaces), pgtx.IDs(agents), pgtx.IDs(projects), pgtx.IDs(runIDs), pgtx.IntArray(attempts))
	if err != nil {
		return nil, fmt.Errorf("lock budgets: %w", err)
	}
	list := make([]*guard.Budget, len(found))
	for i := range found {
		list[i] = &found[i]
	}
	return list, nil
}

// settleHolds ends the attempts' holds, SETTLED where a cost took their place and else VOID, and takes them off the
// budgets.
func (t *tx) settleHolds(ctx context.Context, runIDs []xid.ID, attempts []int64, changed []*guard.Budget) error {
	const query = `
UPDATE budget_holds h
SET status = CASE
  WHEN EXISTS (
    SELECT 1
    FROM cost_entries e
    WHERE e.run_id = h.run_id AND e.attempt = h.attempt) THEN '` + string(domain.BudgetHoldStatusSettled) + `'
  ELSE '` + string(domain.BudgetHoldStatusVoid) + `' END
FROM unnest($1::text[], $2::bigint[]) AS n (run_id, attempt)
WHERE h.run_id = n.run_id AND h.attempt = n.attempt AND h.status = 'HELD'
RETURNING h.policy_id, h.amount_usd::text`
	freed := map[string]domain.Money{}
	_, err := pgtx.Collect(ctx, t, func(rows *sql.Rows) (struct{}, error) {
		var policy, text string
		if err := rows.Scan(&policy, &text); err != nil {
			return struct{}{}, err
		}
		amount, err := domain.ParseMoney(text)
		freed[policy] += amount
		return struct{}{}, err
	}, query, pgtx.IDs(runIDs), pgtx.IntArray(attempts))
	if err != nil {
		return fmt.Errorf("settle holds: %w", err)
	}
	for _, b := range changed {
		b.Reserved = max(b.Reserved-freed[b.ID], 0)
	}
	return nil
}

// alertCause is what made budgets cross thresholds. agentID "" means no agent in particular.
type alertCause struct {
	agentID, causationID xid.ID
	hops                 int
}

// writeBudgets stores changed budgets, which are locked, and makes the alerts of the thresholds that they crossed.
func (t *tx) writeBudgets(ctx context.Context, changed []*guard.Budget, cause alertCause) error {
	policies := make([]string, len(changed))
	starts := make([]time.Time, len(changed))
	spent, reserved := make([]string, len(changed)), make([]string, len(changed))
	told := make([]string, len(changed))
	for i, b := range changed {
		for _, percent := range b.Crossed() {
			if err := t.alert(ctx, *b, percent, cause); err != nil {
				return err
			}
			b.Told = append(slices.Clone(b.Told), percent)
		}
		list, err := json.Marshal(append([]int{}, b.Told...))
		if err != nil {
			return fmt.Errorf("encode thresholds: %w", err)
		}
		policies[i], starts[i], spent[i], reserved[i], told[i] = b.ID, b.PeriodStart, b.Spent.String(), b.Reserved.String(), string(list)
	}
	const query = `
-- $1 budgets, $2 begins of their periods, $3 spent, $4 reserved, $5 thresholds that people were told of
UPDATE budget_policies b
SET period_start = n.period_start, spent_usd = n.spent, reserved_usd = n.reserved, told_thresholds = n.told,
  alerted_percent = coalesce((SELECT max(p::int) FROM jsonb_array_elements_text(n.told) p), 0)
FROM unnest($1::text[], $2::timestamptz[], $3::numeric[], $4::numeric[], $5::jsonb[])
  AS n (id, period_start, spent, reserved, told)
WHERE b.id = n.id`
	if _, err := pgtx.Exec(ctx, t, query, pq.Array(policies), pq.Array(starts), pq.Array(spent), pq.Array(reserved), pq.Array(told)); err != nil {
		return fmt.Errorf("write budgets: %w", err)
	}
	var freed []guard.Budget
	for _, b := range changed {
		if b.Frees(b.Stored) {
			freed = append(freed, *b)
		}
	}
	return t.wakeReserved(ctx, freed)
}

// wokenRuns bounds the runs that look again at once when a budget has room; the others do at the end of their parking.
const wokenRuns = 64

// wakeReserved ends the parking of the oldest runs that wait for what live runs hold of budgets which have room now, or
// are gone, and notes them in t.due. It is as if their half minute had passed, so that their lanes need not be held; and it waits for nobody,
// so that it may come last, after the budgets: a row that somebody is changing at this moment keeps its half minute.
func (t *tx) wakeReserved(ctx context.Context, freed []guard.Budget) error {
	if len(freed) == 0 {
		return nil
	}
	const query = `
UPDATE runs SET parked_until = $2, revision = revision + 1 WHERE id IN (
  SELECT r.id FROM runs r LEFT JOIN tasks t ON t.id = r.task_id
  WHERE r.workspace_id = $1
    AND r.status = 'QUEUED'
    AND r.parked_reason = 'BUDGET_RESERVED'
    AND r.parked_until > $2
    AND ($1 = ANY($3::text[]) OR r.agent_id = ANY($3) OR t.project_id = ANY($3))
  ORDER BY r.requested_at, r.id LIMIT $4 FOR NO KEY UPDATE OF r SKIP LOCKED) RETURNING id`
	subjects := map[xid.ID][]string{}
	for _, b := range freed {
		subjects[b.WorkspaceID] = append(subjects[b.WorkspaceID], b.SubjectID)
	}
	for workspaceID, list := range subjects {
		woken, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, string(workspaceID), t.Now, pgtx.TextArray(list), wokenRuns)
		if err != nil {
			return fmt.Errorf("wake runs that waited for a budget: %w", err)
		}
		if len(woken) > 0 {
			slices.Sort(woken)
			t.due = append(t.due, woken...)
			t.Publish(event.Event{Kind: event.Queue, WorkspaceID: workspaceID})
		}
	}
	return nil
}

// alert tells people, and the coordinator of the agent that crossed it, of one threshold, once per period.
func (t *tx) alert(ctx context.Context, b guard.Budget, percent int, cause alertCause) error {
	key := fmt.Sprintf("budget:%s:%s:%d", b.ID, b.PeriodStart.Format(time.DateOnly), percent)
	title := fmt.Sprintf("The budget of %s %s is %d percent spent", kindWord[b.SubjectKind], b.SubjectID, percent)
	body := fmt.Sprintf("The budget %s of %s %s has spent %s of %s US dollars in its period (%s).", b.ID, kindWord[b.SubjectKind], b.SubjectID, b.Spent, b.Limit, b.Period)
	if b.Exceeded() && b.OnExceed == domain.BudgetActionPauseAgent {
		body += " Agents are paused when a run of theirs comes up. Raise the limit with upsertBudget, or wait for the next period."
	}
	if err := t.inbox(ctx, item{workspaceID: b.WorkspaceID, kind: domain.InboxKindBudgetAlert, dedupe: key, title: title, body: body, subject: xid.ID(b.ID),
		causationID: cause.causationID, about: cause.agentID}); err != nil {
		return err
	}
	err := t.note(ctx, entry{workspaceID: b.WorkspaceID, code: domain.ActivityCodeBudgetThreshold, by: system("budget"), summary: title + ".",
		subjectID: xid.ID(b.ID), agentID: cause.agentID, causationID: cause.causationID,
		data: map[string]any{"budgetId": b.ID, "subjectKind": b.SubjectKind, "subjectId": b.SubjectID, "threshold": percent, "spentUsd": b.Spent.String(), "limitUsd": b.Limit.String()}})
	if err != nil {
		return err
	}
	coordinator, err := t.coordinatorOf(ctx, b.WorkspaceID, cause.agentID)
	if err != nil || coordinator == "" {
		return err
	}
	_, _, err = t.insertRequest(ctx, newRequest{
		workspaceID: b.WorkspaceID, agentID: coordinator, causationID: cause.causationID, scope: domain.ScopeTaskless,
		source: domain.WakeupSourceBudgetAlert, class: domain.WakeClassEvent, reason: fmt.Sprintf("a budget is %d percent spent", percent),
		payload: &domain.BudgetPayload{AgentID: string(cause.agentID), BudgetPct: b.Spent.Percent(b.Limit)}, key: key, hops: cause.hops,
	})
	return err
}

var kindWord = map[domain.BudgetSubjectKind]string{
	domain.BudgetSubjectKindWorkspace: "workspace", domain.BudgetSubjectKindProject: "project", domain.BudgetSubjectKindAgent: "agent",
}
