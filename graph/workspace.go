package graph

import (
	"context"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
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
			Window: changeOf(in.CoalescingWindow), TimeZone: changeOf(in.DefaultTimeZone),
		},
	})
}
