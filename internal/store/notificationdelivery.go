package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of a claim of notifications. The lease is longer than an attempt can take.
const (
	noticesPerChannel = 4
	noticeLease       = 2 * time.Minute
)

// DueNotice is a notification whose attempt has begun: it is the caller's until its lease ends, when another attempt may begin.
type DueNotice struct {
	domain.Notice
	ChannelID xid.ID
	Target    domain.NotificationTarget
	Attempt   int
}

// ClaimNotices begins an attempt at up to most notifications that are due, few of each channel, so that none holds up the
// others. Those that another process has are passed over.
func (s *Records) ClaimNotices(ctx context.Context, most int) (due []DueNotice, err error) {
	err = s.inTx(ctx, func(t *tx) error {
		const claim = `
-- $1 most of a channel, $2 most, $3 length of the lease in seconds
WITH due AS (
  SELECT n.id, c.id AS channel, c.target, w.name AS workspace_name
  FROM notification_channels c
  JOIN workspaces w ON w.id = c.workspace_id
  CROSS JOIN LATERAL (
    SELECT id
    FROM notifications
    WHERE channel_id = c.id AND status = 'PENDING' AND due_at <= clock_timestamp()
    ORDER BY due_at
    LIMIT $1
    FOR NO KEY UPDATE SKIP LOCKED) n
  WHERE c.enabled AND c.deleted_at IS NULL
  LIMIT $2)
UPDATE notifications n
SET attempts = attempts + 1, due_at = clock_timestamp() + make_interval(secs => $3)
FROM due
WHERE n.id = due.id
RETURNING n.id, n.event, n.inbox_kind, n.workspace_id, due.workspace_name, n.subject_id, n.title, n.body, n.created_at,
  due.channel, due.target, n.attempts`
		due, err = pgtx.Collect(ctx, t, scanDueNotice, claim, noticesPerChannel, most, noticeLease.Seconds())
		return err
	})
	return due, pgtx.Wrap("claim notifications", err)
}

func scanDueNotice(rows *sql.Rows) (d DueNotice, err error) {
	var target []byte
	err = rows.Scan(&d.ID, &d.Event, &d.Kind, &d.WorkspaceID, &d.WorkspaceName, &d.SubjectID, &d.Title, &d.Body, &d.At, &d.ChannelID, &target, &d.Attempt)
	if err == nil {
		err = json.Unmarshal(target, &d.Target)
	}
	return d, err
}

// Sent is what came of one attempt to deliver. Detail says why it failed and holds no secret.
type Sent struct {
	retry.Delivered
	Status int // of HTTP or SMTP; 0: nobody answered
	Detail string
	Took   time.Duration
}

// maxDeliveryDetail bounds what the log says of an attempt, in characters.
const maxDeliveryDetail = 1000

// NoticeSent notes what came of an attempt: the notification has ended, or is due again. One that is given up comes into the
// inbox, once while that item is open. An attempt that is not the newest, because its lease ran out, changes nothing but the log.
func (s *Records) NoticeSent(ctx context.Context, d DueNotice, sent Sent) error {
	err := s.inTx(ctx, func(t *tx) error {
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		at, again := retry.Delivery(t.Now, d.Attempt, sent.Delivered, s.jitter())
		outcome := noticeOutcome(sent, again)
		const lock = `
SELECT true
FROM notifications n
JOIN notification_channels c ON c.id = n.channel_id
WHERE n.id = $1 AND n.attempts = $2 AND n.status = 'PENDING' AND c.deleted_at IS NULL
FOR NO KEY UPDATE OF n`
		newest, err := pgtx.Collect(ctx, t, pgtx.ScanOne[bool], lock, d.ID, d.Attempt)
		if err != nil {
			return fmt.Errorf("lock the notification: %w", err)
		}
		if len(newest) == 0 {
			outcome, at = domain.NotificationOutcomeRetried, time.Time{}
			if sent.OK {
				outcome = domain.NotificationOutcomeDelivered
			}
		} else if err := t.endAttemptAtNotice(ctx, d, outcome, at); err != nil {
			return err
		}
		return t.logDelivery(ctx, d, sent, outcome, at)
	})
	return pgtx.Wrap("note an attempt at a notification", err)
}

