package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/guard"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// SweepBudgets begins new periods, counts again what a budget that was just set may have missed, and resumes agents
// that no budget holds any more (SPEC S6.3). It takes one statement when there are no budgets. It returns how many
// agents it resumed. A budget or an agent that fails does not stop the others. The error joins all that failed.
func (s *Queue) SweepBudgets(ctx context.Context) (resumed int, err error) {
	const used = `
SELECT EXISTS (SELECT 1 FROM budget_policies)
  OR EXISTS (SELECT 1 FROM agent_lanes WHERE pause_reason = 'BUDGET')`
	any, err := pgtx.QueryOne[bool](ctx, s.db, used)
	if err != nil || !any {
		return 0, pgtx.Wrap("look for budgets", err)
	}
	renewing := s.renewBudgets(ctx)
	if pgtx.EndsAll(ctx, renewing) {
		return 0, renewing
	}
	var done Released
	err = s.releaseHeld(ctx, "", &done)
	return done.Count, errors.Join(renewing, err)
}

// settling is how long after a change a budget is counted again, because an end that began before the change may not
// have seen the budget and not have charged it.
const settling = 5 * time.Minute

// periodStartAt is domain.BudgetPeriod.Start in SQL, of a period at an instant; NULL for one that never ends.
const periodStartAt = `CASE WHEN period = 'TOTAL' THEN NULL ELSE date_trunc(lower(period), at, 'UTC') END`

// renewBudgets writes the period that is running now into budgets whose own is over, and counts young ones again.
func (s *Queue) renewBudgets(ctx context.Context) error {
	const stale = `
SELECT id FROM (SELECT id, updated_at, period, period_start, clock_timestamp() AS at FROM budget_policies) b
WHERE updated_at > at - make_interval(secs => $1) OR period_start <> ` + periodStartAt + `
ORDER BY id
LIMIT 1000`
	policies, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], stale, settling.Seconds())
	if err != nil {
		return fmt.Errorf("list budgets to renew: %w", err)
	}
	_, err = pgtx.Each(ctx, policies, func(id xid.ID) error {
		return s.inTx(ctx, func(t *tx) error { return t.renewBudget(ctx, id) })
	}, pgtx.Blaming("renew budget"))
	return err
}

func (t *tx) renewBudget(ctx context.Context, id xid.ID) error {
	found, err := pgtx.Collect(ctx, t, guard.ScanBudget, `SELECT `+guard.BudgetColumns+` FROM budget_policies b WHERE id = $1 FOR NO KEY UPDATE`, id)
	if err != nil || len(found) == 0 {
		return err
	}
	if err := t.ReadClock(ctx); err != nil {
		return err
	}
	b := found[0]
	b.Budget = b.At(t.Now)
	if b.Spent, err = t.spentOf(ctx, b); err != nil {
		return err
	}
	if err := t.writeBudgets(ctx, []*guard.Budget{&b}, alertCause{causationID: xid.New("cau"), hops: domain.NextHops(-1)}); err != nil || len(t.due) == 0 {
		return err
	}
	return t.noteBudget(ctx, b, "The budget was counted anew, and runs that waited for room in it look again.", withDue(map[string]any{"renewed": true}, t.due))
}

// Released is what a change of a budget causes: the agents that it resumes and the requests that it sends, or sends again,
// the first of both, and how many there are of each; and the runs that look again at once, since there is room for them.
type Released struct {
	Agents       []xid.ID
	Requests     []xid.ID
	Due          []xid.ID
	Count        int // of agents
	RequestCount int // those that a resume sends step by step included
}

// releasedShown bounds the lists of Released.
const releasedShown = 100

// add notes requests.
func (r *Released) add(sent Resumed) {
	r.RequestCount += sent.Count
	r.Requests = append(r.Requests, sent.Requests[:min(len(sent.Requests), releasedShown-len(r.Requests))]...)
}

// resumed notes an agent that was resumed, with what it is sent again.
func (r *Released) resumed(agentID xid.ID, sent Resumed) {
	if r.Count++; len(r.Agents) < releasedShown {
		r.Agents = append(r.Agents, agentID)
	}
	r.add(sent)
}

// releaseLimit is how long a change of a budget resumes agents before it answers; the sweep goes on with the others.
const releaseLimit = 5 * time.Second

