package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/notificationchannel"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// CreateNotificationChannel is a channel to make. ID is made by the caller, since the target's secrets are sealed for it.
type CreateNotificationChannel struct {
	WorkspaceID, ID xid.ID
	Name            string
	Enabled         bool
	Wishes          domain.NotificationWishes
	Target          domain.NotificationTarget
	Idempotency
}

// CreateNotificationChannel makes a channel. It learns the verdict on the loop at the next look.
func (s *Records) CreateNotificationChannel(ctx context.Context, in CreateNotificationChannel) (made Made, err error) {
	name, problems := domain.CheckName(in.Name, nil)
	wishes, more := in.Wishes.Check()
	if err := domain.AsUserError(slices.Concat(problems, more)); err != nil {
		return Made{}, err
	}
	err = s.inTx(ctx, func(t *tx) error {
		made, err = t.idempotent(ctx, in.WorkspaceID, "createNotificationChannel", in.Idempotency, func() (Made, error) {
			if err := t.roomForChannel(ctx, in.WorkspaceID); err != nil {
				return Made{}, err
			}
			err := t.NotificationChannel.Create().SetID(in.ID).SetWorkspaceID(in.WorkspaceID).SetName(name).SetKind(in.Target.Kind()).SetEnabled(in.Enabled).
				SetInboxKinds(wishes.InboxKinds).SetRunFailures(wishes.RunFailures).SetVerdictChanges(wishes.VerdictChanges).SetTarget(in.Target).Exec(ctx)
			if pgtx.UniqueViolation(err) != "" {
				return Made{}, nameTaken("notification channel", name)
			}
			if err != nil {
				return Made{}, fmt.Errorf("insert notification channel: %w", err)
			}
			return Made{ID: in.ID}, t.noteChannel(ctx, in.WorkspaceID, in.ID, domain.ActivityCodeNotificationChannelChanged, "The notification channel was made.",
				map[string]any{"created": true, "name": name, "kind": in.Target.Kind()})
		})
		return err
	})
	return made, pgtx.Wrap("create notification channel", err)
}

// roomForChannel refuses one channel too many. Two calls at once are one after the other.
func (t *tx) roomForChannel(ctx context.Context, workspaceID xid.ID) error {
	if _, err := pgtx.Exec(ctx, t, `SELECT pg_advisory_xact_lock(hashtext('notification channels ' || $1::text))`, workspaceID); err != nil {
		return fmt.Errorf("wait for others who make channels: %w", err)
	}
	n, err := pgtx.QueryOne[int](ctx, t, `SELECT count(*) FROM notification_channels WHERE workspace_id = $1 AND deleted_at IS NULL`, workspaceID)
	if err != nil {
		return fmt.Errorf("count the channels: %w", err)
	}
	if n >= domain.MaxNotificationChannels {
		return domain.RefuseField([]string{"workspaceId"}, domain.UserErrorCodeTooLong, "a workspace has at most %d notification channels: change one, or delete one first", domain.MaxNotificationChannels)
	}
	return nil
}

// UpdateNotificationChannel is a change of a channel. Secrets that the new target leaves empty are kept.
type UpdateNotificationChannel struct {
	WorkspaceID, ChannelID               xid.ID
	ExpectedRevision                     *int
	Name                                 domain.Change[string]
	Enabled, RunFailures, VerdictChanges domain.Change[bool]
	InboxKinds                           domain.Change[[]domain.InboxKind]
	Target                               domain.Change[domain.NotificationTarget]
}

