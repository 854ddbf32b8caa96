package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// callTrigger is what a call finds of the trigger that it names, and of earlier calls.
type callTrigger struct {
	there, enabled bool
	zone           string                  // of the instant of the fire
	recent         int                     // deliveries that proved themselves lately
	earlier        xid.ID                  // the fire that the delivery repeats
	status         domain.RoutineRunStatus // its status
}

// readCallTriggers reads what calls find, after their lanes' locks.
func (t *tx) readCallTriggers(ctx context.Context, batch []*fireCall) error {
	if len(batch) == 0 {
		return nil
	}
	type row struct {
		N         int       `json:"n"`
		Workspace xid.ID    `json:"workspace"`
		Routine   xid.ID    `json:"routine"`
		Trigger   xid.ID    `json:"trigger"`
		Delivered bool      `json:"delivered"`
		Key       string    `json:"key,omitempty"`
		Signature string    `json:"signature,omitempty"`
		Since     time.Time `json:"since,omitzero"`
	}
	rows := make([]row, len(batch))
	for i, x := range batch {
		rows[i] = row{N: i, Workspace: x.WorkspaceID, Routine: x.RoutineID, Trigger: x.TriggerID}
		if d := x.delivery; d != nil {
			rows[i].Delivered, rows[i].Key, rows[i].Signature, rows[i].Since = true, x.fireKey(), d.Signature, t.Now.Add(-2*d.Webhook.ReplayWindow)
		}
	}
	encoded, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode calls: %w", err)
	}
	const query = `
-- $1 the calls as JSON, $2 since when deliveries count, $3 outcomes of deliveries that proved themselves
SELECT n.n, t.id IS NOT NULL, coalesce(t.enabled, false),
  CASE WHEN t.kind = 'SCHEDULE' THEN t.time_zone ELSE w.default_time_zone END, (
    SELECT count(*)
    FROM webhook_deliveries
    WHERE n.delivered AND trigger_id = t.id AND created_at > $2 AND outcome = ANY($3)),
  coalesce(e.id, ''), coalesce(e.status::text, '')
FROM json_to_recordset($1) AS n (n int, workspace text, routine text, trigger text, delivered boolean,
    key text, signature text, since timestamptz)
JOIN workspaces w ON w.id = n.workspace
LEFT JOIN LATERAL (
  SELECT id, enabled, kind, time_zone
  FROM routine_triggers
  WHERE id = n.trigger AND routine_id = n.routine AND deleted_at IS NULL
  OFFSET 0) AS t ON true
LEFT JOIN LATERAL (
  SELECT id, status FROM routine_runs WHERE trigger_id = t.id AND fire_key = n.key
  UNION ALL
  SELECT r.id, r.status
  FROM webhook_deliveries d
  JOIN routine_runs r ON r.id = d.routine_run_id
  WHERE d.trigger_id = t.id AND d.delivery_key = n.signature AND d.created_at > n.since
  LIMIT 1) AS e ON true`
	_, err = pgtx.Collect(ctx, t, func(rows *sql.Rows) (_ struct{}, err error) {
		var n int
		var f callTrigger
		err = rows.Scan(&n, &f.there, &f.enabled, &f.zone, &f.recent, &f.earlier, &f.status)
		if err == nil {
			batch[n].trigger = f
		}
		return struct{}{}, err
	}, query, encoded, t.Now.Add(-domain.WebhookRateWindow), pgtx.EnumArray(domain.WebhookVerified))
	return pgtx.Wrap("read the triggers of fires", err)
}

// fireKey is what a delivery with a key of its own is told by; "" without one.
func (x *fireCall) fireKey() string {
	if x.delivery == nil || x.delivery.Key == "" {
		return ""
	}
	return domain.WebhookFireKey(string(x.RoutineID), string(x.TriggerID), x.delivery.Key)
}
