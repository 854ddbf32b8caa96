package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// tellWaits puts into the inbox, once for each fire that others wait for, what it waits for (SPEC S4.6): among the fires that
// were written, those which the policy dropped for one that nobody works on. Once is for good: the item's id is made of the
// fire's, so that one which was handled and pruned from sight is not told of again by the next minute's fire.
func (t *tx) tellWaits(ctx context.Context, fires []fire, written map[xid.ID]insertedRequest) error {
	type item struct {
		ID        xid.ID `json:"id"`
		Workspace xid.ID `json:"workspace"`
		Title     string `json:"title"`
		Body      string `json:"body"`
		Subject   xid.ID `json:"subject"`
		Dedupe    string `json:"dedupe"`
		Causation xid.ID `json:"causation"`
	}
	told := map[string]bool{}
	var items []item
	for _, f := range fires {
		if _, isNew := written[f.id]; !isNew || f.plan.TellWait == "" || told[f.plan.HeldBy] {
			continue
		}
		told[f.plan.HeldBy] = true
		title, body := domain.FiresWait(f.routine.name, f.plan.TellWait)
		items = append(items, item{"inb" + xid.ID(strings.TrimPrefix(f.plan.HeldBy, "rrn")), f.routine.workspaceID, title, body, f.routine.id, waitItem(xid.ID(f.plan.HeldBy)), f.causationID})
	}
	if len(items) == 0 {
		return nil
	}
	encoded, err := json.Marshal(items)
	if err != nil {
		return fmt.Errorf("encode inbox items: %w", err)
	}
	const query = `
INSERT INTO inbox_items (id, workspace_id, kind, title, body, subject_id, dedupe_key, causation_id)
SELECT id, workspace, 'FIRES_WAIT', title, body, subject, dedupe, causation
FROM json_to_recordset($1) AS n (id text, workspace text, title text, body text, subject text, dedupe text, causation text) ON CONFLICT DO NOTHING`
	if _, err := exec(ctx, t, query, encoded); err != nil {
		return fmt.Errorf("tell that fires wait: %w", err)
	}
	return nil
}

// waitItem is the dedupe key of the item that tells of fires which wait for this one.
func waitItem(routineRun xid.ID) string { return "fires_wait:" + string(routineRun) }
