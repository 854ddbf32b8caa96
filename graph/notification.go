package graph

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/ent/notificationchannel"
	"rouse.dev/rouse/ent/notificationdelivery"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// channelNode reads a channel that is not deleted.
func channelNode(ctx context.Context, id xid.ID) (ent.Noder, error) {
	row, err := load(ctx).channels.Load(ctx, id)
	if err != nil || row == nil {
		return nil, err
	}
	return &model.NotificationChannel{NotificationChannel: row}, nil
}

// presentChannel finds a channel that the caller sees and that is not deleted.
func (r *Resolver) presentChannel(ctx context.Context, id xid.ID) (*ent.NotificationChannel, error) {
	row, err := visible(r.Reader.NotificationChannel.Query().Where(notificationchannel.ID(id), notificationchannel.DeletedAtIsNil()).Only(ctx))
	if err != nil {
		return nil, fmt.Errorf("look for notification channel: %w", err)
	}
	if row == nil {
		return nil, notFound("channelId", "notification channel")
	}
	return row, nil
}

// shownChannel reads a channel after its change.
func (r *Resolver) shownChannel(ctx context.Context, id xid.ID) (*model.NotificationChannel, error) {
	row, err := r.Reader.NotificationChannel.Get(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the notification channel: %w", err)
	}
	return &model.NotificationChannel{NotificationChannel: row}, nil
}

// createChannel makes a channel and returns the secret of a webhook, to be shown once. Its id is made here, since its secrets are
// sealed for it.
func (r *Resolver) createChannel(ctx context.Context, in model.CreateNotificationChannelInput) (made store.Made, shown string, err error) {
	if err := r.checkWorkspace(ctx, in.WorkspaceID); err != nil {
		return made, "", err
	}
	id := xid.New(channelPrefix)
	target, given, targetErr := r.channelTarget(in.Target, id, true)
	once, onceErr := idempotency(in, in.IdempotencyKey)
	if err := joinProblems(targetErr, onceErr); err != nil {
		return made, "", err
	}
	made, err = r.Store.CreateNotificationChannel(ctx, store.CreateNotificationChannel{WorkspaceID: in.WorkspaceID, ID: id, Name: in.Name, Enabled: in.Enabled, Idempotency: once, Target: target,
		Wishes: domain.NotificationWishes{InboxKinds: in.InboxKinds, RunFailures: in.RunFailures, VerdictChanges: in.VerdictChanges}})
	if err != nil || made.Replayed {
		given = ""
	}
	return made, given, err
}

func (r *Resolver) updateChannel(ctx context.Context, in model.UpdateNotificationChannelInput) error {
	row, err := r.presentChannel(ctx, in.ChannelID)
	if err != nil {
		return err
	}
	change := store.UpdateNotificationChannel{WorkspaceID: row.WorkspaceID, ChannelID: row.ID, ExpectedRevision: in.ExpectedRevision, Name: changeOf(in.Name), Enabled: changeOf(in.Enabled),
		InboxKinds: changeOfList(in.InboxKinds), RunFailures: changeOf(in.RunFailures), VerdictChanges: changeOf(in.VerdictChanges)}
	var targetErr error
	if in.Target.IsSet() {
		change.Target.Set = true
		if in.Target.Value() != nil {
			target, _, err := r.channelTarget(in.Target.Value(), row.ID, false)
			change.Target.Value, targetErr = &target, err
		}
	}
	if err := joinProblems(targetErr, checkTexts(in)); err != nil {
		return err
	}
	return r.Store.UpdateNotificationChannel(ctx, change)
}

func (r *Resolver) deleteChannel(ctx context.Context, id xid.ID) error {
	row, err := r.presentChannel(ctx, id)
	if err != nil {
		return err
	}
	return r.Store.DeleteNotificationChannel(ctx, row.WorkspaceID, row.ID)
}

// testChannel sends a test notice, notes it, and says what came of it.
func (r *Resolver) testChannel(ctx context.Context, id xid.ID) (sent store.Sent, err error) {
	row, err := r.presentChannel(ctx, id)
	if err != nil {
		return sent, err
	}
	of, err := required(ctx, load(ctx).workspaces, row.WorkspaceID)
	if err != nil {
		return sent, err
	}
	now, err := load(ctx).now()
	if err != nil {
		return sent, err
	}
	notice := domain.TestNotice(xid.New("ndl"), row.WorkspaceID, of.Name, row.Name, now)
	sent = r.Notifier.Send(ctx, row.ID, row.Target, notice)
	return sent, r.Store.NotificationChannelTested(ctx, row.ID, notice, sent)
}

// channelTarget reads a target, its secrets sealed for the channel. isNew: none is stored that could be kept. given is the
// secret of a webhook, in plain text.
func (r *Resolver) channelTarget(in *model.NotificationTargetInput, holder xid.ID, isNew bool) (t domain.NotificationTarget, given string, err error) {
	if in == nil || !oneMember(in.Webhook != nil, in.Slack != nil, in.JSON != nil, in.Email != nil) {
		return t, "", domain.RefuseField([]string{"target"}, domain.UserErrorCodeInvalid, "set exactly one of webhook, slack, json and email")
	}
	p := &inputProblems{}
	switch {
	case in.Webhook != nil:
		t.Webhook, given, err = r.webhookTarget(p, in.Webhook, holder, isNew)
	case in.Slack != nil:
		t.Slack, err = r.postTarget(p, in.Slack, "slack", holder, isNew)
	case in.JSON != nil:
		t.JSON, err = r.postTarget(p, in.JSON, "json", holder, isNew)
	default:
		t.Email, err = r.emailTarget(p, in.Email, holder, isNew)
	}
	if len(p.list) > 0 {
		return t, "", domain.AsUserError(p.list)
	}
	return t, given, err
}

