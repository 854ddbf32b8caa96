package model

import (
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// NotificationChannel is a row of the channels.
type NotificationChannel struct{ *ent.NotificationChannel }

// IsNode marks a member of interface Node.
func (*NotificationChannel) IsNode() {}

// IsVersioned marks a member of interface Versioned.
func (*NotificationChannel) IsVersioned() {}

// NotificationTarget is where a channel delivers: a *WebhookTarget, *SlackTarget, *JSONTarget or *EmailTarget.
type NotificationTarget interface{ IsNotificationTarget() }

// WebhookTarget is an address whose owner verifies the signature.
type WebhookTarget struct{ URL, SecretHint string }

// SlackTarget is an incoming webhook, whose address is a secret.
type SlackTarget struct {
	Host     string
	Template *string
}

// JSONTarget is an address that takes JSON, and is a secret.
type JSONTarget struct {
	Host     string
	Template *string
}

// EmailTarget is a mail server, and who writes to whom.
type EmailTarget struct {
	Host     string
	Port     int
	Security domain.SMTPSecurity
	Username *string
	From     string
	To       []string
}

// IsNotificationTarget marks a member of union NotificationTarget.
func (*WebhookTarget) IsNotificationTarget() {}

// IsNotificationTarget marks a member of union NotificationTarget.
func (*SlackTarget) IsNotificationTarget() {}

// IsNotificationTarget marks a member of union NotificationTarget.
func (*JSONTarget) IsNotificationTarget() {}

// IsNotificationTarget marks a member of union NotificationTarget.
func (*EmailTarget) IsNotificationTarget() {}

// TargetOf shows a target without its secrets; nil for the empty one of a deleted channel.
func TargetOf(t domain.NotificationTarget) NotificationTarget {
	switch {
	case t.Webhook != nil:
		return &WebhookTarget{URL: t.Webhook.URL, SecretHint: t.Webhook.Hint}
	case t.Slack != nil:
		return &SlackTarget{Host: t.Slack.Host, Template: textOrNil(t.Slack.Template)}
	case t.JSON != nil:
		return &JSONTarget{Host: t.JSON.Host, Template: textOrNil(t.JSON.Template)}
	case t.Email != nil:
		return &EmailTarget{Host: t.Email.Host, Port: t.Email.Port, Security: t.Email.Security, Username: textOrNil(t.Email.Username), From: t.Email.From, To: t.Email.To}
	}
	return nil
}

func textOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// NotificationDelivery is an attempt to deliver, or a test.
type NotificationDelivery struct {
	AttemptedAt    time.Time
	NotificationID *xid.ID
	Event          domain.NotificationEvent
	Title          string
	Attempt        int
	Outcome        domain.NotificationOutcome
	Status         *int
	Detail         *string
	Took           time.Duration
	NextAttemptAt  *time.Time
}

// NotificationDeliveryOf shows a row of the log.
func NotificationDeliveryOf(row *ent.NotificationDelivery) *NotificationDelivery {
	out := &NotificationDelivery{AttemptedAt: row.CreatedAt, Event: row.Event, Title: row.Title, Attempt: row.Attempt, Outcome: row.Outcome, Status: row.Status,
		Detail: textOrNil(row.Detail), Took: time.Duration(row.TookMs) * time.Millisecond, NextAttemptAt: row.NextAttemptAt}
	if row.NotificationID != "" {
		out.NotificationID = &row.NotificationID
	}
	return out
}
