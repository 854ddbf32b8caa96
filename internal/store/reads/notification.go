package reads

import (
	"context"
	"database/sql"
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// ChannelHealth is how a notification channel that is switched on fares. Outcome is that of its newest attempt, tests included;
// "" before the first.
type ChannelHealth struct {
	Name    string
	Outcome domain.NotificationOutcome
	Detail  string
	Pending int // notifications that are to be delivered
}

// ChannelHealths reads how the channels of a workspace fare, by name.
func (s *Reads) ChannelHealths(ctx context.Context, workspaceID xid.ID) ([]ChannelHealth, error) {
	const query = `
SELECT c.name, coalesce(d.outcome, ''), coalesce(d.detail, ''),
  (SELECT count(*) FROM notifications n WHERE n.channel_id = c.id AND n.status = 'PENDING')
FROM notification_channels c
LEFT JOIN LATERAL (
  SELECT outcome, detail
  FROM notification_deliveries
  WHERE channel_id = c.id
  ORDER BY created_at DESC, id DESC
  LIMIT 1) d ON true
WHERE c.workspace_id = $1 AND c.enabled AND c.deleted_at IS NULL
ORDER BY c.name`
	list, err := pgtx.Collect(ctx, s.pool, func(rows *sql.Rows) (h ChannelHealth, err error) {
		return h, rows.Scan(&h.Name, &h.Outcome, &h.Detail, &h.Pending)
	}, query, workspaceID)
	if err != nil {
		return nil, fmt.Errorf("read how notification channels fare: %w", err)
	}
	return list, nil
}
