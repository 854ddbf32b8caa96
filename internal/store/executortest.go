package store

import (
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// NoteExecutorTest notes in the feed that somebody tested the executor of an agent's runs, and which checks failed. A
// test is an act, because it starts the agent's program. kind is "" when no executor is set.
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
