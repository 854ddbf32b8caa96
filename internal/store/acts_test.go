package store

import (
	"context"

	"rouse.dev/rouse/internal/xid"
)

// What an act sends again is of interest to the tests of just that.

func (w *world) CancelRun(ctx context.Context, workspaceID, runID xid.ID, note string) error {
	_, err := w.Store.CancelRun(ctx, workspaceID, runID, note)
	return err
}

func (w *world) DeleteAgent(ctx context.Context, workspaceID, agentID xid.ID) error {
	_, err := w.Store.DeleteAgent(ctx, workspaceID, agentID)
	return err
}

func (w *world) DeleteBudget(ctx context.Context, workspaceID, budgetID xid.ID) error {
	_, err := w.Store.DeleteBudget(ctx, workspaceID, budgetID)
	return err
}
