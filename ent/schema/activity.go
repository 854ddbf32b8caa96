package schema

import (
	"encoding/json"
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Activity is an entry of the activity feed and the unit of the workspace event log. Its order in the log is (tx, id),
// read only below the oldest running transaction, since a bare serial loses rows that commit late.
type Activity struct{ ent.Schema }

// Mixin of Activity.
func (Activity) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "act"}, owned{}} }

// Fields of Activity. subject_id is any record; agent_id and task_id are copies for filters, without foreign keys, so
// that an entry outlives what it is about.
func (Activity) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("tx").Annotations(entsql.DefaultExpr("(pg_current_xact_id()::text)::bigint")),
		field.Enum("code").GoType(domain.ActivityCode("")).SchemaType(native("activity_code")),
		field.String("summary").SchemaType(text()),
		field.Enum("actor_kind").GoType(domain.AuthorKind("")).SchemaType(native("author_kind")),
		field.String("actor").MaxRuneLen(200).Default(""),
		field.String("subject_id").MaxRuneLen(64).Optional().Nillable(),
		field.String("agent_id").MaxRuneLen(64).Optional().Nillable(),
		field.String("task_id").MaxRuneLen(64).Optional().Nillable(),
		field.JSON("data", json.RawMessage{}).SchemaType(jsonb()).Default(json.RawMessage("{}")),
		field.String("causation_id").GoType(xid.ID("")).MaxRuneLen(64).Optional(),
		field.Time("occurred_at").Default(time.Now).Annotations(entsql.DefaultExpr("clock_timestamp()")),
	}
}

// Indexes of Activity: the log in its order, and the list by each of its filters. The codes of each run's way are not in
// activities_rare, because the list itself finds them soon.
func (Activity) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "tx", "id"),
		index.Fields("workspace_id", "occurred_at", "id"),
		index.Fields("causation_id", "occurred_at", "id").Annotations(where("causation_id IS NOT NULL")),
		index.Fields("agent_id", "occurred_at", "id").Annotations(where("agent_id IS NOT NULL")),
		index.Fields("task_id", "occurred_at", "id").Annotations(where("task_id IS NOT NULL")),
		index.Fields("workspace_id", "code", "occurred_at", "id").StorageKey("activities_rare").Annotations(where("code <> 'WAKEUP_QUEUED' AND code <> 'RUN_CLAIMED' AND code <> 'RUN_LAUNCHED' AND code <> 'RUN_FINISHED'")),
		index.Fields("subject_id").StorageKey("activities_inbox").Annotations(where("code = 'INBOX_ITEM_MADE'")),
	}
}

// Annotations of Activity.
func (Activity) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden()}
}

// InboxItem is something a person should look at.
type InboxItem struct{ ent.Schema }

// Mixin of InboxItem.
func (InboxItem) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "inb"}, owned{}} }

// Fields of InboxItem. dedupe_key keeps one open item for one cause.
func (InboxItem) Fields() []ent.Field {
	return []ent.Field{
		field.Enum("kind").GoType(domain.InboxKind("")),
		field.String("title").MaxRuneLen(300),
		field.String("body").SchemaType(text()).Default(""),
		field.String("subject_id").MaxRuneLen(64).Optional().Nillable(),
		field.String("dedupe_key").MaxRuneLen(200).Optional().Nillable(),
		field.String("causation_id").GoType(xid.ID("")).MaxRuneLen(64).Optional(),
		field.Time("resolved_at").Optional().Nillable(),
	}
}

// Indexes of InboxItem.
func (InboxItem) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "created_at", "id"),
		index.Fields("workspace_id", "kind", "created_at", "id"),
		index.Fields("workspace_id", "created_at", "id").StorageKey("inbox_items_open").Annotations(where("resolved_at IS NULL")),
		index.Fields("workspace_id", "kind", "created_at", "id").StorageKey("inbox_items_open_kind").Annotations(where("resolved_at IS NULL")),
		index.Fields("workspace_id", "dedupe_key").Unique().Annotations(where("dedupe_key IS NOT NULL AND resolved_at IS NULL")),
	}
}

// Annotations of InboxItem.
func (InboxItem) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{"inbox_items_kind": oneOf("kind", domain.InboxKind("").Values())})}
}
