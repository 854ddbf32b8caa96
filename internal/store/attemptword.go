package store

import (
	"context"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// completeByDefault completes the run's task where its step does so, unless the rule leaves it open; the outcome then says
// why.
func (t *tx) completeByDefault(ctx context.Context, f *followUp, outcomes []outcome) ([]outcome, error) {
	r := f.tasks[f.run.taskID]
	if r == nil || !slices.Contains(r.stepActions, domain.StepActionAutoComplete) {
		return outcomes, nil
	}
	facts, err := t.wordFacts(ctx, f, r)
	if err != nil {
		return nil, err
	}
	switch left := domain.DefaultCompletion(facts); {
	case left == "":
		o, err := t.carryOutOne(ctx, f, domain.ActionCompleteTask, "", func() (xid.ID, error) {
			_, err := t.move(ctx, f.tasks, r, move{to: domain.TaskStateDone, cause: f.cause})
			return r.id, err
		})
		return append(outcomes, o), err
	case left.Explicit():
		f.leftOpen = left
	}
	return outcomes, nil
}

// wordFacts reads what a default completion depends on. The task is locked, and so is the lane of the run's agent, so
// that no request of that agent about the task is routed or ended at the same time.
func (t *tx) wordFacts(ctx context.Context, f *followUp, r *taskRow) (domain.WordFacts, error) {
	facts := domain.WordFacts{StepCompletes: true, State: r.state, Archived: r.archived, Assigned: r.assigneeID == f.run.agentID,
		Asked: domain.AsksAboutTask(f.actions), OpenBlocker: len(r.openBlockers) > 0}
	const query = `
SELECT coalesce(k.word_run_id = $2, false),
  EXISTS (SELECT 1 FROM approvals a WHERE a.task_id = k.id AND a.status = 'PENDING'),
  EXISTS (
  SELECT 1
  FROM wakeup_requests q
  WHERE q.task_id = k.id AND q.agent_id = $3 AND q.wake_class = 'EVENT' AND q.finished_at IS NULL
    AND (q.run_id IS NULL OR q.run_id <> $2 OR q.delivered_at IS NULL))
FROM tasks k WHERE k.id = $1`
	if err := pgtx.QueryRow(ctx, t, []any{&facts.Said, &facts.OpenApproval, &facts.MoreToCome}, query, r.id, f.run.id, f.run.agentID); err != nil {
		return facts, fmt.Errorf("read who spoke of the task: %w", err)
	}
	return facts, nil
}
