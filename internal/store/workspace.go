package store

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CreateWorkspace is a tenant to make. Slug is made from Name when empty; DefaultTimeZone is UTC when empty.
type CreateWorkspace struct {
	Name, Slug, DefaultTimeZone string
	OfficeWorkflow              bool // make an office workflow, so that the loop may act on its tasks
	Idempotency
}

// CreateWorkspace makes a workspace, its lane, its hidden ROUTINE workflow and, if asked, its office workflow.
func (s *Records) CreateWorkspace(ctx context.Context, in CreateWorkspace) (made Made, err error) {
	in, err = in.normalised()
	if err != nil {
		return Made{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, instanceOwner, "createWorkspace", in.Idempotency, func() (Made, error) { return t.createWorkspace(ctx, in) })
		return err
	})
	return made, pgtx.Wrap("create workspace", err)
}

func (in CreateWorkspace) normalised() (CreateWorkspace, error) {
	var problems []domain.FieldError
	in.Name, problems = domain.CheckName(in.Name, problems)
	if in.Slug == "" {
		in.Slug = slugOf(in.Name)
	}
	if !slugForm.MatchString(in.Slug) {
		problems = append(problems, domain.FieldError{Field: []string{"slug"}, Code: domain.UserErrorCodeInvalid,
			Message: "a slug has 1 to 64 lower-case letters, digits and hyphens, and begins with a letter or digit"})
	}
	if in.DefaultTimeZone == "" {
		in.DefaultTimeZone = "UTC"
	}
	if !knownZone(in.DefaultTimeZone) {
		problems = append(problems, domain.FieldError{Field: []string{"defaultTimeZone"}, Code: domain.UserErrorCodeUnknownTimeZone,
			Message: fmt.Sprintf("%q is not a time zone; use an IANA name such as Europe/Lisbon", in.DefaultTimeZone)})
	}
	return in, domain.AsUserError(problems)
}

func (t *tx) createWorkspace(ctx context.Context, in CreateWorkspace) (Made, error) {
	id := xid.New("wsp")
	_, err := t.Workspace.Create().SetID(id).SetName(in.Name).SetSlug(in.Slug).SetDefaultTimeZone(in.DefaultTimeZone).Save(ctx)
	if pgtx.UniqueViolation(err) != "" {
		return Made{}, domain.RefuseField([]string{"slug"}, domain.UserErrorCodeTaken, "another workspace has the slug %q; choose another one", in.Slug)
	}
	if err != nil {
		return Made{}, fmt.Errorf("insert workspace: %w", err)
	}
	if err := pgtx.ExecOne(ctx, t, `INSERT INTO workspace_lanes (workspace_id) VALUES ($1)`, id); err != nil {
		return Made{}, fmt.Errorf("insert the workspace's lane: %w", err)
	}
	t.Count(func(c *metrics.Counters) { c.Know(id) })
	if err := t.createSystemWorkflows(ctx, id, in.OfficeWorkflow); err != nil {
		return Made{}, err
	}
	return Made{ID: id}, t.note(ctx, entry{workspaceID: id, code: domain.ActivityCodeWorkspaceCreated, by: callerOr(ctx, "workspaces"), summary: "The workspace was made.",
		subjectID: id, data: map[string]any{"workspaceId": id, "name": in.Name, "slug": in.Slug, "officeWorkflow": in.OfficeWorkflow}})
}

func (t *tx) createSystemWorkflows(ctx context.Context, workspaceID xid.ID, office bool) error {
	_, err := t.createWorkflow(ctx, workspaceID, domain.RoutineWorkflow())
	if err != nil || !office {
		return err
	}
	id, err := t.createWorkflow(ctx, workspaceID, domain.OfficeWorkflow())
	if err != nil {
		return err
	}
	return pgtx.ExecOne(ctx, t, `UPDATE workspaces SET office_workflow_id = $2 WHERE id = $1`, workspaceID, id)
}

func (t *tx) createWorkflow(ctx context.Context, workspaceID xid.ID, plan domain.WorkflowPlan) (xid.ID, error) {
	w, err := t.Workflow.Create().SetWorkspaceID(workspaceID).SetName(plan.Name).SetKind(plan.Kind).SetSystem(plan.System).SetHidden(plan.Hidden).Save(ctx)
	if pgtx.UniqueViolation(err) != "" {
		return "", nameTaken("workflow", plan.Name)
	}
	if err != nil {
		return "", fmt.Errorf("insert workflow: %w", err)
	}
	for i, step := range plan.Steps {
		_, err := t.WorkflowStep.Create().SetWorkspaceID(workspaceID).SetWorkflow(w).SetName(step.Name).SetPosition(i).
			SetState(step.State).SetOnEnter(step.OnEnter).Save(ctx)
		if err != nil {
			return "", fmt.Errorf("insert workflow step: %w", err)
		}
	}
	return w.ID, nil
}

var (
	slugForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,63}$`)
	notSlug  = regexp.MustCompile(`[^a-z0-9]+`)
)

func slugOf(name string) string {
	slug := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(name), "-"), "-")
	return strings.TrimRight(slug[:min(len(slug), 64)], "-")
}
