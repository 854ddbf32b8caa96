package graph

import (
	"context"
	"encoding/json"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
)

// ownRun is what the caller's token belongs to; @requires lets run tokens alone in.
func (r *Resolver) ownRun(ctx context.Context) (*model.OwnRun, error) {
	caller, _ := auth.FromContext(ctx)
	run, err := r.Reader.Run.Get(ctx, caller.RunID)
	if err != nil {
		return nil, err
	}
	agent, err := r.Reader.Agent.Get(ctx, caller.AgentID)
	if err != nil {
		return nil, err
	}
	task, err := linked(ctx, load(ctx).tasks, caller.TaskID)
	return &model.OwnRun{WorkspaceID: caller.WorkspaceID, Agent: agent, Run: run, Attempt: caller.Attempt, Task: task}, err
}

// wakeSelf wakes the caller's agent once more.
func (r *Resolver) wakeSelf(ctx context.Context, in model.WakeSelfInput) (*ent.WakeupRequest, bool, error) {
	mask, err := r.agentMask(ctx)
	if err != nil {
		return nil, false, err
	}
	var payload map[string]any
	if in.Payload != nil {
		payload = domain.CleanResult(in.Payload, mask).(map[string]any)
	}
	request, again, err := r.Store.WakeSelf(ctx, mask(in.Reason), payload)
	if err != nil {
		return nil, false, err
	}
	caller, _ := auth.FromContext(ctx)
	r.route(ctx, caller.AgentID)
	row, err := r.Reader.WakeupRequest.Get(ctx, request)
	return row, again, err
}

// noteProgress notes a step of the work of the caller's run.
func (r *Resolver) noteProgress(ctx context.Context, in model.NoteProgressInput) (*ent.Run, error) {
	details, err := json.Marshal(in.Progress)
	if err != nil || len(details) > progressBytesMax {
		return nil, domain.RefuseField([]string{"progress"}, domain.UserErrorCodeTooLong, "must be at most %d KiB", progressBytesMax>>10)
	}
	mask, err := r.agentMask(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.Store.NoteProgress(ctx, domain.CleanResult(in.Progress, mask).(map[string]any)); err != nil {
		return nil, err
	}
	caller, _ := auth.FromContext(ctx)
	return r.Reader.Run.Get(ctx, caller.RunID)
}

// addLink names something that the agent of the caller's run made.
func (r *Resolver) addLink(ctx context.Context, in model.AddLinkInput) (*ent.Link, error) {
	mask, err := r.agentMask(ctx)
	if err != nil {
		return nil, err
	}
	title := ""
	if in.Title != nil {
		title = *in.Title
	}
	id, err := r.Store.AddLink(ctx, in.Kind, mask(in.URL), mask(title))
	if err != nil {
		return nil, err
	}
	return r.Reader.Link.Get(ctx, id)
}
