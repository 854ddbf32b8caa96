package schema

import (
	"strconv"

	"entgo.io/contrib/entgql"
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema"
	"entgo.io/ent/schema/edge"
	"entgo.io/ent/schema/field"

	"rouse.dev/rouse/internal/domain"
)

// Workspace is a tenant.
type Workspace struct{ ent.Schema }

// Mixin of Workspace.
func (Workspace) Mixin() []ent.Mixin { return []ent.Mixin{record{prefix: "wsp"}, versioned{}} }

// Fields of Workspace. The window is in milliseconds. hold says who holds the workspace, and hold_ended_at when the last hold ended,
// from which what is late is late; whether claims pass the workspace over says its lane.
func (Workspace) Fields() []ent.Field {
	return []ent.Field{
		field.String("name").MaxRuneLen(200).NotEmpty(),
		field.String("slug").MaxRuneLen(64).NotEmpty().Unique(),
		field.String("default_time_zone").MaxRuneLen(64).Default("UTC").Annotations(hidden()),
		optionalRef("office_workflow_id"),
		field.Int("recovery_lookback_hours").Default(24).Annotations(hidden()),
		field.Int64("coalescing_window_ms").Default(5000).Annotations(hidden()),
		field.Int("max_concurrent_runs").Optional().Nillable().Annotations(hidden()),
		field.JSON("default_executor", &domain.ExecutorSpec{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
		field.JSON("hold", &domain.WorkspaceHold{}).Optional().SchemaType(jsonb()).Annotations(hidden()),
		field.Time("hold_ended_at").Optional().Nillable().Annotations(hidden()),
		field.Int("max_hops").Default(domain.DefaultMaxHops).Annotations(entsql.Default(strconv.Itoa(domain.DefaultMaxHops)), hidden()),
	}
}

// Edges of Workspace.
func (Workspace) Edges() []ent.Edge {
	return []ent.Edge{
		edge.To("office_workflow", Workflow.Type).Field("office_workflow_id").Unique().Annotations(hidden()),
	}
}

// Annotations of Workspace.
func (Workspace) Annotations() []schema.Annotation {
	return []schema.Annotation{
		entgql.RelayConnection(), entgql.Implements("Versioned"),
		table(map[string]string{
			"workspaces_recovery_lookback_hours": "recovery_lookback_hours BETWEEN 1 AND 720",
			"workspaces_coalescing_window":       "coalescing_window_ms BETWEEN 0 AND 60000",
			"workspaces_max_concurrent_runs":     "max_concurrent_runs >= 1",
			"workspaces_max_hops":                "max_hops BETWEEN 1 AND 1000",
		}),
	}
}

// WorkspaceLane is the hot state of a workspace: its live runs and its ceiling. Nothing references it.
type WorkspaceLane struct{ ent.Schema }

// Fields of WorkspaceLane. released_at is when a place last fell free in a workspace that had none, or its hold ended. held_at is
// since when a person holds the workspace: claims, which lock this row, take nothing of it.
func (WorkspaceLane) Fields() []ent.Field {
	return []ent.Field{
		field.String("id").StorageKey("workspace_id").MaxRuneLen(64),
		field.Int("running").Default(0).Annotations(entsql.Default("0")),
		field.Int("max_running").Optional().Nillable(),
		field.Time("released_at").Optional().Nillable(),
		field.Time("held_at").Optional().Nillable(),
	}
}

// Annotations of WorkspaceLane.
func (WorkspaceLane) Annotations() []schema.Annotation {
	return []schema.Annotation{hidden(), table(map[string]string{"workspace_lanes_running": "running >= 0"})}
}
