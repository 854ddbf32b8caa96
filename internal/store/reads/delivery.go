package reads

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// LoggedDelivery is a line of a trigger's delivery log.
type LoggedDelivery struct {
	TriggerID, RoutineRunID xid.ID
	ReceivedAt              time.Time
	Status                  int
	Outcome, Detail, Event  string
}

// Deliveries reads the newest deliveries of several triggers, most of each, newest first, in one query.
func (s *Reads) Deliveries(ctx context.Context, triggerIDs []xid.ID, most int) (map[xid.ID][]LoggedDelivery, error) {
	const query = `
SELECT d.trigger_id, d.routine_run_id, d.created_at, d.status, d.outcome, d.detail, d.event
FROM unnest($1::text[]) AS t (id) CROSS JOIN LATERAL (
  SELECT * FROM webhook_deliveries WHERE trigger_id = t.id ORDER BY created_at DESC, id DESC LIMIT $2) AS d
ORDER BY d.trigger_id, d.created_at DESC, d.id DESC`
	all, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (d LoggedDelivery, err error) {
		return d, rows.Scan(&d.TriggerID, &d.RoutineRunID, &d.ReceivedAt, &d.Status, &d.Outcome, &d.Detail, &d.Event)
	}, query, pgtx.IDs(triggerIDs), most)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	out := make(map[xid.ID][]LoggedDelivery, len(triggerIDs))
	for _, d := range all {
		out[d.TriggerID] = append(out[d.TriggerID], d)
	}
	return out, nil
}