// UpdateNotificationChannel changes a channel. A change that changes nothing leaves the revision alone; a target that is given always
// is a change, since sealed secrets cannot be compared.
func (s *Records) UpdateNotificationChannel(ctx context.Context, in UpdateNotificationChannel) error {
	return pgtx.Wrap("update notification channel", s.inTx(ctx, func(t *tx) error {
		row, err := t.lockChannel(ctx, in.WorkspaceID, in.ChannelID)
		if err != nil {
			return err
		}
		if err := checkRevision(in.ExpectedRevision, row.Revision, "notification channel"); err != nil {
			return err
		}
		u, changed, err := t.channelUpdate(row, in)
		if err != nil || len(changed) == 0 {
			return err
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		err = u.AddRevision(1).SetUpdatedAt(t.Now).Exec(ctx)
		if pgtx.UniqueViolation(err) != "" {
			return nameTaken("notification channel", pgtx.OrZero(in.Name.Value))
		}
		if err != nil {
			return fmt.Errorf("update the channel's row: %w", err)
		}
		return t.noteChannel(ctx, in.WorkspaceID, in.ChannelID, domain.ActivityCodeNotificationChannelChanged, "The notification channel was changed.", map[string]any{"changed": changed})
	}))
}

func (t *tx) lockChannel(ctx context.Context, workspaceID, id xid.ID) (*ent.NotificationChannel, error) {
	const lock = `SELECT true FROM notification_channels WHERE id = $1 AND workspace_id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`
	if _, err := pgtx.QueryOne[bool](ctx, t, lock, id, workspaceID); err != nil {
		return nil, pgtx.NotFound(err, []string{"channelId"}, "notification channel", id)
	}
	row, err := t.NotificationChannel.Query().Where(notificationchannel.ID(id)).Only(ctx)
	return row, pgtx.Wrap("read the channel", err)
}

// channelUpdate is what changes of a locked channel.
func (t *tx) channelUpdate(row *ent.NotificationChannel, in UpdateNotificationChannel) (u *ent.NotificationChannelUpdateOne, changed []string, err error) {
	name, problems := domain.ChangedName(row.Name, in.Name)
	before := domain.NotificationWishes{InboxKinds: row.InboxKinds, RunFailures: row.RunFailures, VerdictChanges: row.VerdictChanges}
	wishes := domain.NotificationWishes{InboxKinds: in.InboxKinds.Or(before.InboxKinds, nil), RunFailures: in.RunFailures.Or(before.RunFailures, false), VerdictChanges: in.VerdictChanges.Or(before.VerdictChanges, false)}
	wishes, more := wishes.Check()
	problems = append(problems, more...)
	enabled := in.Enabled.Or(row.Enabled, true)
	if in.Target.Set && in.Target.Value == nil {
		problems = append(problems, domain.FieldError{Field: []string{"target"}, Code: domain.UserErrorCodeRequired, Message: "a channel delivers somewhere: leave target out to keep it, or give another one"})
	} else if in.Target.Set {
		problems = append(problems, in.Target.Value.KeepFrom(row.Target)...)
	}
	if err := domain.AsUserError(problems); err != nil {
		return nil, nil, err
	}
	u = t.NotificationChannel.UpdateOneID(row.ID).SetName(name).SetEnabled(enabled).SetInboxKinds(wishes.InboxKinds).SetRunFailures(wishes.RunFailures).SetVerdictChanges(wishes.VerdictChanges)
	note := func(name string, is bool) {
		if is {
			changed = append(changed, name)
		}
	}
	note("name", name != row.Name)
	note("enabled", enabled != row.Enabled)
	note("inboxKinds", !slices.Equal(wishes.InboxKinds, row.InboxKinds))
	note("runFailures", wishes.RunFailures != row.RunFailures)
	note("verdictChanges", wishes.VerdictChanges != row.VerdictChanges)
	if in.Target.Set {
		u.SetTarget(*in.Target.Value)
	}
	note("target", in.Target.Set)
	if wishes.VerdictChanges && !row.VerdictChanges || enabled && !row.Enabled { // what it knew is old
		u.ClearVerdictTold().ClearVerdictAt()
	}
	return u, changed, nil
}

// DeleteNotificationChannel removes a channel and its secrets; what it has not delivered ends. Its row and its log stay for the
// history.
func (s *Records) DeleteNotificationChannel(ctx context.Context, workspaceID, id xid.ID) error {
	return pgtx.Wrap("delete notification channel", s.inTx(ctx, func(t *tx) error {
		row, err := t.lockChannel(ctx, workspaceID, id)
		if err != nil {
			return err
		}
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		if err := t.NotificationChannel.UpdateOneID(id).SetDeletedAt(t.Now).SetEnabled(false).SetTarget(domain.NotificationTarget{}).AddRevision(1).SetUpdatedAt(t.Now).Exec(ctx); err != nil {
			return fmt.Errorf("delete the channel's row: %w", err)
		}
		if _, err := pgtx.Exec(ctx, t, `UPDATE notifications SET status = 'FAILED', ended_at = $2 WHERE channel_id = $1 AND status = 'PENDING'`, id, t.Now); err != nil {
			return fmt.Errorf("end what it has not delivered: %w", err)
		}
		if err := t.handleItem(ctx, workspaceID, "notification_failed:"+string(id), callerOr(ctx, "notifications")); err != nil {
			return err
		}
		return t.noteChannel(ctx, workspaceID, id, domain.ActivityCodeNotificationChannelChanged, "The notification channel was deleted.", map[string]any{"deleted": true, "name": row.Name, "kind": row.Kind})
	}))
}

// NotificationChannelTested notes a test of a channel in its log and in the feed. A channel that delivers again is taken out of the
// inbox.
func (s *Records) NotificationChannelTested(ctx context.Context, channelID xid.ID, n domain.Notice, sent Sent) error {
	return pgtx.Wrap("note the test of a channel", s.inTx(ctx, func(t *tx) error {
		if err := t.ReadClock(ctx); err != nil {
			return err
		}
		outcome := domain.NotificationOutcomeGaveUp
		if sent.OK {
			outcome = domain.NotificationOutcomeDelivered
			if err := t.handleItem(ctx, n.WorkspaceID, "notification_failed:"+string(channelID), callerOr(ctx, "notifications")); err != nil {
				return err
			}
		}
		d := DueNotice{Notice: n, ChannelID: channelID, Attempt: 1}
		d.ID = ""
		if err := t.logDelivery(ctx, d, sent, outcome, time.Time{}); err != nil {
			return err
		}
		return t.noteChannel(ctx, n.WorkspaceID, channelID, domain.ActivityCodeNotificationChannelTested, "The notification channel was tested.", map[string]any{"delivered": sent.OK})
	}))
}

// noteChannel says in the feed what became of a channel.
func (t *tx) noteChannel(ctx context.Context, workspaceID, id xid.ID, code domain.ActivityCode, summary string, data map[string]any) error {
	data["channelId"] = id
	return t.note(ctx, entry{workspaceID: workspaceID, code: code, by: callerOr(ctx, "notifications"), summary: summary, subjectID: id, data: data})
}