// found adds a problem below a path, if there is one.
func (r *inputProblems) found(problem *domain.FieldError, path ...string) {
	if problem != nil {
		r.list = append(r.list, problem.Under(path...))
	}
}

func (r *Resolver) webhookTarget(p *inputProblems, in *model.WebhookTargetInput, holder xid.ID, isNew bool) (*domain.WebhookTarget, string, error) {
	p.found(domain.CheckNotificationAddress(in.URL, false), "target", "webhook", "url")
	text := valueOf(in.Secret)
	if in.Secret != nil {
		p.found(domain.CheckWebhookSecret(text), "target", "webhook")
	} else if isNew {
		made, err := secret.NewShared(rand.Reader)
		if err != nil {
			return nil, "", err
		}
		text = made.Reveal()
	}
	if len(p.list) > 0 || text == "" {
		return &domain.WebhookTarget{URL: in.URL}, "", nil
	}
	sealed, err := r.Sealer.Seal(text, domain.SealPlace(holder, domain.NotificationSecret))
	if err != nil {
		return nil, "", fmt.Errorf("seal the secret of %s: %w", holder, err)
	}
	return &domain.WebhookTarget{URL: in.URL, Secret: sealed, Hint: domain.SecretHint(text)}, text, nil
}

func (r *Resolver) postTarget(p *inputProblems, in *model.PostTargetInput, member string, holder xid.ID, isNew bool) (*domain.PostTarget, error) {
	out := &domain.PostTarget{Template: valueOf(in.Template)}
	if out.Template != "" {
		p.found(domain.CheckNotificationTemplate(out.Template), "target", member, "template")
	}
	if in.URL == nil && !isNew {
		return out, nil
	}
	p.found(domain.CheckNotificationAddress(valueOf(in.URL), true), "target", member, "url")
	if len(p.list) > 0 {
		return out, nil
	}
	var err error
	out.Host = domain.AddressHost(*in.URL)
	out.URL, err = r.Sealer.Seal(*in.URL, domain.SealPlace(holder, domain.NotificationAddress))
	if err != nil {
		return nil, fmt.Errorf("seal the address of %s: %w", holder, err)
	}
	return out, nil
}

func (r *Resolver) emailTarget(p *inputProblems, in *model.EmailTargetInput, holder xid.ID, isNew bool) (*domain.EmailTarget, error) {
	out := &domain.EmailTarget{Host: strings.TrimSpace(in.Host), Port: in.Port, Security: in.Security, Username: valueOf(in.Username), From: in.From, To: in.To}
	password := valueOf(in.Password)
	for _, problem := range out.Check(password) {
		p.list = append(p.list, problem.Under("target", "email"))
	}
	if isNew && out.Username != "" && password == "" {
		p.add([]string{"target", "email", "password"}, domain.UserErrorCodeRequired, "give the password of the user, or leave the user out")
	}
	if len(p.list) > 0 || password == "" {
		return out, nil
	}
	var err error
	if out.Password, err = r.Sealer.Seal(password, domain.SealPlace(holder, domain.NotificationPassword)); err != nil {
		return nil, fmt.Errorf("seal the password of %s: %w", holder, err)
	}
	return out, nil
}

// pageOfChannels lists a workspace's channels in the order they were made; their ids sort so.
func (r *Resolver) pageOfChannels(ctx context.Context, workspaceID xid.ID, after *ent.Cursor, first *int) (*model.NotificationChannelConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	at := func(x *ent.NotificationChannel) ent.Cursor { return idCursor(x.ID) }
	q := r.Reader.NotificationChannel.Query().Where(notificationchannel.WorkspaceID(workspaceID), notificationchannel.DeletedAtIsNil())
	read, err := readPage(ctx, q, p, inOrderMade, at)
	if err != nil {
		return nil, fmt.Errorf("list notification channels: %w", err)
	}
	return &model.NotificationChannelConnection{PageInfo: &read.info, TotalCount: read.total, Edges: edges(read.rows, func(x *ent.NotificationChannel) *model.NotificationChannelEdge {
		return &model.NotificationChannelEdge{Cursor: at(x), Node: &model.NotificationChannel{NotificationChannel: x}}
	})}, nil
}

// pageOfDeliveries lists what a channel attempted, newest first.
func (r *Resolver) pageOfDeliveries(ctx context.Context, channelID xid.ID, after *ent.Cursor, first *int) (*model.NotificationDeliveryConnection, error) {
	p, err := pageOf(pageMax, after, first, nil, nil)
	if err != nil {
		return nil, err
	}
	at := func(x *ent.NotificationDelivery) ent.Cursor { return ent.Cursor{ID: x.ID, Value: x.CreatedAt} }
	q := r.Reader.NotificationDelivery.Query().Where(notificationdelivery.ChannelID(channelID))
	read, err := readPage(ctx, q, p, ordering{kind: byTime, column: notificationdelivery.FieldCreatedAt, desc: true}, at)
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return &model.NotificationDeliveryConnection{PageInfo: &read.info, TotalCount: read.total, Edges: edges(read.rows, func(x *ent.NotificationDelivery) *model.NotificationDeliveryEdge {
		return &model.NotificationDeliveryEdge{Cursor: at(x), Node: model.NotificationDeliveryOf(x)}
	})}, nil
}
