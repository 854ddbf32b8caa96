package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// ArchiveTask archives a task. What waits about it ends at once. The tasks that it blocks and its parent are treated as
// after a cancel, and open questions about its completion are withdrawn. A run that has started goes on. It returns the
// requests that were sent and those that were cancelled. Archiving twice changes nothing.
func (s *Tasks) ArchiveTask(ctx context.Context, workspaceID, taskID xid.ID) (sent, cancelled []xid.ID, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		sent, cancelled, err = t.archive(ctx, workspaceID, taskID)
		return err
	})
	return sent, cancelled, pgtx.Wrap("archive task", err)
}

func (t *tx) archive(ctx context.Context, workspaceID, taskID xid.ID) (sent, cancelled []xid.ID, err error) {
	if err := t.lockWaiting(ctx, taskID); err != nil {
		return nil, nil, err
	}
	tasks, err := t.lockEnding(ctx, []xid.ID{taskID})
	if err != nil {
		return nil, nil, err
	}
	r := tasks[taskID]
	if r == nil || r.workspaceID != workspaceID {
		return nil, nil, domain.RefuseField([]string{"taskId"}, domain.UserErrorCodeNotFound, "there is no task %s in this workspace", taskID)
	}
	if r.archived {
		return nil, nil, nil
	}
	if err := t.ReadClock(ctx); err != nil {
		return nil, nil, err
	}
	if sent, err = t.writeArchived(ctx, tasks, r); err != nil {
		return nil, nil, err
	}
	cancelled, err = t.endWaiting(ctx)
	return sent, cancelled, err
}

func (t *tx) writeArchived(ctx context.Context, tasks map[xid.ID]*taskRow, r *taskRow) ([]xid.ID, error) {
	by, err := t.causeOf(ctx)
	if err != nil {
		return nil, err
	}
	if pending, err := t.pendingCompletion(ctx, r); err != nil {
		return nil, err
	} else if pending != nil {
		if err := t.writeDecision(ctx, *pending, domain.ApprovalStatusRejected, "The task was archived.", by); err != nil {
			return nil, err
		}
	}
	c := change{before: *r, after: *r, cause: by, summary: "The task was archived.", data: map[string]any{"archived": true}}
	c.after.archived = true
	if _, err := t.apply(ctx, &c); err != nil {
		return nil, err
	}
	return t.followEnd(ctx, &c, tasks)
}
