package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// maxInboxIDs bounds the items that one call resolves.
const maxInboxIDs = 100

// maxItemTitle is the longest title of an inbox item, in characters.
const maxItemTitle = 300

// item is something to tell a person. About is the agent that the title names in place of {agent}; "" where it names none.
// About and taskID are what the feed says that it concerns.
type item struct {
	workspaceID          xid.ID
	kind                 domain.InboxKind
	dedupe, title, body  string
	subject, causationID xid.ID
	about, taskID        xid.ID
	id                   xid.ID // made of what it tells, so that it is told once, also after it was handled; "": a new one
}

// aboutItem is what the feed says of an inbox item, as the columns agent and task have it, for programs.
const aboutItem = `jsonb_strip_nulls(jsonb_build_object('agent', agent, 'task_id', task, 'inboxItemId', id, 'kind', kind,
    'title', title, 'subjectId', subject_id))`

// itemTold ends a statement that puts items into the inbox: from made, with the columns activity, agent, task and body, it notes
// them for the channels that tell of them, and says so in the feed. What follows is the instant.
const itemTold = itemNotices + activityInto + `
SELECT activity, workspace_id, 'INBOX_ITEM_MADE', 'The inbox was told: ' || title, 'SYSTEM', 'inbox', id,
  agent, task, ` + aboutItem + `, causation_id, `

// inbox tells a person something, once for each open dedupe key, and says so in the feed.
func (t *tx) inbox(ctx context.Context, i item) error {
	const query = `
-- $1 id, $2 workspace, $3 kind, $4 title, $5 the agent that it names, $6 longest title, $7 body, $8 subject,
-- $9 dedupe key, $10 causation id, $11 id of the entry, $12 task, $13 now
WITH made AS (
  INSERT INTO inbox_items (id, workspace_id, kind, title, agent_id, body, subject_id, dedupe_key, causation_id)
  VALUES ($1, $2, $3,
    left(replace($4, '{agent}', coalesce((SELECT name FROM agents WHERE id = $5), 'an agent')), $6::int),
    NULLIF($5, ''), $7, $8, $9, $10)
  ON CONFLICT DO NOTHING -- the inbox has it
  RETURNING id, workspace_id, kind, title, body, subject_id, causation_id, $11::text AS activity,
    $5::text AS agent, $12::text AS task)` +
		itemTold + `coalesce($13::timestamptz, clock_timestamp()) FROM made`
	n, err := pgtx.Exec(ctx, t, query, cmp.Or(i.id, xid.New("inb")), i.workspaceID, i.kind, i.title, i.about, maxItemTitle, i.body, i.subject, i.dedupe, i.causationID,
		xid.New("act"), i.taskID, pgtx.NullableTime(t.Now))
	if n > 0 {
		t.fed(i.workspaceID)
	}
	return pgtx.Wrap("insert inbox item", err)
}

// itemsHandled follows asked, the locked items with the ids of their entries. Open items are handled now, by the actor
// that the caller names. The feed notes it with the agent and the task that the entry of their making named.
const itemsHandled = `,
-- $1 now, $2 kind of actor, $3 actor
done AS (
  UPDATE inbox_items i SET resolved_at = $1 FROM asked WHERE i.id = asked.id AND asked.resolved_at IS NULL
  RETURNING i.id, i.workspace_id, i.kind, i.title, i.subject_id, i.causation_id, asked.activity),
about AS (
  SELECT done.*, m.agent_id AS agent, m.task_id AS task FROM done LEFT JOIN LATERAL (
    SELECT agent_id, task_id
    FROM activities
    WHERE subject_id = done.id AND code = 'INBOX_ITEM_MADE'
    LIMIT 1) m ON true),
told AS (` + activityInto + `
  SELECT activity, workspace_id, 'INBOX_ITEM_HANDLED', 'An item of the inbox was handled: ' || title, $2,
    $3, id, agent, task, ` + aboutItem + `, causation_id, $1
  FROM about)
SELECT id FROM asked`

// handleItem takes the open item of a dedupe key out of the inbox, if there is one.
func (t *tx) handleItem(ctx context.Context, workspaceID xid.ID, dedupe string, by actor) error {
	const query = `
-- $1 now, $2 kind of actor, $3 actor, $4 workspace, $5 dedupe key, $6 id of the entry
WITH asked AS (
  SELECT id, resolved_at, $6::text AS activity
  FROM inbox_items
  WHERE workspace_id = $4 AND dedupe_key = $5 AND resolved_at IS NULL
  FOR NO KEY UPDATE)` + itemsHandled
	handled, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, t.Now, by.kind, by.name, workspaceID, dedupe, xid.New("act"))
	if len(handled) > 0 {
		t.fed(workspaceID)
	}
	return pgtx.Wrap("resolve the inbox item", err)
}

// ResolveInboxItems marks items of one workspace handled, all or none; one that was handled before keeps its instant.
func (s *Queue) ResolveInboxItems(ctx context.Context, workspaceID xid.ID, items []xid.ID) error {
	if len(items) > maxInboxIDs {
		return domain.RefuseField([]string{"ids"}, domain.UserErrorCodeTooLong, "at most %d items are handled at once", maxInboxIDs)
	}
	err := s.inTx(ctx, func(t *tx) error {
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		const query = `
-- $1 now, $2 kind of actor, $3 actor, $4 items, $5 ids of the entries, $6 workspace
WITH n AS (
  SELECT id, min(activity) AS activity
  FROM unnest($4::text[], $5::text[]) AS n (id, activity)
  GROUP BY id),
asked AS (
  SELECT i.id, i.resolved_at, n.activity
  FROM inbox_items i
  JOIN n USING (id)
  WHERE i.id = ANY($4) AND i.workspace_id = $6
  ORDER BY i.id
  FOR NO KEY UPDATE OF i)` + itemsHandled
		by := callerOr(ctx, "inbox")
		found, err := pgtx.Collect(ctx, t, pgtx.ScanOne[xid.ID], query, t.Now, by.kind, by.name, pgtx.IDs(items), pgtx.IDs(newIDs("act", len(items))), workspaceID)
		if err != nil {
			return err
		}
		t.fed(workspaceID)
		return missingItems(items, found)
	})
	return pgtx.Wrap("resolve inbox items", err)
}

// missingItems names the asked ids that were not found.
func missingItems(asked, found []xid.ID) error {
	there := make(map[xid.ID]bool, len(found))
	for _, id := range found {
		there[id] = true
	}
	var problems []domain.FieldError
	for i, id := range asked {
		if !there[id] {
			problems = append(problems, domain.FieldError{Field: []string{"ids", strconv.Itoa(i)}, Code: domain.UserErrorCodeNotFound,
				Message: fmt.Sprintf("there is no inbox item %s in this workspace", id)})
		}
	}
	return domain.AsUserError(problems)
}
