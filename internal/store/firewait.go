package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// tellWaits makes an inbox item for each active fire on which nobody works and for which the policy dropped one of the
// fires that were written (SPEC S4.6). The item says what that fire waits for. There is one item for a fire, for good.
// Its id is made of the fire's, so that the next minute's fire does not make it again after it was handled and pruned.
func (t *tx) tellWaits(ctx context.Context, fires []fire, written map[xid.ID]bool) error {
	type item struct {
		ID        xid.ID `json:"id"`
		Workspace xid.ID `json:"workspace"`
		Title     string `json:"title"`
		Body      string `json:"body"`
		Subject   xid.ID `json:"subject"`
		Dedupe    string `json:"dedupe"`
		Causation xid.ID `json:"causation"`
		Agent     xid.ID `json:"agent"`
		Activity  xid.ID `json:"activity"`
	}
	told := map[string]bool{}
	var items []item
	for _, f := range fires {
		if !written[f.id] || f.plan.TellWait == "" || told[f.plan.HeldBy] {
			continue
		}
		told[f.plan.HeldBy] = true
		title, body := domain.FiresWait(f.routine.name, f.plan.TellWait)
		items = append(items, item{xid.Derived("inb", "fires wait for "+f.plan.HeldBy), f.routine.workspaceID, title, body, f.routine.id,
			waitItem(xid.ID(f.plan.HeldBy)), f.causationID, f.routine.assigneeID, xid.New("act")})
	}
	if len(items) == 0 {
		return nil
	}
	encoded, err := json.Marshal(items)
	if err != nil {
		return fmt.Errorf("encode inbox items: %w", err)
	}
	const query = `
WITH n AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1)
    AS n (id text, workspace text, title text, body text, subject text, dedupe text, causation text, agent text,
      activity text)),
item AS (
  INSERT INTO inbox_items (agent_id, id, workspace_id, kind, title, body, subject_id, dedupe_key, causation_id)
  SELECT NULLIF(agent, ''), id, workspace, '` + string(domain.InboxKindFiresWait) + `', title, body, subject, dedupe, causation
  FROM n
  ON CONFLICT DO NOTHING -- the inbox has an open item that says the same
  RETURNING id, workspace_id, kind, title, body, subject_id, causation_id),
made AS (SELECT item.*, n.activity, n.agent, NULL::text AS task FROM item JOIN n USING (id))` + itemTold + `$2
FROM made`
	if _, err := pgtx.Exec(ctx, t, query, encoded, t.Now); err != nil {
		return fmt.Errorf("tell that fires wait: %w", err)
	}
	return nil
}

// tellBacklog puts into the inbox, once for each agent and day, that fires were dropped because its queue is full (SPEC
// S3.10). The id is made of both, so that an item that was handled is not made again on the same day.
func (t *tx) tellBacklog(ctx context.Context, fires []fire, written map[xid.ID]bool) error {
	of := map[xid.ID]bool{}
	var agents, causes, itemIDs []xid.ID
	day := t.Now.Format(time.DateOnly)
	for _, f := range fires {
		agent := f.routine.assigneeID
		if !written[f.id] || f.plan.SkipReason != domain.EndReasonBacklogFull || of[agent] {
			continue
		}
		of[agent] = true
		agents, causes = append(agents, agent), append(causes, f.causationID)
		itemIDs = append(itemIDs, xid.Derived("inb", "backlog "+string(agent)+" "+day))
	}
	if len(agents) == 0 {
		return nil
	}
	const query = `
-- $1 ids of the items, $2 agents, $3 causes, $4 most runs that may wait, $5 the day, $6 ids of the entries, $7
-- now
WITH n AS MATERIALIZED (
  SELECT *
  FROM unnest($1::text[], $2::text[], $3::text[], $6::text[]) AS n (id, agent, cause, activity)),
item AS (
  INSERT INTO inbox_items (agent_id, id, workspace_id, kind, title, body, subject_id, dedupe_key, causation_id)
  SELECT a.id, n.id, a.workspace_id, 'LOOP_BREAKER', left('The queue of agent ' || a.name || ' is full', 300),
    'Fires of its routines are skipped (BACKLOG_FULL), because more than ' || $4::int || ' runs of the agent wait. '
      || 'Look why they wait (` + "`waiting`" + `), give it more sessions, or pause the routines.',
    a.id, 'backlog:' || a.id || ':' || $5::text, n.cause
  FROM n
  JOIN agents a ON a.id = n.agent
  ON CONFLICT DO NOTHING
  RETURNING id, workspace_id, kind, title, body, subject_id, causation_id),
made AS (SELECT item.*, n.activity, n.agent, NULL::text AS task FROM item JOIN n USING (id))` + itemTold + `$7
FROM made`
	if _, err := pgtx.Exec(ctx, t, query, pgtx.IDs(itemIDs), pgtx.IDs(agents), pgtx.IDs(causes), domain.MaxBacklog, day, pgtx.IDs(newIDs("act", len(itemIDs))), t.Now); err != nil {
		return fmt.Errorf("tell that a queue is full: %w", err)
	}
	return nil
}

// waitItem is the dedupe key of the inbox item about fires that wait for this one.
func waitItem(routineRun xid.ID) string { return "fires_wait:" + string(routineRun) }
