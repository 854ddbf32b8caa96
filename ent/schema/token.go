package schema

import (
	"encoding/json"

	"entgo.io/ent"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"
	"entgo.io/ent/schema/index"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// ApiToken is a bearer token, stored as its digest. Without a workspace it is an instance token.
type ApiToken struct{ ent.Schema }

// Mixin of ApiToken.
func (ApiToken) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "tok"}} }

// Fields of ApiToken.
func (ApiToken) Fields() []ent.Field {
	return []ent.Field{
		optionalRef("workspace_id"),
		field.String("name").MaxRuneLen(200).NotEmpty(),
		field.String("prefix").MaxRuneLen(16),
		field.String("digest").MaxRuneLen(64).Unique().Sensitive(),
		field.JSON("scopes", []domain.TokenScope{}).SchemaType(jsonb()),
		field.Time("last_used_at").Optional().Nillable(),
		field.Time("expires_at").Optional().Nillable(),
		field.Time("revoked_at").Optional().Nillable(),
	}
}

// Edges of ApiToken.
func (ApiToken) Edges() []ent.Edge {
	return []ent.Edge{edge.To("workspace", Workspace.Type).Field("workspace_id").Unique()}
}

// Indexes of ApiToken.
func (ApiToken) Indexes() []ent.Index {
	return []ent.Index{index.Fields("workspace_id", "created_at", "id")}
}

// Annotations of ApiToken.
func (ApiToken) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }

// MutationKey remembers the first result of a mutation that was sent with an idempotency key, for 24 hours.
type MutationKey struct{ ent.Schema }

// Mixin of MutationKey.
func (MutationKey) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "mky"}} }

// Fields of MutationKey. owner is the workspace, or "instance" for mutations above workspaces.
func (MutationKey) Fields() []ent.Field {
	return []ent.Field{
		field.String("owner").MaxRuneLen(64),
		field.String("mutation").MaxRuneLen(64),
		field.String("key").MaxRuneLen(255),
		field.String("input_digest").MaxRuneLen(64),
		field.String("result_id").GoType(xid.ID("")).MaxRuneLen(64).Optional(),
		field.JSON("result", json.RawMessage{}).SchemaType(jsonb()).Optional(),
	}
}

// Indexes of MutationKey.
func (MutationKey) Indexes() []ent.Index {
	return []ent.Index{index.Fields("owner", "mutation", "key").Unique(), index.Fields("created_at")}
}

// Annotations of MutationKey.
func (MutationKey) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }

// InstanceFact is a fact about the installation as a whole, e.g. when terminal shapes began to be recorded (SPEC S10.1).
type InstanceFact struct{ ent.Schema }

// Mixin of InstanceFact.
func (InstanceFact) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "fct"}} }

// Fields of InstanceFact.
func (InstanceFact) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").MaxRuneLen(64).Unique(),
		field.String("value").SchemaType(text()),
	}
}

// Annotations of InstanceFact.
func (InstanceFact) Annotations() []schema.Annotation { return []schema.Annotation{hidden()} }
