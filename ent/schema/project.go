package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// Project groups tasks and carries an executor; its tasks are office tasks (SPEC S5.1).
type Project struct{ ent.Schema }

// Mixin of Project.
func (Project) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "prj"}, owned{}, versioned{}} }

// Fields of Project.
func (Project) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").MaxRuneLen(200).NotEmpty(),
		field.JSON("executor", &domain.ExecutorSpec{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
		field.Time("deleted_at").Optional().Nillable().Annotations(hidden()),
	}
}

// Indexes of Project.
func (Project) Indexes() []ent.Index {
	return []ent.Index{index.Fields("workspace_id", "name").Unique().Annotations(where("deleted_at IS NULL"))}
}

// Annotations of Project.
func (Project) Annotations() []schema.Annotation {
	return []schema.Annotation{entgql.RelayConnection(), entgql.Implements("Versioned")}
}