func noticeOutcome(sent Sent, again bool) domain.NotificationOutcome {
	switch {
	case sent.OK:
		return domain.NotificationOutcomeDelivered
	case again:
		return domain.NotificationOutcomeRetried
	}
	return domain.NotificationOutcomeGaveUp
}

func (t *tx) endAttemptAtNotice(ctx context.Context, d DueNotice, outcome domain.NotificationOutcome, at time.Time) error {
	if outcome == domain.NotificationOutcomeRetried {
		return pgtx.Wrap("plan the next attempt", pgtx.ExecOne(ctx, t, `UPDATE notifications SET due_at = $2 WHERE id = $1`, d.ID, at))
	}
	status := domain.NotificationStatusDelivered
	if outcome == domain.NotificationOutcomeGaveUp {
		status = domain.NotificationStatusFailed
	}
	if err := pgtx.ExecOne(ctx, t, `UPDATE notifications SET status = $2, ended_at = $3 WHERE id = $1`, d.ID, status, t.Now); err != nil {
		return fmt.Errorf("end the notification: %w", err)
	}
	if status != domain.NotificationStatusFailed {
		return nil
	}
	return t.tellGivenUp(ctx, d)
}

// tellGivenUp puts into the inbox that a channel did not deliver.
func (t *tx) tellGivenUp(ctx context.Context, d DueNotice) error {
	name, err := pgtx.QueryOne[string](ctx, t, `SELECT name FROM notification_channels WHERE id = $1`, d.ChannelID)
	if err != nil {
		return fmt.Errorf("read the channel: %w", err)
	}
	return t.inbox(ctx, item{workspaceID: d.WorkspaceID, kind: domain.InboxKindNotificationFailed, dedupe: "notification_failed:" + string(d.ChannelID),
		title:   domain.FirstRunes("The notification channel "+name+" does not deliver", domain.MaxNotificationTitle),
		body:    fmt.Sprintf("A notification was given up after %d attempts: %s\n\n`deliveries` of the channel says why. Mend it with `updateNotificationChannel` and look with `testNotificationChannel`; what was given up is not sent again, the inbox and the feed have it.", d.Attempt, d.Title),
		subject: d.ChannelID, causationID: xid.New("cau")})
}

func (t *tx) logDelivery(ctx context.Context, d DueNotice, sent Sent, outcome domain.NotificationOutcome, at time.Time) error {
	const insert = `
-- $1 id, $2 workspace, $3 channel, $4 notification, $5 event, $6 title, $7 attempt, $8 outcome, $9 status, $10 detail,
-- $11 how long it took in ms, $12 when it is tried again, $13 now
INSERT INTO notification_deliveries (id, workspace_id, channel_id, notification_id, event, title, attempt,
    outcome, status, detail, took_ms, next_attempt_at, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULLIF($9::bigint, 0), $10, $11::bigint, $12,
  $13::timestamptz - make_interval(secs => $11::bigint / 1000.0))`
	err := pgtx.ExecOne(ctx, t, insert, xid.New("ndl"), d.WorkspaceID, d.ChannelID, d.ID, d.Event, d.Title, d.Attempt, outcome, sent.Status,
		domain.FirstRunes(domain.StorableText(sent.Detail), maxDeliveryDetail), sent.Took.Milliseconds(), pgtx.NullableTime(at), t.Now)
	return pgtx.Wrap("write the delivery log", err)
}

// VerdictWatchers are the workspaces with channels that tell of verdicts.
func (s *Records) VerdictWatchers(ctx context.Context) ([]xid.ID, error) {
	const query = `
SELECT DISTINCT workspace_id
FROM notification_channels
WHERE verdict_changes AND enabled AND deleted_at IS NULL
ORDER BY workspace_id`
	list, err := pgtx.Collect(ctx, s.db, pgtx.ScanOne[xid.ID], query)
	return list, pgtx.Wrap("list who watches verdicts", err)
}
