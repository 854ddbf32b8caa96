package store

import (
	"context"
	"fmt"
	"slices"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// SetTaskParticipants is the whole lists of a task's reviewers and approvers; one that is not set stays as it is.
type SetTaskParticipants struct {
	WorkspaceID, TaskID  xid.ID
	Reviewers, Approvers domain.Change[[]xid.ID]
	ExpectedRevision     *int
}

// participants are whole lists.
type participants struct{ reviewers, approvers []xid.ID }

// of is the participants of a task after the change.
func (in SetTaskParticipants) of(r *taskRow) participants {
	return participants{in.Reviewers.Or(xids(r.reviewers), nil), in.Approvers.Or(xids(r.approvers), nil)}
}

// xids are ids from plain text.
func xids(list []string) []xid.ID {
	out := make([]xid.ID, len(list))
	for i, id := range list {
		out[i] = xid.ID(id)
	}
	return out
}

// SetTaskParticipants sets who reviews and who approves a task. Who joins a review, or a decision that is open, is woken;
// what waits for an agent that leaves ends at once. It returns the requests that were sent and those that were cancelled.
func (s *Tasks) SetTaskParticipants(ctx context.Context, in SetTaskParticipants) (sent, cancelled []xid.ID, err error) {
	problems := append(domain.CheckLinks("reviewerIds", texts(in.Reviewers.Or(nil, nil))), domain.CheckLinks("approverIds", texts(in.Approvers.Or(nil, nil)))...)
	if err := domain.AsUserError(problems); err != nil {
		return nil, nil, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		sent, cancelled, err = t.setParticipants(ctx, in)
		return err
	})
	return sent, cancelled, pgtx.Wrap("set the task's participants", err)
}

func (t *tx) setParticipants(ctx context.Context, in SetTaskParticipants) (sent, cancelled []xid.ID, err error) {
	before, err := t.readTasks(ctx, in.TaskID)
	if err != nil {
		return nil, nil, err
	}
	if _, err := taskOf(before, in.WorkspaceID, in.TaskID); err != nil {
		return nil, nil, err
	}
	become := in.of(before[in.TaskID])
	leaving := without(before[in.TaskID].reviewers, texts(become.reviewers))
	leaving = append(leaving, without(before[in.TaskID].approvers, texts(become.approvers))...)
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
		return nil, nil, pgtx.ErrChanged
	}
	if err := checkRevision(in.ExpectedRevision, r.revision, "task"); err != nil {
		return nil, nil, err
	}
	if err := t.ReadClock(ctx); err != nil {
		return nil, nil, err
	}
	if sent, err = t.writeParticipants(ctx, r, become); err != nil {
		return nil, nil, err
	}
	for _, l := range lanes {
		id := string(l.agentID)
		// Who is assigned does not change here: an assignee's requests keep what they stand on.
		dropped, err := t.dropRequests(ctx, l, r.id, nil, func(_ domain.WakeupSource, basis domain.WakeBasis, _ bool) domain.EndReason {
			return domain.BasisLost(domain.BasisFacts{TaskBound: true, Basis: basis, TaskState: r.state, Assigned: true,
				Reviews: slices.Contains(texts(become.reviewers), id), Approves: slices.Contains(texts(become.approvers), id)})
		})
		if err != nil {
			return nil, nil, err
		}
		cancelled = append(cancelled, dropped...)
	}
	return sent, cancelled, nil
}

// without is what of list is not in other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return slices.Contains(other, v) })
}

func (t *tx) writeParticipants(ctx context.Context, r *taskRow, become participants) ([]xid.ID, error) {
	if err := t.checkAgents(ctx, r.workspaceID, "reviewerIds", become.reviewers); err != nil {
		return nil, err
	}
	if err := t.checkAgents(ctx, r.workspaceID, "approverIds", become.approvers); err != nil {
		return nil, err
	}
	for table, agents := range map[string][]xid.ID{"task_reviewers": become.reviewers, "task_approvers": become.approvers} {
		if _, err := pgtx.Exec(ctx, t, `DELETE FROM `+table+` WHERE task_id = $1 AND NOT agent_id = ANY($2)`, r.id, pgtx.IDs(agents)); err != nil {
			return nil, fmt.Errorf("remove participants: %w", err)
		}
		if _, err := pgtx.Exec(ctx, t, `INSERT INTO `+table+` (task_id, agent_id) SELECT $1, x FROM unnest($2::text[]) AS x ON CONFLICT DO NOTHING`, r.id, pgtx.IDs(agents)); err != nil {
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
		data: map[string]any{"reviewers": become.reviewers, "approvers": become.approvers}}
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
	open, err := pgtx.Collect(ctx, t, scanApproval, `SELECT `+approvalColumns+` FROM approvals WHERE task_id = $1 AND status = 'PENDING' ORDER BY id`, c.after.id)
	if err != nil {
		return nil, fmt.Errorf("read open approvals: %w", err)
	}
	var sent []xid.ID
	for _, a := range open {
		facts := a.facts(&c.after)
		facts.Approvers = joined
		wakes := domain.ApproverWakes(c.after.facts(), facts, "")
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
