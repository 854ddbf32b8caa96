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

func (w *world) UpdateAgent(ctx context.Context, in UpdateAgent) ([]string, error) {
	removed, _, err := w.Store.UpdateAgent(ctx, in)
	return removed, err
}

func (w *world) UpdateProject(ctx context.Context, in UpdateProject) ([]string, error) {
	removed, _, err := w.Store.UpdateProject(ctx, in)
	return removed, err
}

func (w *world) UpdateTask(ctx context.Context, in UpdateTask) (sent []xid.ID, removed []string, err error) {
	done, err := w.Store.UpdateTask(ctx, in)
	return done.Sent, done.Removed, err
}

func (w *world) UpdateSettings(ctx context.Context, in UpdateSettings) (clamped, removed []string, err error) {
	done, err := w.Store.UpdateSettings(ctx, in)
	return done.Clamped, done.Removed, err
}