// releaseBudgets resumes the agents of a workspace that no budget holds any more, after a change of a budget. The change
// stands whatever comes of it: what is missed, the sweep finds.
func (s *Queue) releaseBudgets(ctx context.Context, workspaceID xid.ID, done *Released) {
	ctx, cancel := context.WithTimeout(ctx, releaseLimit)
	defer cancel()
	if err := s.releaseHeld(ctx, workspaceID, done); err != nil {
		s.log.Warn("agents that a changed budget had held could not be resumed; the next sweep does it", "workspace_id", workspaceID, "error", err)
	}
}

// releaseHeld goes through the agents that a budget holds, of one workspace or of all, one transaction for each, and adds
// those that it resumes.
func (s *Queue) releaseHeld(ctx context.Context, workspaceID xid.ID, done *Released) error {
	const held = `
SELECT agent_id
FROM agent_lanes
WHERE pause_reason = 'BUDGET' AND ($1 = '' OR workspace_id = $1)
ORDER BY workspace_id, agent_id
LIMIT 10000`
	agents, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], held, string(workspaceID))
	if err != nil {
		return fmt.Errorf("list agents that a budget holds: %w", err)
	}
	_, err = pgtx.Each(ctx, agents, func(agentID xid.ID) error {
		var resumed *Resumed
		err := s.inTx(ctx, func(t *tx) (err error) { resumed, err = t.releaseAgent(ctx, agentID); return err })
		if err == nil && resumed != nil {
			done.resumed(agentID, *resumed)
		}
		return err
	}, pgtx.Blaming("resume an agent that a budget held: agent"))
	return err
}

// releaseAgent resumes an agent that a budget holds, unless a budget that applies to it is exceeded. Those are its
// workspace's, its own, and that of each project whose runs were blocked since the hold began. nil: it was not resumed.
func (t *tx) releaseAgent(ctx context.Context, agentID xid.ID) (*Resumed, error) {
	l, err := t.lockLane(ctx, agentID)
	if err != nil {
		return nil, err
	}
	now, err := t.readHold(ctx, agentID)
	if err != nil || now.PauseReason == nil || *now.PauseReason != domain.AgentPauseReasonBudget {
		return nil, err
	}
	projects, err := t.blockedProjects(ctx, agentID, now)
	if err != nil {
		return nil, err
	}
	list, err := pgtx.Collect(ctx, t, guard.ScanBudget, `SELECT `+guard.BudgetColumns+` FROM budget_policies b WHERE workspace_id = $1`, l.workspaceID)
	if err != nil {
		return nil, fmt.Errorf("read budgets: %w", err)
	}
	holds := func(b guard.Budget) bool {
		applies := b.ChargedWith(l.workspaceID, agentID, "") || b.SubjectKind == domain.BudgetSubjectKindProject && slices.Contains(projects, b.SubjectID)
		return applies && b.OnExceed == domain.BudgetActionPauseAgent && b.At(t.Now).Exceeded()
	}
	if slices.ContainsFunc(list, holds) {
		return nil, nil
	}
	resumed, err := t.resume(ctx, l, now)
	if err != nil {
		return nil, err
	}
	return &resumed, t.note(ctx, entry{workspaceID: l.workspaceID, code: domain.ActivityCodeAgentResumed, by: callerOr(ctx, "budget"),
		summary: "The agent was resumed: no budget of it is exceeded any more.", subjectID: agentID, agentID: agentID, data: withWas(resumed.details(), now)})
}

// blockedProjects is the projects of the tasks whose wakes a budget blocked since the agent is held.
func (t *tx) blockedProjects(ctx context.Context, agentID xid.ID, h domain.AgentHold) ([]string, error) {
	if h.Since == nil {
		return nil, nil
	}
	const query = `
SELECT DISTINCT p.project_id FROM wakeup_requests q JOIN tasks p ON p.id = q.task_id
WHERE q.agent_id = $1 AND q.put_by_at >= $2 AND q.end_reason = 'BUDGET_BLOCKED' AND p.project_id IS NOT NULL`
	projects, err := pgtx.Collect(ctx, t, pgtx.ScanOne[string], query, agentID, *h.Since)
	return projects, pgtx.Wrap("read the projects of blocked wakes", err)
}
