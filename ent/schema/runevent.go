package schema

import (
	"encoding/json"
	"time"

	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// RunEvent is a step in the life of a run; seq is gapless within the run.
type RunEvent struct{ ent.Schema }

// Mixin of RunEvent.
func (RunEvent) Mixin() []ent.Mixin { return []ent.Mixin{owned{}} }

// Fields of RunEvent.
func (RunEvent) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		ref("run_id"),
		field.Int64("seq"),
		field.Enum("kind").GoType(domain.RunEventKind("")).SchemaType(native("run_event_kind")),
		field.Int("attempt").Optional().Nillable(),
		field.JSON("data", json.RawMessage{}).SchemaType(jsonb()).Default(json.RawMessage("{}")),
		field.Time("occurred_at").Default(time.Now).Annotations(entsql.DefaultExpr("clock_timestamp()")),
	}
}

// Edges of RunEvent.
func (RunEvent) Edges() []ent.Edge {
	return []ent.Edge{edge.To("run", Run.Type).Field("run_id").Unique().Required()}
}

// Indexes of RunEvent.
func (RunEvent) Indexes() []ent.Index { return []ent.Index{index.Fields("run_id", "seq").Unique()} }

// Annotations of RunEvent.
func (RunEvent) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden()}
}
