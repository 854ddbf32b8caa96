// Package schema is the hand-written source of the database: every table, column, index, check and foreign key.
// Generated code and versioned migrations both follow from it. Hot statements that ent cannot express live in
// internal/store; storage settings that ent cannot express live in a hand-written migration.
package schema

import (
	"strings"
	"time"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"
	"entgo.io/ent/schema/mixin"

	"rouse.dev/rouse/internal/xid"
)

// IDPrefix names the prefixes of a table's ids; the generator turns them into the prefix-to-table map of node(id).
type IDPrefix struct {
	Prefixes []string
}

// Name of the annotation, as templates see it.
func (IDPrefix) Name() string { return "IDPrefix" }

// record is what almost every table has: a prefixed id and the instant it was made.
type record struct {
	mixin.Schema
	prefix string
}

func (m record) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").GoType(xid.ID("")).MaxRuneLen(64).Immutable().DefaultFunc(func() xid.ID { return xid.New(m.prefix) }),
		field.Time("created_at").Immutable().Default(time.Now).Annotations(entsql.DefaultExpr("clock_timestamp()"), entgql.OrderField("CREATED_AT")),
	}
}

func (m record) Annotations() []schema.Annotation {
	return []schema.Annotation{IDPrefix{[]string{m.prefix}}}
}

// owned puts a record under one workspace: nothing crosses its border (SPEC S2).
type owned struct{ mixin.Schema }

func (owned) Fields() []ent.Field { return []ent.Field{ref("workspace_id").Immutable()} }

func (owned) Edges() []ent.Edge {
	return []ent.Edge{edge.To("workspace", Workspace.Type).Field("workspace_id").Unique().Required().Immutable()}
}

// versioned counts the changes of a record, for expectedRevision.
type versioned struct{ mixin.Schema }

func (versioned) Fields() []ent.Field {
	return []ent.Field{
		field.Int("revision").Default(1).Annotations(entsql.Default("1")),
		field.Time("updated_at").Default(time.Now).UpdateDefault(time.Now).Annotations(entsql.DefaultExpr("clock_timestamp()")),
	}
}

// caused carries the id that links every row of one cause (SPEC S1, S10.4).
type caused struct{ mixin.Schema }

func (caused) Fields() []ent.Field {
	return []ent.Field{field.String("causation_id").GoType(xid.ID("")).MaxRuneLen(64).Annotations(entgql.Type("ID"), entgql.MapsTo("causationId"))}
}

func (caused) Indexes() []ent.Index { return []ent.Index{index.Fields("causation_id")} }

// idField is a column of ids; it wraps ent's builder so that a mixin can share one definition.
type idField struct{ ent.Field }

// Immutable forbids later changes of the column.
func (i idField) Immutable() idField {
	i.Descriptor().Immutable = true
	return i
}

// ref is a column that holds another record's id. It is hidden from the API, which shows the edge instead.
func ref(name string) idField {
	return idField{field.String(name).GoType(xid.ID("")).MaxRuneLen(64).Annotations(entgql.Skip(entgql.SkipAll))}
}

// optionalRef is a ref that may be empty: NULL in the table, the zero id in Go.
func optionalRef(name string) idField {
	return idField{field.String(name).GoType(xid.ID("")).MaxRuneLen(64).Optional().Annotations(entgql.Skip(entgql.SkipAll))}
}

// hidden keeps an entity, a field or an edge out of the API.
func hidden() schema.Annotation { return entgql.Skip(entgql.SkipAll) }

// jsonb is the column type of every JSON field.
func jsonb() map[string]string { return map[string]string{dialect.Postgres: "jsonb"} }

// text is the column type of long strings.
func text() map[string]string { return map[string]string{dialect.Postgres: "text"} }

// native is the column type of a closed set of values in a table that the queue writes: PostgreSQL compares numbers, and no CHECK
// lists the values, which it would compile anew in each statement that writes (decision 27). A new value needs a migration.
func native(name string) map[string]string { return map[string]string{dialect.Postgres: name} }

// money is an exact amount in US dollars with six decimals.
func money() map[string]string { return map[string]string{dialect.Postgres: "numeric(18,6)"} }

// table adds CHECK constraints to a table, by name.
func table(checks map[string]string) entsql.Annotation { return entsql.Annotation{Checks: checks} }

// oneOf is a CHECK expression: the column holds one of the values.
func oneOf(column string, values []string) string {
	return column + " IN ('" + strings.Join(values, "', '") + "')"
}

// where limits an index to the rows that a condition selects.
func where(condition string) schema.Annotation { return entsql.IndexWhere(condition) }
