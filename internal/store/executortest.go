package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// NoteExecutorTest tells in the feed that somebody tested what an agent's runs are executed with, and which checks failed: a test
// starts the agent's program, and so is an act. kind is "" where no executor is set.
func (s *Queue) NoteExecutorTest(ctx context.Context, workspaceID, agentID xid.ID, kind domain.ExecutorKind, checks []domain.Check) error {
	failed := []string{}
	for _, c := range checks {
		if !c.OK {
			failed = append(failed, c.Name)
		}
	}
	return pgtx.Wrap("tell of the executor's test", s.inTx(ctx, func(t *tx) error {
		return t.note(ctx, entry{workspaceID: workspaceID, code: domain.ActivityCodeExecutorTested, by: callerOr(ctx, "executors"),
			summary: "The agent's executor was tested.", subjectID: agentID, agentID: agentID,
			data: map[string]any{"executor": kind, "checks": len(checks), "failed": failed}})
	}))
}
