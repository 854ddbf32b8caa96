package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// The outbox: what happened is noted for each channel that tells of it, in the transaction of its cause, so that it is told
// if and only if that commits. A cause is noted once for each channel.

// noticesInto begins every insertion into the outbox, also those that are part of a larger statement.
const noticesInto = `
INSERT INTO notifications (id, workspace_id, channel_id, cause, event, inbox_kind, subject_id, title, body)`

// maxNoticeBody bounds what a channel is told of an item, in characters.
const maxNoticeBody = "4000"

// itemNotices goes on with a statement that puts items into the inbox, as itemTold does. It is domain.NotificationWishes.Wants in SQL:
// a run that failed for good is told as that to channels which ask for it, and a channel is not told that it fails itself. The id
// follows from channel and item and has the form of other ids.
const itemNotices = `,
noted AS (` + noticesInto + `
  SELECT 'ntf_0' || left(md5(c.id || ' ' || m.id), 25), m.workspace_id, c.id, m.id,
    CASE WHEN c.run_failures AND m.kind = 'AGENT_ERROR' THEN 'RUN_FAILED' ELSE 'INBOX_ITEM' END, m.kind, m.subject_id, m.title,
    left(m.body, ` + maxNoticeBody + `)
  FROM made m
  JOIN notification_channels c ON c.workspace_id = m.workspace_id AND c.deleted_at IS NULL AND c.enabled
    AND c.id IS DISTINCT FROM m.subject_id
    AND (c.inbox_kinds ? m.kind OR c.run_failures AND m.kind = 'AGENT_ERROR')
  ON CONFLICT DO NOTHING)`

// VerdictSeen is the verdict on a workspace's loop as it was judged at an instant.
type VerdictSeen struct {
	WorkspaceID xid.ID
	Verdict     domain.LoopVerdict
	At          time.Time
}

// TellVerdict notes a verdict for the channels that know another one, and returns for how many. A channel that knows none learns this
// one and tells nothing. A verdict that is older than what the channel knows changes nothing, so that of several processes one tells.
func (s *Queue) TellVerdict(ctx context.Context, seen VerdictSeen) (told int, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		told = 0
		var workspace string
		if err := pgtx.QueryRow(ctx, t, []any{&workspace}, `SELECT name FROM workspaces WHERE id = $1`, seen.WorkspaceID); err != nil {
			return fmt.Errorf("read the workspace: %w", err)
		}
		const lock = `
SELECT id, verdict_told
FROM notification_channels
WHERE workspace_id = $1 AND verdict_changes AND enabled AND deleted_at IS NULL AND verdict_told IS DISTINCT FROM $2
  AND (verdict_at IS NULL OR verdict_at < $3)
ORDER BY id
FOR NO KEY UPDATE`
		due, err := pgtx.Collect(ctx, t, scanVerdictChannel, lock, seen.WorkspaceID, seen.Verdict, seen.At)
		if err != nil {
			return fmt.Errorf("lock the channels: %w", err)
		}
		for _, c := range due {
			n, err := t.tellVerdict(ctx, c, seen, workspace)
			if err != nil {
				return err
			}
			told += n
		}
		return nil
	})
	return told, pgtx.Wrap("tell of a verdict", err)
}

// verdictChannel is a channel that knows another verdict, or none.
type verdictChannel struct {
	id     xid.ID
	before *domain.LoopVerdict
}

func scanVerdictChannel(rows *sql.Rows) (c verdictChannel, err error) {
	return c, rows.Scan(&c.id, &c.before)
}

func (t *tx) tellVerdict(ctx context.Context, c verdictChannel, seen VerdictSeen, workspace string) (told int, err error) {
	const learn = `UPDATE notification_channels SET verdict_told = $2, verdict_at = $3 WHERE id = $1`
	if err := pgtx.ExecOne(ctx, t, learn, c.id, seen.Verdict, seen.At); err != nil || c.before == nil {
		return 0, pgtx.Wrap("note what a channel knows", err)
	}
	title, body := domain.VerdictNotice(workspace, *c.before, seen.Verdict)
	cause := "verdict " + string(seen.Verdict) + " " + seen.At.UTC().Format(time.RFC3339Nano)
	const note = noticesInto + `
-- $1 id, $2 workspace, $3 channel, $4 cause, $5 title, $6 body
VALUES ($1, $2, $3, $4, 'VERDICT_CHANGED', '', NULL, $5, $6)
ON CONFLICT DO NOTHING`
	n, err := pgtx.Exec(ctx, t, note, xid.New("ntf"), seen.WorkspaceID, c.id, cause, title, body)
	return int(n), pgtx.Wrap("note a verdict", err)
}
