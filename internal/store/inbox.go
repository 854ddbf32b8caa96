package store

import (
	"context"
	"fmt"
	"strconv"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// maxInboxIDs bounds the items that one call resolves.
const maxInboxIDs = 100

// maxItemTitle is the longest title of an inbox item, in characters.
const maxItemTitle = 300

// item is something to tell a person. About is the agent that the title names in place of {agent}; "" where it names none.
type item struct {
	workspaceID          xid.ID
	kind                 domain.InboxKind
	dedupe, title, body  string
	subject, causationID xid.ID
	about                xid.ID
}

// inbox tells a person something, once for each open dedupe key.
func (t *tx) inbox(ctx context.Context, i item) error {
	const query = `
INSERT INTO inbox_items (id, workspace_id, kind, title, body, subject_id, dedupe_key, causation_id)
VALUES ($1, $2, $3, left(replace($4, '{agent}', coalesce((SELECT name FROM agents WHERE id = $9), 'an agent')), $10::int), $5, $6, $7, $8)
ON CONFLICT (workspace_id, dedupe_key) WHERE dedupe_key IS NOT NULL AND resolved_at IS NULL DO NOTHING`
	_, err := exec(ctx, t, query, xid.New("inb"), i.workspaceID, i.kind, i.title, i.body, i.subject, i.dedupe, i.causationID, i.about, maxItemTitle)
	return wrap("insert inbox item", err)
}

// ResolveInboxItems marks items of one workspace handled, all or none; one that was handled before keeps its instant.
func (s *Store) ResolveInboxItems(ctx context.Context, workspaceID xid.ID, items []xid.ID) error {
	if len(items) > maxInboxIDs {
		return domain.RefuseField([]string{"ids"}, domain.UserErrorCodeTooLong, "at most %d items are handled at once", maxInboxIDs)
	}
	err := s.inTx(ctx, func(t *tx) error {
		const query = `
WITH asked AS (SELECT id, resolved_at FROM inbox_items WHERE id = ANY($1) AND workspace_id = $2 ORDER BY id FOR NO KEY UPDATE)
UPDATE inbox_items i SET resolved_at = coalesce(i.resolved_at, clock_timestamp()) FROM asked WHERE i.id = asked.id RETURNING i.id`
		found, err := collect(ctx, t, scanOne[xid.ID], query, ids(items), workspaceID)
		if err != nil {
			return err
		}
		return missingItems(items, found)
	})
	return wrap("resolve inbox items", err)
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
