package store

import (
	"context"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// SetTaskParticipants is the whole lists of a task's reviewers and approvers.
type SetTaskParticipants struct {
	WorkspaceID, TaskID  xid.ID
	Reviewers, Approvers []xid.ID
}

// SetTaskParticipants sets who reviews and who approves a task. Who joins a review, or a decision that is open, is woken;
// what waits for an agent that leaves ends at once. It returns the requests that were sent and those that were cancelled.
func (s *Store) SetTaskParticipants(ctx context.Context, in SetTaskParticipants) (sent, cancelled []xid.ID, err error) {
	problems := append(domain.CheckLinks("reviewerIds", texts(in.Reviewers)), domain.CheckLinks("approverIds", texts(in.Approvers))...)
	if err := domain.AsUserError(problems); err != nil {
		return nil, nil, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		sent, cancelled, err = t.setParticipants(ctx, in)
		return err
	})
	return sent, cancelled, wrap("set the task's participants", err)
}

func (t *tx) setParticipants(ctx context.Context, in SetTaskParticipants) (sent, cancelled []xid.ID, err error) {
	before, err := t.readTasks(ctx, in.TaskID)
	if err != nil {
		return nil, nil, err
	}
	if _, err := taskOf(before, in.WorkspaceID, in.TaskID); err != nil {
		return nil, nil, err
	}
	leaving := without(append(slices.Clone(before[in.TaskID].reviewers), before[in.TaskID].approvers...), append(texts(in.Reviewers), texts(in.Approvers)...))
	leaving = append(leaving, without(before[in.TaskID].reviewers, texts(in.Reviewers))...)
	leaving = append(leaving, without(before[in.TaskID].approvers, texts(in.Approvers))...)
	lanes, err := t.lockLanesIn(ctx, leaving)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := t.lockTasks(ctx, in.TaskID)
	if err != nil {
		return nil, nil, err
	}
	r, err := taskOf(tasks, in.WorkspaceID, in.TaskID)
	if err != nil {
		return nil, nil, err
	}
	if !slices.Equal(r.reviewers, before[r.id].reviewers) || !slices.Equal(r.approvers, before[r.id].approvers) {
		return nil, nil, errChanged
	}
	if err := t.readClock(ctx); err != nil {
		return nil, nil, err
	}
	if sent, err = t.writeParticipants(ctx, r, in); err != nil {
		return nil, nil, err
	}
	for _, l := range lanes {
		id := string(l.agentID)
		dropped, err := t.dropRequests(ctx, l, r.id, func(_ domain.WakeupSource, basis domain.WakeBasis, _ bool) domain.EndReason {
			return domain.BasisLost(domain.BasisFacts{TaskBound: true, Basis: basis, TaskState: r.state, Assigned: true,
				Reviews: slices.Contains(texts(in.Reviewers), id), Approves: slices.Contains(texts(in.Approvers), id)})
		})
		if err != nil {
			return nil, nil, err
		}
		cancelled = append(cancelled, dropped...)
	}
	return sent, cancelled, nil
}

// lockLanesIn locks the lanes of agents in the order of their ids.
func (t *tx) lockLanesIn(ctx context.Context, agents []string) ([]lane, error) {
	if len(agents) == 0 {
		return nil, nil
	}
	lanes, err := t.lockLanes(ctx, `SELECT `+laneColumns+` FROM agent_lanes WHERE agent_id = ANY($1) ORDER BY agent_id FOR NO KEY UPDATE`, textArray(agents))
	if err != nil {
		return nil, fmt.Errorf("lock lanes: %w", err)
	}
	return lanes, nil
}

// without is what of list is not in other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return slices.Contains(other, v) })
}

func (t *tx) writeParticipants(ctx context.Context, r *taskRow, in SetTaskParticipants) ([]xid.ID, error) {
	if err := t.checkAgents(ctx, in.WorkspaceID, "reviewerIds", in.Reviewers); err != nil {
		return nil, err
	}
	if err := t.checkAgents(ctx, in.WorkspaceID, "approverIds", in.Approvers); err != nil {
		return nil, err
	}
	for table, agents := range map[string][]xid.ID{"task_reviewers": in.Reviewers, "task_approvers": in.Approvers} {
		if _, err := exec(ctx, t, `DELETE FROM `+table+` WHERE task_id = $1 AND NOT agent_id = ANY($2)`, r.id, ids(agents)); err != nil {
			return nil, fmt.Errorf("remove participants: %w", err)
		}
		if _, err := exec(ctx, t, `INSERT INTO `+table+` (task_id, agent_id) SELECT $1, x FROM unnest($2::text[]) AS x ON CONFLICT DO NOTHING`, r.id, ids(agents)); err != nil {
			return nil, fmt.Errorf("insert participants: %w", err)
		}
	}
	now, err := t.readTasks(ctx, r.id)
	if err != nil {
		return nil, err
	}
	by, err := t.causeOf(ctx)
	if err != nil {
		return nil, err
	}
	c := change{before: *r, after: *now[r.id], cause: by, summary: "The task's reviewers and approvers were set.",
		data: map[string]any{"reviewers": in.Reviewers, "approvers": in.Approvers}}
	if slices.Equal(c.before.reviewers, c.after.reviewers) && slices.Equal(c.before.approvers, c.after.approvers) {
		return nil, nil
	}
	sent, err := t.apply(ctx, &c)
	if err != nil {
		return nil, err
	}
	asked, err := t.wakeNewApprovers(ctx, c)
	return append(sent, asked...), err
}

// wakeNewApprovers calls those who became approvers to the decisions that are open.
func (t *tx) wakeNewApprovers(ctx context.Context, c change) ([]xid.ID, error) {
	joined := without(c.after.approvers, c.before.approvers)
	if len(joined) == 0 {
		return nil, nil
	}
	open, err := collect(ctx, t, scanOne[xid.ID], `SELECT id FROM approvals WHERE task_id = $1 AND status = 'PENDING' ORDER BY id`, c.after.id)
	if err != nil {
		return nil, fmt.Errorf("read open approvals: %w", err)
	}
	var sent []xid.ID
	for _, id := range open {
		wakes := domain.ApproverWakes(c.after.facts(), string(id), "", joined)
		for i := range wakes { // who left and is back is called again
			wakes[i].Key = fmt.Sprintf("%s:%d", wakes[i].Key, c.after.generation)
		}
		requests, err := t.sendWakes(ctx, c.after, c.cause, wakes)
		if err != nil {
			return nil, err
		}
		sent = append(sent, requests...)
	}
	return sent, nil
}
