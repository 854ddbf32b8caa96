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
-- $1 id, $2 workspace, $3 causation id, $4 run, $5 agent, $6 task, $7 kind, $8 url, $9 title, $10 now,
-- $11 the title that was given
INSERT INTO links (id, workspace_id, causation_id, run_id, agent_id, task_id, kind, url, title, created_at)
VALUES ($1, $2, $3, $4, $5, nullif($6::text, ''), $7, $8, $9, $10)
ON CONFLICT (run_id, url) DO UPDATE SET kind = CASE $7 WHEN 'OTHER' THEN links.kind ELSE $7 END,
    title = CASE $11 WHEN '' THEN links.title ELSE $9 END
RETURNING id`
	id, err := pgtx.QueryOne[xid.ID](ctx, t, query, xid.New("lnk"), run.workspaceID, run.causationID, run.id, run.agentID, string(run.taskID), a.Kind, a.URL, cmp.Or(a.Title, domain.FirstRunes(a.URL, 200)), t.Now, a.Title)
	return id, pgtx.Wrap("add a link", err)
}

// AddLink names something that the agent of the run made whose token the caller has, as the action add_link does.
func (s *Attempts) AddLink(ctx context.Context, kind domain.LinkKind, url, title string) (link xid.ID, err error) {
	a := domain.Action{Type: domain.ActionAddLink, Kind: kind, URL: url, Title: title}
	if err := domain.AsUserError(a.LinkProblems()); err != nil {
		return "", err
	}
	err = s.inTx(ctx, func(t *tx) error {
		run, err := t.actingRun(ctx)
		if err != nil {
			return err
		}
		if run == nil {
			return errNoRunsToken
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		if link, err = t.addLink(ctx, *run, a); err != nil {
			return err
		}
		return t.noteAct(ctx, run, a, link)
	})
	return link, pgtx.Wrap("add a link to the run", err)
}
