package store

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// HoldWorkspace stops all of a workspace. Note is a person's remark, at most 1000 characters. CancelLive asks its live runs to end, too.
type HoldWorkspace struct {
	WorkspaceID xid.ID
	Note        string
	Fires       domain.HoldFires
	CancelLive  bool
}

// WorkspaceHeld is what a hold asked to end: the first of the live runs, oldest first, and how many there were; and the requests of
// others that are sent again, since runs that waited for a worker let go of their tasks.
type WorkspaceHeld struct {
	AskedToEnd []xid.ID
	Count      int
	Resent     []xid.ID
}

// HoldWorkspace lets nothing of a workspace be claimed, by any process, from the next transaction on. Causes are taken, and their
// runs wait. A hold of what is held changes the note and what becomes of fires, and no more. Live runs are asked to end after that, in
// bounded transactions: a call that is made again goes on with those that were not.
func (s *Records) HoldWorkspace(ctx context.Context, in HoldWorkspace) (held WorkspaceHeld, err error) {
	if err := checkNote(in.Note); err != nil {
		return held, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		row, err := t.lockWorkspace(ctx, in.WorkspaceID)
		if err != nil {
			return err
		}
		by := callerOr(ctx, "workspaces")
		next, changed := row.Hold.Again(domain.WorkspaceHold{Since: t.Now, ByKind: by.kind, By: by.name, Note: in.Note, Fires: in.Fires})
		if !changed {
			return nil
		}
		return t.writeWorkspaceHold(ctx, row, &next)
	})
	if err == nil && in.CancelLive {
		held, err = s.cancelLiveOf(ctx, in.WorkspaceID, in.Note)
	}
	return held, pgtx.Wrap("hold workspace", err)
}

// ReleaseWorkspace lets a held workspace go on: what waits is due in its order, and slots that waited are caught up by each routine's
// policy. Of what nobody holds nothing is changed.
func (s *Records) ReleaseWorkspace(ctx context.Context, workspaceID xid.ID, note string) error {
	if err := checkNote(note); err != nil {
		return err
	}
	err := s.inTx(ctx, func(t *tx) error {
		row, err := t.lockWorkspace(ctx, workspaceID)
		if err != nil || row.Hold == nil {
			return err
		}
		if err := t.writeWorkspaceHold(ctx, row, nil); err != nil {
			return err
		}
		t.Publish(event.Event{Kind: event.Queue, WorkspaceID: workspaceID}, event.Event{Kind: event.Offer, WorkspaceID: workspaceID, ID: workspaceID})
		return t.note(ctx, entry{workspaceID: workspaceID, code: domain.ActivityCodeWorkspaceReleased, by: callerOr(ctx, "workspaces"),
			summary: "The workspace was released.", subjectID: workspaceID, data: withNote(map[string]any{"since": row.Hold.Since, "fires": row.Hold.Fires}, note)})
	})
	return pgtx.Wrap("release workspace", err)
}

// writeWorkspaceHold writes who holds a workspace, whose row is locked; nil: nobody does any more. Claims, which hold the lane's lock
// until they have committed, find it there. The lock keeps out offers that are being given to workers as well.
func (t *tx) writeWorkspaceHold(ctx context.Context, row *ent.Workspace, hold *domain.WorkspaceHold) error {
	if _, err := pgtx.QueryOne[bool](ctx, t, `SELECT true FROM workspace_lanes WHERE workspace_id = $1 FOR UPDATE`, row.ID); err != nil {
		return fmt.Errorf("lock the workspace's lane: %w", err)
	}
	u := t.Workspace.UpdateOneID(row.ID).AddRevision(1).SetUpdatedAt(t.Now)
	lane := `UPDATE workspace_lanes SET held_at = coalesce(held_at, $2) WHERE workspace_id = $1`
	if hold == nil {
		lane = `UPDATE workspace_lanes SET held_at = NULL, released_at = $2 WHERE workspace_id = $1`
		u.ClearHold().SetHoldEndedAt(t.Now)
	} else {
		u.SetHold(hold)
	}
	if err := u.Exec(ctx); err != nil {
		return fmt.Errorf("write who holds the workspace: %w", err)
	}
	if err := pgtx.ExecOne(ctx, t, lane, row.ID, t.Now); err != nil {
		return fmt.Errorf("write that the workspace is held: %w", err)
	}
	if hold == nil {
		return nil
	}
	t.Publish(event.Event{Kind: event.Queue, WorkspaceID: row.ID})
	return t.note(ctx, entry{workspaceID: row.ID, code: domain.ActivityCodeWorkspaceHeld, by: callerOr(ctx, "workspaces"), summary: "The workspace was held.",
		subjectID: row.ID, data: withNote(map[string]any{"since": hold.Since, "fires": hold.Fires}, hold.Note)})
}

// cancelLiveOf asks all live runs of a workspace to end, a bounded part in each transaction, and says which these were.
func (s *Records) cancelLiveOf(ctx context.Context, workspaceID xid.ID, note string) (held WorkspaceHeld, err error) {
	const query = `
SELECT id, agent_id
FROM runs
WHERE workspace_id = $1 AND status = 'CLAIMED' AND cancel_requested_at IS NULL AND id > $2
ORDER BY id
LIMIT $3`
	for after := xid.ID(""); ; {
		runs, err := pgtx.Collect(ctx, s.db, func(rows *sql.Rows) (r RunOfAgent, err error) { return r, rows.Scan(&r.RunID, &r.AgentID) },
			query, workspaceID, string(after), cancelBatch)
		if err != nil {
			return held, fmt.Errorf("list the live runs: %w", err)
		}
		done, err := s.cancelSome(ctx, runs, note)
		if err != nil {
			return held, err
		}
		for _, x := range done.ended {
			if x.Became == domain.CancelAsked || x.Became == domain.CancelEnded {
				held.AskedToEnd, held.Count = firstListed(append(held.AskedToEnd, x.RunID)), held.Count+1
			}
		}
		held.Resent = append(held.Resent, done.resent...)
		if len(runs) < cancelBatch {
			return held, nil
		}
		after = runs[len(runs)-1].RunID
	}
}
