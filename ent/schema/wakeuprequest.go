package schema

import (
	"encoding/json"
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// WakeupRequest is the dispatch record: somebody asked that an agent be woken. Unrouted means QUEUED without a run.
type WakeupRequest struct{ ent.Schema }

// Mixin of WakeupRequest.
func (WakeupRequest) Mixin() []ent.Mixin {
	return []ent.Mixin{record{prefix: "wkp"}, owned{}, caused{}}
}

// Fields of WakeupRequest. scope is set at insertion and kept by re-sends (SPEC S3.4, S3.6).
func (WakeupRequest) Fields() []ent.Field {
	return []ent.Field{
		ref("agent_id"),
		optionalRef("task_id"),
		optionalRef("routine_id"),
		optionalRef("routine_run_id"),
		field.String("scope").MaxRuneLen(80).Annotations(hidden()),
		field.Enum("source").GoType(domain.WakeupSource("")).SchemaType(native("wakeup_source")).Annotations(entgql.Type("WakeupSource")),
		field.Enum("basis").GoType(domain.WakeBasis("")).SchemaType(native("wake_basis")).Optional().Nillable().Annotations(hidden()),
		field.Enum("wake_class").GoType(domain.WakeClass("")).SchemaType(native("wake_class")).Annotations(hidden()),
		field.Bool("person_waiting").Default(false).Annotations(hidden()),
		field.String("fingerprint").MaxRuneLen(64).Optional().Nillable().Annotations(hidden()),
		field.String("reason").MaxRuneLen(200),
		field.JSON("payload", json.RawMessage{}).SchemaType(jsonb()).Annotations(hidden()),
		field.Enum("status").GoType(domain.WakeupStatus("")).SchemaType(native("wakeup_status")).Default(string(domain.WakeupStatusQueued)).Annotations(entgql.Type("WakeupStatus")),
		field.Enum("end_reason").GoType(domain.EndReason("")).SchemaType(native("end_reason")).Optional().Nillable().Annotations(entgql.Type("EndReason")),
		field.Bool("recovered").Default(false),
		field.Int("resends").Default(0).Annotations(entsql.Default("0")),
		field.String("idempotency_key").MaxRuneLen(400).Optional().Nillable(),
		field.Int("hops").Default(0).Annotations(hidden()),
		field.Bool("unattended").Default(false).Annotations(entsql.Default("false"), hidden()),
		field.Int("retry_count").Default(0).Annotations(entsql.Default("0")),
		field.Time("scheduled_retry_at").Optional().Nillable(),
		field.Enum("retry_source").GoType(domain.RetrySource("")).SchemaType(native("retry_source")).Optional().Nillable().Annotations(entgql.Type("RetrySource")),
		optionalRef("run_id"),
		field.Time("requested_at").Default(time.Now).Annotations(entsql.DefaultExpr("clock_timestamp()"), entgql.OrderField("REQUESTED_AT")),
		field.Time("delivered_at").Optional().Nillable(),
		field.Time("claimed_at").Optional().Nillable(),
		field.Time("finished_at").Optional().Nillable(),
	}
}

// Edges of WakeupRequest.
func (WakeupRequest) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("agent", Agent.Type).Field("agent_id").Unique().Required(),
		edge.To("task", Task.Type).Field("task_id").Unique().Annotations(hidden()),
		edge.To("routine", Routine.Type).Field("routine_id").Unique().Annotations(hidden()),
		edge.To("routine_run", RoutineRun.Type).Field("routine_run_id").Unique().Annotations(hidden()),
		edge.From("run", Run.Type).Ref("wakeup_requests").Field("run_id").Unique(),
	}
}

// Indexes of WakeupRequest: one for each filter of its list, in the list's order. Those of columns that are mostly empty hold
// the filled ones alone. No index has a column that the way of a usual request changes, in its key or its condition, so that the
// row is updated in place (docs/decisions/0031-requests-are-updated-in-place.md). What depends on such columns has an index of a
// derived column, in internal/schemadiff/beyond.sql.
func (WakeupRequest) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("workspace_id", "idempotency_key").Unique().Annotations(where("idempotency_key IS NOT NULL")),
		index.Fields("run_id", "requested_at", "id").Annotations(where("run_id IS NOT NULL")),
		index.Fields("agent_id", "requested_at", "id"),
		index.Fields("workspace_id", "source", "requested_at", "id"),
		index.Fields("task_id").StorageKey("wakeup_requests_checkout_held").Annotations(where("end_reason = 'CHECKOUT_HELD'")),
		index.Fields("workspace_id", "requested_at", "id"),
		index.Fields("routine_run_id").Annotations(where("routine_run_id IS NOT NULL")),
		index.Fields("task_id").Annotations(where("task_id IS NOT NULL")),
	}
}

// Annotations of WakeupRequest.
func (WakeupRequest) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(),
	}
}
