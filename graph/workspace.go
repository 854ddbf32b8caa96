package graph

import (
	"context"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// defaultTimeZone is the zone of a workspace that names none.
const defaultTimeZone = "UTC"

func (r *Resolver) createWorkspace(ctx context.Context, in model.CreateWorkspaceInput) (store.Made, error) {
	if err := instanceOnly(ctx, "making a workspace"); err != nil {
		return store.Made{}, err
	}
	once, err := idempotency(in, in.IdempotencyKey)
	if err != nil {
		return store.Made{}, err
	}
	zone := defaultTimeZone
	if in.DefaultTimeZone != nil {
		zone = *in.DefaultTimeZone
	}
	return r.Store.CreateWorkspace(ctx, store.CreateWorkspace{
		Name: in.Name, Slug: valueOf(in.Slug), DefaultTimeZone: zone, OfficeWorkflow: orTrue(in.OfficeWorkflow), Idempotency: once,
	})
}

func (r *Resolver) updateSettings(ctx context.Context, in model.UpdateWorkspaceSettingsInput) (store.SettingsUpdated, error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return store.SettingsUpdated{}, err
	}
	executor, executorErr := changeOfExecutor(in.DefaultExecutor, []string{"defaultExecutor"}, in.WorkspaceID, r.Sealer)
	if err := joinProblems(executorErr, checkTexts(in)); err != nil {
		return store.SettingsUpdated{}, err
	}
	return r.Store.UpdateSettings(ctx, store.UpdateSettings{
		WorkspaceID: in.WorkspaceID, ExpectedRevision: in.ExpectedRevision, DefaultExecutor: executor,
		OfficeWorkflowID: changeOfID(in.OfficeWorkflowID),
		Patch: domain.SettingsPatch{
			MaxRuns: changeOf(in.MaxConcurrentRuns), LookbackHours: changeOf(in.RecoveryLookbackHours),
			Window: changeOf(in.CoalescingWindow), TimeZone: changeOf(in.DefaultTimeZone), MaxHops: changeOf(in.MaxHops),
		},
	})
}

// holdWorkspace stops all of a workspace, and routes what runs let go of that waited for a worker.
func (r *Resolver) holdWorkspace(ctx context.Context, in model.HoldWorkspaceInput) (store.WorkspaceHeld, error) {
	if err := joinProblems(r.checkWorkspace(ctx, in.WorkspaceID), checkTexts(in)); err != nil {
		return store.WorkspaceHeld{}, err
	}
	fires := domain.HoldFiresHold
	if in.Fires != nil {
		fires = *in.Fires
	}
	held, err := r.Store.HoldWorkspace(ctx, store.HoldWorkspace{WorkspaceID: in.WorkspaceID, Note: valueOf(in.Note), Fires: fires, CancelLive: valueOf(in.CancelLive)})
	if err != nil {
		return store.WorkspaceHeld{}, err
	}
	r.routeRequests(ctx, held.Resent)
	return held, nil
}

func (r *Resolver) releaseWorkspace(ctx context.Context, in model.ReleaseWorkspaceInput) error {
	if err := joinProblems(r.checkWorkspace(ctx, in.WorkspaceID), checkTexts(in)); err != nil {
		return err
	}
	return r.Store.ReleaseWorkspace(ctx, in.WorkspaceID, valueOf(in.Note))
}

// routeRequests routes what a change sent again. The change is committed: if routing fails, the dispatcher does it later.
func (r *Resolver) routeRequests(ctx context.Context, requests []xid.ID) {
	if err := r.Store.RouteRequests(ctx, requests); err != nil {
		r.Log.WarnContext(ctx, "wakeups not routed at once, the dispatcher will", "error", err)
	}
}
