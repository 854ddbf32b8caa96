package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// NotificationChannel is where a workspace tells people what needs them, and of what it tells there.
type NotificationChannel struct{ ent.Schema }

// Mixin of NotificationChannel.
func (NotificationChannel) Mixin() []ent.Mixin {
	return []ent.Mixin{record{prefix: "nch"}, owned{}, versioned{}}
}

// Fields of NotificationChannel. target holds secrets sealed; a deleted channel has an empty one. verdict_told is the verdict that
// the channel knows, and verdict_at when that one was judged; NULL until the first look.
func (NotificationChannel) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").MaxRuneLen(200).NotEmpty(),
		field.Enum("kind").GoType(domain.NotificationChannelKind("")),
		field.Bool("enabled").Default(true).Annotations(entsql.Default("true")),
		field.JSON("inbox_kinds", []domain.InboxKind{}).SchemaType(jsonb()).Default([]domain.InboxKind{}).Annotations(entsql.Default("[]")),
		field.Bool("run_failures").Default(false).Annotations(entsql.Default("false")),
		field.Bool("verdict_changes").Default(false).Annotations(entsql.Default("false")),
		field.JSON("target", domain.NotificationTarget{}).SchemaType(jsonb()).Sensitive(),
		field.Enum("verdict_told").GoType(domain.LoopVerdict("")).Optional().Nillable(),
		field.Time("verdict_at").Optional().Nillable(),
		field.Time("deleted_at").Optional().Nillable(),
	}
}

// Indexes of NotificationChannel.
func (NotificationChannel) Indexes() []ent.Index {
	return []ent.Index{index.Fields("workspace_id", "name").Unique().Annotations(where("deleted_at IS NULL"))}
}

// Annotations of NotificationChannel.
func (NotificationChannel) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{
		"notification_channels_kind":    oneOf("kind", domain.NotificationChannelKind("").Values()),
		"notification_channels_verdict": oneOf("verdict_told", domain.LoopVerdict("").Values()),
	})}
}

// Notification is a cause that one channel is to be told of: the outbox. It is written with its cause, once for each channel.
type Notification struct{ ent.Schema }

// Mixin of Notification.
func (Notification) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "ntf"}, owned{}} }

// Fields of Notification. cause names what happened, so that it is told once. attempts counts those that began; due_at is when
// the next one may, and while one runs, until when it has.
func (Notification) Fields() []ent.Field {
	return []ent.Field{
		ref("channel_id"),
		field.String("cause").MaxRuneLen(200),
		field.Enum("event").GoType(domain.NotificationEvent("")),
		field.String("inbox_kind").MaxRuneLen(64).Default("").Annotations(entsql.Default("")),
		field.String("subject_id").GoType(xid.ID("")).MaxRuneLen(64).Optional(),
		field.String("title").MaxRuneLen(300),
		field.String("body").SchemaType(text()).Default("").Annotations(entsql.Default("")),
		field.Enum("status").GoType(domain.NotificationStatus("")).Default(string(domain.NotificationStatusPending)).Annotations(entsql.Default(string(domain.NotificationStatusPending))),
		field.Int("attempts").Default(0).Annotations(entsql.Default("0")),
		field.Time("due_at").Annotations(entsql.DefaultExpr("clock_timestamp()")),
		field.Time("ended_at").Optional().Nillable(),
	}
}

// Edges of Notification.
func (Notification) Edges() []ent.Edge {
	return []ent.Edge{edge.To("channel", NotificationChannel.Type).Field("channel_id").Unique().Required()}
}

// Indexes of Notification.
func (Notification) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("channel_id", "cause").Unique(),
		index.Fields("channel_id", "due_at").StorageKey("notifications_pending").Annotations(where("status = 'PENDING'")),
		index.Fields("channel_id", "ended_at").StorageKey("notifications_ended").Annotations(where("ended_at IS NOT NULL")),
	}
}

// Annotations of Notification.
func (Notification) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{
		"notifications_event":  oneOf("event", domain.NotificationEvent("").Values()),
		"notifications_status": oneOf("status", domain.NotificationStatus("").Values()),
	})}
}

// NotificationDelivery is one attempt at a notification, or a test of a channel. It holds no address and no secret.
type NotificationDelivery struct{ ent.Schema }

// Mixin of NotificationDelivery.
func (NotificationDelivery) Mixin() []ent.Mixin {
	return []ent.Mixin{record{prefix: "ndl"}, owned{}}
}

// Fields of NotificationDelivery. A test has no notification, whose id it would be. status is that of HTTP or SMTP; NULL where
// nobody answered.
func (NotificationDelivery) Fields() []ent.Field {
	return []ent.Field{
		ref("channel_id"),
		optionalRef("notification_id"),
		field.Enum("event").GoType(domain.NotificationEvent("")),
		field.String("title").MaxRuneLen(300),
		field.Int("attempt"),
		field.Enum("outcome").GoType(domain.NotificationOutcome("")),
		field.Int("status").Optional().Nillable(),
		field.String("detail").MaxRuneLen(1000).Default("").Annotations(entsql.Default("")),
		field.Int64("took_ms").Default(0).Annotations(entsql.Default("0")),
		field.Time("next_attempt_at").Optional().Nillable(),
	}
}

// Edges of NotificationDelivery.
func (NotificationDelivery) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("channel", NotificationChannel.Type).Field("channel_id").Unique().Required(),
		edge.To("notification", Notification.Type).Field("notification_id").Unique(),
	}
}

// Indexes of NotificationDelivery.
func (NotificationDelivery) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("channel_id", "created_at", "id"),
		index.Fields("notification_id").Annotations(where("notification_id IS NOT NULL")),
	}
}

// Annotations of NotificationDelivery.
func (NotificationDelivery) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{
		"notification_deliveries_event":   oneOf("event", domain.NotificationEvent("").Values()),
		"notification_deliveries_outcome": oneOf("outcome", domain.NotificationOutcome("").Values()),
	})}
}
