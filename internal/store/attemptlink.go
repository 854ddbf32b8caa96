package store

import (
	"cmp"
	"context"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// addLink notes something that a run made elsewhere. An address that the run has named before gets the new kind and title.
func (t *tx) addLink(ctx context.Context, run runRow, a domain.Action) (xid.ID, error) {
	const query = `
-- $1 id, $2 workspace, $3 causation id, $4 run, $5 agent, $6 task, $7 kind, $8 url, $9 title, $10 now
INSERT INTO links (id, workspace_id, causation_id, run_id, agent_id, task_id, kind, url, title, created_at)
VALUES ($1, $2, $3, $4, $5, nullif($6::text, ''), $7, $8, $9, $10)
ON CONFLICT (run_id, url) DO UPDATE SET kind = $7, title = $9
RETURNING id`
	id, err := pgtx.QueryOne[xid.ID](ctx, t, query, xid.New("lnk"), run.workspaceID, run.causationID, run.id, run.agentID, string(run.taskID), a.Kind, a.URL, cmp.Or(a.Title, domain.FirstRunes(a.URL, 200)), t.Now)
	return id, pgtx.Wrap("add a link", err)
}
