package graph

import (
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Tester looks whether an executor works where agents run; holder is the record that spec is stored on. spec may be nil.
type Tester interface {
	TestExecutor(ctx context.Context, workspaceID, agentID xid.ID, spec *domain.ExecutorSpec, holder xid.ID, ask bool) []domain.Check
}

// testExecutor tests what a taskless run of the agent would use.
func (r *Resolver) testExecutor(ctx context.Context, agentID xid.ID) ([]*model.ExecutorCheck, error) {
	a, err := r.presentAgent(ctx, agentID)
	if err != nil {
		return nil, err
	}
	w, err := r.Reader.Workspace.Get(ctx, a.WorkspaceID)
	if err != nil {
		return nil, fmt.Errorf("read workspace: %w", err)
	}
	spec, holder := domain.ResolveExecutor(nil, a.Executor, nil, w.DefaultExecutor), a.ID
	if a.Executor.Kind() == "" {
		holder = w.ID
	}
	tested := ctx
	if end, ok := ctx.Deadline(); ok { // the answer needs some of the operation's time
		var cancel context.CancelFunc
		tested, cancel = context.WithDeadline(ctx, end.Add(-min(answerReserve, time.Until(end)/2)))
		defer cancel()
	}
	checks := r.Tester.TestExecutor(tested, a.WorkspaceID, a.ID, spec, holder, true)
	if err := r.Store.NoteExecutorTest(ctx, a.WorkspaceID, a.ID, spec.Kind(), checks); err != nil {
		return nil, err
	}
	var out []*model.ExecutorCheck
	for _, c := range checks {
		check := &model.ExecutorCheck{Name: c.Name, Ok: c.OK, Detail: c.Detail}
		if c.Hint != "" {
			check.Hint = &c.Hint
		}
		out = append(out, check)
	}
	return out, nil
}
