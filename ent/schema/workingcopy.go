package schema

import (
	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
)

// RunWorkingCopy is what a run found in its working copy, and what it left there. It is a row of its own, because few runs
// have one and its diff is long.
type RunWorkingCopy struct{ ent.Schema }

// Mixin of RunWorkingCopy.
func (RunWorkingCopy) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "rwc"}, owned{}} }

// Fields of RunWorkingCopy. What the run did is counted from head_before, of its first attempt. head_after is NULL until an
// attempt ended; what stands beside it is from then.
func (RunWorkingCopy) Fields() []ent.Field {
	return []ent.Field{
		ref("run_id"),
		field.String("path").SchemaType(text()),
		field.String("repository").SchemaType(text()),
		field.String("branch").MaxRuneLen(300),
		field.String("head_before").MaxRuneLen(64),
		field.String("head_after").MaxRuneLen(64).Optional().Nillable(),
		field.Int("commits").Default(0).Annotations(entsql.Default("0")),
		field.Int("files_changed").Default(0).Annotations(entsql.Default("0")),
		field.Int("insertions").Default(0).Annotations(entsql.Default("0")),
		field.Int("deletions").Default(0).Annotations(entsql.Default("0")),
		field.Int("uncommitted").Default(0).Annotations(entsql.Default("0")),
		field.String("diff").SchemaType(text()).Default("").Annotations(entsql.Default("")),
		field.Bool("diff_cut").Default(false).Annotations(entsql.Default("false")),
	}
}

// Indexes of RunWorkingCopy.
func (RunWorkingCopy) Indexes() []ent.Index { return []ent.Index{index.Fields("run_id").Unique()} }

// Annotations of RunWorkingCopy.
func (RunWorkingCopy) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }

// Link is the address of something that a run made elsewhere, such as a pull request.
type Link struct{ ent.Schema }

// Mixin of Link.
func (Link) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "lnk"}, owned{}, caused{}} }

// Fields of Link. task_id is NULL for a run without a task.
func (Link) Fields() []ent.Field {
	return []ent.Field{
		ref("run_id"),
		ref("agent_id"),
		optionalRef("task_id"),
		field.Enum("kind").GoType(domain.LinkKind("")).Annotations(entgql.Type("LinkKind")),
		field.String("url").SchemaType(text()),
		field.String("title").MaxRuneLen(200),
	}
}

// Indexes of Link.
func (Link) Indexes() []ent.Index {
	return []ent.Index{
		index.Fields("run_id", "url").Unique(),
		index.Fields("task_id", "created_at", "id").Annotations(where("task_id IS NOT NULL")),
	}
}

// Annotations of Link.
func (Link) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{"links_kind": oneOf("kind", domain.LinkKind("").Values())})}
}
