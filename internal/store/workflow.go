package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CreateWorkflow is a workflow to make, with its steps in order.
type CreateWorkflow struct {
	WorkspaceID xid.ID
	Plan        domain.WorkflowPlan
	Idempotency
}

// CreateWorkflow makes a workflow.
func (s *Records) CreateWorkflow(ctx context.Context, in CreateWorkflow) (made Made, err error) {
	plan, problems := in.Plan.Check()
	if err := domain.AsUserError(problems); err != nil {
		return Made{}, err
	}
	plan.System, plan.Hidden = false, false
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "createWorkflow", in.Idempotency, func() (Made, error) {
			id, err := t.createWorkflow(ctx, in.WorkspaceID, plan)
			if err != nil {
				return Made{}, err
			}
			return Made{ID: id}, t.note(ctx, entry{workspaceID: in.WorkspaceID, code: domain.ActivityCodeWorkflowChanged, by: callerOr(ctx, "workflows"),
				summary: "The workflow was made.", subjectID: id,
				data: map[string]any{"workflowId": id, "created": true, "name": plan.Name, "kind": plan.Kind, "steps": len(plan.Steps)}})
		})
		return err
	})
	return made, pgtx.Wrap("create workflow", err)
}
