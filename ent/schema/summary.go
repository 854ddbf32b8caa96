package schema

import (
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
)

// ContinuationSummary is the memory between taskless fires: one current row for each agent and scope (SPEC S9).
type ContinuationSummary struct{ ent.Schema }

// Mixin of ContinuationSummary.
func (ContinuationSummary) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "sum"}, owned{}} }

// Fields of ContinuationSummary.
func (ContinuationSummary) Fields() []ent.Field {
	return []ent.Field{
		ref("agent_id"),
		field.String("scope").MaxRuneLen(80),
		field.String("content").SchemaType(text()).Default("").Annotations(entgql.Type("Markdown")),
		field.Int("content_tokens").Default(0),
		field.Time("updated_at").Default(time.Now).UpdateDefault(time.Now),
		optionalRef("updated_by_run_id"),
	}
}

// Edges of ContinuationSummary.
func (ContinuationSummary) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("agent", Agent.Type).Field("agent_id").Unique().Required(),
		edge.To("updated_by_run", Run.Type).Field("updated_by_run_id").Unique(),
	}
}

// Indexes of ContinuationSummary.
func (ContinuationSummary) Indexes() []ent.Index {
	return []ent.Index{index.Fields("agent_id", "scope").Unique()}
}

// Annotations of ContinuationSummary.
func (ContinuationSummary) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), table(map[string]string{"continuation_summaries_content": "octet_length(content) <= 8192"})}
}
